#include "text/byte_alphabet.hpp"

#include "text/utf8.hpp"

namespace ponder::text {

std::string spell_bytes(std::string_view bytes) {
  std::string out;
  out.reserve(2 * bytes.size());
  for (const char b : bytes) append_code_point(out, letter_of_byte(static_cast<unsigned char>(b)));
  return out;
}

bool append_spelled_bytes(std::string& out, std::string_view spelling) {
  const std::size_t before = out.size();
  for (std::size_t at = 0, length = 0; at < spelling.size(); at += length) {
    const char32_t c = decode_valid(spelling.data() + at, length);
    const int byte = c < detail::kByteAlphabet.byte.size() ? detail::kByteAlphabet.byte[c] : -1;
    if (byte < 0) {
      out.resize(before);
      out += spelling;
      return false;
    }
    out += static_cast<char>(static_cast<unsigned char>(byte));
  }
  return true;
}

}  // namespace ponder::text
