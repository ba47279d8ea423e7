// One code point at a time; private to this room.
#pragma once

#include <cstddef>
#include <string_view>

#include <utf8proc.h>

namespace ponder::decide {

struct CodePoint {
  char32_t code;      // U+FFFD where `valid` is false
  std::size_t bytes;  // 1 where `valid` is false
  bool valid;
};

// at < text.size()
inline CodePoint code_point_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {first, 1, true};
  utf8proc_int32_t code = 0;
  const auto rest = static_cast<utf8proc_ssize_t>(text.size() - at);
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + at);
  const utf8proc_ssize_t n = utf8proc_iterate(bytes, rest, &code);
  if (n <= 0) return {U'\uFFFD', 1, false};
  return {static_cast<char32_t>(code), static_cast<std::size_t>(n), true};
}

}  // namespace ponder::decide
