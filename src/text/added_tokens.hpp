// Tokens that are cut out of the text before anything else happens to it.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ponder::text {

// One entry of `added_tokens`, with Hugging Face's meaning of the flags.
struct AddedToken {
  std::int32_t id = 0;
  std::string content;
  bool special = false;      // skipped by decode(..., skip_special)
  bool normalized = false;   // matched in the normalised text instead of the raw one
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // takes the white space behind it
  bool single_word = false;  // only where no word character touches it
};

// A stretch of text that ends at `end` (the next one begins there). Added tokens are only recognised in
// places that lie wholly inside one trusted run; neighbouring runs differ in `trusted`.
struct TrustRun {
  std::size_t end = 0;
  bool trusted = false;
};

struct AddedMatch {
  std::size_t begin = 0;  // with white space taken by lstrip
  std::size_t end = 0;    // with white space taken by rstrip
  std::int32_t id = 0;
};

// Finds added tokens: leftmost first, the longest at a place, not overlapping.
class AddedMatcher {
 public:
  struct Pattern {
    std::string text;  // not empty, at most kMaxLength bytes
    std::int32_t id = 0;
    bool lstrip = false;
    bool rstrip = false;
    bool single_word = false;
  };
  static constexpr std::size_t kMaxLength = 512;  // bounds the time of a match

  AddedMatcher() = default;
  explicit AddedMatcher(std::vector<Pattern> patterns);

  bool empty() const { return patterns_.empty(); }

  // Matches in text[begin, end of the last run); the flags see only that range. `runs` covers it.
  std::vector<AddedMatch> find(std::string_view text, std::span<const TrustRun> runs) const;

 private:
  const Pattern* longest_at(std::string_view text) const;

  std::vector<Pattern> patterns_;  // sorted by text
  std::array<bool, 256> first_{};
};

}  // namespace ponder::text
