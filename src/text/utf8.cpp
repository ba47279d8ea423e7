#include "text/utf8.hpp"

#include <cstring>

namespace ponder::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

struct Lead {
  std::size_t length = 0;  // 0: no sequence starts with this byte
  unsigned char low = 0x80;
  unsigned char high = 0xBF;  // bounds of the second byte
};

Lead lead_of(unsigned char b) {
  if (b >= 0xC2 && b <= 0xDF) return {2, 0x80, 0xBF};
  if (b == 0xE0) return {3, 0xA0, 0xBF};
  if (b == 0xED) return {3, 0x80, 0x9F};
  if (b >= 0xE1 && b <= 0xEF) return {3, 0x80, 0xBF};
  if (b == 0xF0) return {4, 0x90, 0xBF};
  if (b >= 0xF1 && b <= 0xF3) return {4, 0x80, 0xBF};
  if (b == 0xF4) return {4, 0x80, 0x8F};
  return {};
}

}  // namespace

Utf8Part scan_utf8(std::string_view bytes) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  if (at(0) < 0x80) return {1, Utf8Part::Kind::good};
  const Lead lead = lead_of(at(0));
  if (lead.length == 0) return {1, Utf8Part::Kind::broken};
  for (std::size_t i = 1; i < lead.length; ++i) {
    if (i == bytes.size()) return {i, Utf8Part::Kind::cut};
    const unsigned char low = i == 1 ? lead.low : 0x80;
    const unsigned char high = i == 1 ? lead.high : 0xBF;
    if (at(i) < low || at(i) > high) return {i, Utf8Part::Kind::broken};
  }
  return {lead.length, Utf8Part::Kind::good};
}

std::size_t valid_utf8_prefix(std::string_view bytes) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    std::uint64_t word = 0;
    if (at + sizeof word <= bytes.size()) {
      std::memcpy(&word, bytes.data() + at, sizeof word);
      if ((word & 0x8080808080808080U) == 0) {
        at += sizeof word;
        continue;
      }
    }
    const Utf8Part part = scan_utf8(bytes.substr(at));
    if (part.kind != Utf8Part::Kind::good) break;
    at += part.length;
  }
  return at;
}

std::size_t append_repaired(std::string& out, std::string_view bytes, bool keep_tail) {
  std::size_t at = 0;
  while (at < bytes.size()) {
    const std::size_t good = valid_utf8_prefix(bytes.substr(at));
    out += bytes.substr(at, good);
    at += good;
    if (at == bytes.size()) break;
    const Utf8Part part = scan_utf8(bytes.substr(at));
    if (keep_tail && part.kind == Utf8Part::Kind::cut) break;
    out += kReplacement;
    at += part.length;
  }
  return at;
}

std::string repair_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  append_repaired(out, bytes);
  return out;
}

void append_code_point(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

}  // namespace ponder::text
