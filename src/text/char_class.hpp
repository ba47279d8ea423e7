// The character classes that split patterns are written in, as bits of one byte per code point.
// Source: utf8proc's general categories (its Unicode version; code points assigned later are in no class).
#pragma once

#include <array>
#include <cstdint>

#include "text/utf8.hpp"

namespace ponder::text {

using CharClass = std::uint8_t;
inline constexpr CharClass kLetter = 1;    // \p{L}
inline constexpr CharClass kMark = 2;      // \p{M}
inline constexpr CharClass kNumber = 4;    // \p{N}
inline constexpr CharClass kSpace = 8;     // \s: White_Space, as Oniguruma and Python's regex have it
inline constexpr CharClass kNewline = 16;  // \r or \n
inline constexpr CharClass kUpper = 32;    // [\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]
inline constexpr CharClass kLower = 64;    // [\p{Ll}\p{Lm}\p{Lo}\p{M}]

// Any code point.
CharClass class_of_code_point(char32_t c);

namespace detail {

constexpr CharClass ascii_class(unsigned char c) {
  if (c >= 'A' && c <= 'Z') return kLetter | kUpper;
  if (c >= 'a' && c <= 'z') return kLetter | kLower;
  if (c >= '0' && c <= '9') return kNumber;
  if (c == '\r' || c == '\n') return kSpace | kNewline;
  if (c == ' ' || c == '\t' || c == '\v' || c == '\f') return kSpace;
  return 0;
}

inline constexpr auto kAsciiClass = [] {
  std::array<CharClass, 128> table{};
  for (unsigned char c = 0; c < 128; ++c) table[c] = ascii_class(c);
  return table;
}();

}  // namespace detail

struct ClassedChar {
  std::size_t length = 0;  // bytes
  CharClass bits = 0;
};

// The character at `at` of well-formed text.
inline ClassedChar classed_char(const char* at) {
  const auto lead = static_cast<unsigned char>(*at);
  if (lead < 128) return {1, detail::kAsciiClass[lead]};
  ClassedChar c;
  c.bits = class_of_code_point(decode_valid(at, c.length));
  return c;
}

// \w as Rust's regex has it, which the single_word flag of added tokens is defined by.
bool is_word_char(char32_t c);

}  // namespace ponder::text
