#include "text/stream_decoder.hpp"

#include "text/utf8.hpp"

namespace ponder::text {

std::string StreamDecoder::push(std::int32_t id) {
  std::string out;
  if (skip_special_ && tokenizer_.is_special(id)) return out;
  tail_ += tokenizer_.bytes(id);
  tail_.erase(0, append_repaired(out, tail_, true));
  return out;
}

std::string StreamDecoder::finish() {
  std::string out = repair_utf8(tail_);
  tail_.clear();
  return out;
}

}  // namespace ponder::text
