// Decoding token by token without ever showing half a character.
#pragma once

#include <cstdint>
#include <string>

#include "text/tokenizer.hpp"

namespace ponder::text {

// The pushes and the finish, put together, are tokenizer.decode(all ids, skip_special).
class StreamDecoder {
 public:
  explicit StreamDecoder(Tokenizer tokenizer, bool skip_special = false)
      : tokenizer_(std::move(tokenizer)), skip_special_(skip_special) {}

  // The text that has become certain with this token: well-formed UTF-8, empty while a character is
  // incomplete. What cannot become a character any more comes out as U+FFFD.
  std::string push(std::int32_t id);

  // The end: an incomplete character comes out as U+FFFD. The decoder is then as new.
  std::string finish();

 private:
  Tokenizer tokenizer_;
  bool skip_special_;
  std::string tail_;  // at most 3 bytes, the beginning of a character
};

}  // namespace ponder::text
