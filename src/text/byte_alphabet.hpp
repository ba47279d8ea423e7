// The printable characters that byte-level vocabularies spell bytes with (GPT-2's bytes_to_unicode):
// printable Latin-1 stands for itself, the other 68 bytes take U+0100 and up in order.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ponder::text {

namespace detail {

struct ByteAlphabet {
  std::array<char16_t, 256> letter{};
  std::array<std::int16_t, 0x144> byte{};  // -1: stands for no byte
};

inline constexpr ByteAlphabet kByteAlphabet = [] {
  ByteAlphabet a;
  a.byte.fill(-1);
  char16_t spare = 0x100;
  for (int b = 0; b < 256; ++b) {
    const bool plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    const char16_t c = plain ? static_cast<char16_t>(b) : spare++;
    a.letter[static_cast<std::size_t>(b)] = c;
    a.byte[c] = static_cast<std::int16_t>(b);
  }
  return a;
}();

}  // namespace detail

inline char32_t letter_of_byte(unsigned char b) {
  return detail::kByteAlphabet.letter[b];
}

// Bytes as a vocabulary spells them.
std::string spell_bytes(std::string_view bytes);

// Appends what a token's spelling stands for: its bytes when every character is in the alphabet, else the
// spelling as it is. Returns true in the first case. `spelling` must be well-formed UTF-8.
bool append_spelled_bytes(std::string& out, std::string_view spelling);

}  // namespace ponder::text
