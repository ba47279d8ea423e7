#include "decide/python_format.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/error.hpp"
#include "decide/utf8_point.hpp"

namespace ponder::decide {
namespace {

// str.isprintable() of one code point.
bool is_printable(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(c))) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string escaped(char32_t c) {
  const auto code = static_cast<unsigned>(c);
  if (c == U'\t') return "\\t";
  if (c == U'\n') return "\\n";
  if (c == U'\r') return "\\r";
  if (code <= 0xFF) return fmt::format("\\x{:02x}", code);
  if (code <= 0xFFFF) return fmt::format("\\u{:04x}", code);
  return fmt::format("\\U{:08x}", code);
}

}  // namespace

std::string python_float(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  std::array<char, 32> buffer{};
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::scientific).ptr;
  std::string_view text(buffer.data(), static_cast<std::size_t>(end - buffer.data()));
  const std::string sign = text.front() == '-' ? "-" : "";
  text.remove_prefix(sign.size());
  const std::size_t e = text.find('e');
  const int exponent = std::atoi(text.data() + e + 1);  // the buffer ends in zeros
  std::string digits(text.substr(0, 1));
  if (e > 2) digits += text.substr(2, e - 2);
  const std::string_view all = digits;

  if (exponent < -4 || exponent >= 16) {
    return fmt::format("{}{}{}{}e{}{:02}", sign, all.substr(0, 1), all.size() > 1 ? "." : "", all.substr(1),
                       exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return fmt::format("{}0.{:0>{}}{}", sign, "", -exponent - 1, all);
  const auto whole = static_cast<std::size_t>(exponent) + 1;  // digits before the point
  if (all.size() <= whole) return fmt::format("{}{:0<{}}.0", sign, all, whole);
  return fmt::format("{}{}.{}", sign, all.substr(0, whole), all.substr(whole));
}

std::string python_repr(std::string_view text, std::size_t limit) {
  const bool has_single = text.find('\'') != text.npos;
  const char quote = has_single && text.find('"') == text.npos ? '"' : '\'';
  std::string out(1, quote);
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = code_point_at(text, at);
    if (at + point.bytes > limit) return out + quote + "...";
    if (!point.valid) {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[at]));
    } else if (point.code == static_cast<char32_t>(quote) || point.code == U'\\') {
      out += '\\';
      out += text[at];
    } else if (is_printable(point.code)) {
      out += text.substr(at, point.bytes);
    } else {
      out += escaped(point.code);
    }
    at += point.bytes;
  }
  return out + quote;
}

std::string python_repr_sorted(std::vector<std::string_view> names) {
  constexpr std::size_t shown = 64;
  std::sort(names.begin(), names.end());  // byte order of UTF-8 is code point order
  std::string out = "[";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) out += ", ";
    if (i == shown) {
      out += "...";
      break;
    }
    out += python_repr(names[i], 100);
  }
  return out + "]";
}

double python_round(double x, int decimals) {
  if (!std::isfinite(x) || decimals < 0 || decimals > 17) {
    fail(ErrorKind::internal, "cannot round {} to {} decimals", x, decimals);
  }
  std::array<char, 400> buffer{};  // sign, 309 digits, point, 17 decimals
  const auto written =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), x, std::chars_format::fixed, decimals);
  double rounded = 0.0;
  std::from_chars(buffer.data(), written.ptr, rounded);
  return rounded;
}

}  // namespace ponder::decide
