// Whether bytes are well-formed UTF-8 (no overlong forms, no surrogates); internal to this room.
#pragma once

#include <cstddef>
#include <string_view>

namespace ponder::formats {

constexpr bool is_utf8(std::string_view text) noexcept {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto lead = static_cast<unsigned char>(text[at]);
    const std::size_t more = lead < 0x80 ? 0 : lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if ((lead >= 0x80 && lead < 0xC2) || lead > 0xF4 || more >= text.size() - at) return false;
    for (std::size_t i = 1; i <= more; ++i) {
      const auto byte = static_cast<unsigned char>(text[at + i]);
      // The first continuation byte of some leads has a narrower range.
      const unsigned char low = i > 1 ? 0x80 : lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
      const unsigned char high = i > 1 ? 0xBF : lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
      if (byte < low || byte > high) return false;
    }
    at += more + 1;
  }
  return true;
}

}  // namespace ponder::formats
