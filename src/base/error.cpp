#include "base/error.hpp"

namespace ponder {
namespace {

// Length of the well-formed UTF-8 sequence at the start of `s`, 0 when there is none.
std::size_t utf8_length(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t n = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || s.size() < n) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if ((lead == 0xE0 && byte(1) < 0xA0) || (lead == 0xED && byte(1) > 0x9F) ||
      (lead == 0xF0 && byte(1) < 0x90) || (lead == 0xF4 && byte(1) > 0x8F)) {
    return 0;
  }
  return n;
}

// C0, DEL, C1 controls and the Unicode line separators would break "one line"; direction marks would reorder
// it.
bool is_control(std::string_view sequence) {
  const auto first = static_cast<unsigned char>(sequence[0]);
  if (sequence.size() == 1) return first < 0x20 || first == 0x7F;
  const auto second = static_cast<unsigned char>(sequence[1]);
  if (sequence.size() == 2) return first == 0xC2 && second < 0xA0;
  const auto third = static_cast<unsigned char>(sequence[2]);
  if (sequence.size() != 3 || first != 0xE2) return false;
  if (second ==
      0x80) {  // U+2028 and U+2029 end lines; U+200E, U+200F and U+202A to U+202E turn the reading order
    return third == 0xA8 || third == 0xA9 || third == 0x8E || third == 0x8F ||
           (third >= 0xAA && third <= 0xAE);
  }
  return second == 0x81 && third >= 0xA6 && third <= 0xA9;  // U+2066 to U+2069: isolates
}

}  // namespace

std::string printable(std::string_view text, std::size_t limit) {
  std::string out;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t n = utf8_length(text.substr(at));
    const std::string_view piece = text.substr(at, n == 0 ? 1 : n);
    if (at + piece.size() > limit) return out + "...";
    if (n == 0 || is_control(piece)) {
      for (const char c : piece) out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out += piece;
    }
    at += piece.size();
  }
  return out;
}

}  // namespace ponder
