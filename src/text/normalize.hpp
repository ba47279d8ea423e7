// Unicode normalisation of well-formed UTF-8, linear in the text whatever it holds (a megabyte of combining
// marks is one run to sort). Data: utf8proc (Unicode 15 in 2.8); https://www.unicode.org/reports/tr15/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ponder::text {

enum class NormalForm : std::uint8_t { none, nfc, nfd, nfkc, nfkd };

// A stretch that was written anew: text[begin, end) became out[out_begin, out_end). Everything between two
// rewritten stretches was copied as it was.
struct Rewritten {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t out_begin = 0;
  std::size_t out_end = 0;
};

// `text` must be well-formed UTF-8. `rewritten`, when given, receives the stretches in order.
std::string normalize(std::string_view text, NormalForm form, std::vector<Rewritten>* rewritten = nullptr);

// True when a linear look at the text shows that normalize() would return it unchanged; false says nothing.
bool surely_normalized(std::string_view text, NormalForm form);

}  // namespace ponder::text
