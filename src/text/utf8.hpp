// UTF-8 as this room reads it: strict, and repaired the way Python's bytes.decode("utf-8", "replace") does,
// one U+FFFD for every maximal ill-formed part (Unicode 15.0, section 3.9, "U+FFFD Substitution of Maximal
// Subparts").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ponder::text {

struct Utf8Part {
  enum class Kind : std::uint8_t {
    good,
    broken,
    cut
  };                       // cut: the text ends inside a sequence that may be good
  std::size_t length = 0;  // bytes, at least 1
  Kind kind = Kind::good;
};

// The sequence, or maximal ill-formed part, at the start of `bytes`; `bytes` must not be empty.
Utf8Part scan_utf8(std::string_view bytes);

// Length of the longest prefix that is well-formed.
std::size_t valid_utf8_prefix(std::string_view bytes);

// Appends `bytes` to `out` with every ill-formed part replaced by U+FFFD. When `keep_tail` is set, a sequence
// that the end cuts short is left out; returns the number of bytes consumed.
std::size_t append_repaired(std::string& out, std::string_view bytes, bool keep_tail = false);

std::string repair_utf8(std::string_view bytes);

void append_code_point(std::string& out, char32_t code_point);

// The code point at `at`, which must be the start of a sequence of well-formed text; sets its length.
inline char32_t decode_valid(const char* at, std::size_t& length) {
  const auto byte = [at](int i) { return static_cast<char32_t>(static_cast<unsigned char>(at[i])); };
  const char32_t lead = byte(0);
  if (lead < 0x80) {
    length = 1;
    return lead;
  }
  if (lead < 0xE0) {
    length = 2;
    return (lead & 0x1F) << 6 | (byte(1) & 0x3F);
  }
  if (lead < 0xF0) {
    length = 3;
    return (lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F);
  }
  length = 4;
  return (lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F);
}

// Start of the code point that ends just before `at` (> 0) in well-formed text.
inline std::size_t previous_start(std::string_view text, std::size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

}  // namespace ponder::text
