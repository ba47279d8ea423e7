// How Python writes values: str(), repr() and json.dumps().
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/error.hpp"
#include "text/template_ops.hpp"
#include "text/template_unicode.hpp"

namespace ponder::text::jinja {
namespace {

using Kind = Value::Kind;

constexpr std::size_t kMaxReprDepth = 2 * kMaxValueDepth;

void append_quoted(TextBuilder& out, const Text& text) {
  const std::string_view bytes = text.view();
  const bool single = bytes.find('\'') == std::string_view::npos || bytes.find('"') != std::string_view::npos;
  const char quote = single ? '\'' : '"';
  out.budget().spend(text.length() / 16);
  out.append({&quote, 1});
  MarkReader marks(text);
  std::string piece;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode(bytes, at);
    piece.clear();
    if (c.value == static_cast<unsigned char>(quote) || c.value == '\\') {
      piece = {'\\', static_cast<char>(c.value)};
    } else if (c.value == '\n') {
      piece = "\\n";
    } else if (c.value == '\r') {
      piece = "\\r";
    } else if (c.value == '\t') {
      piece = "\\t";
    } else if (is_printable(c.value)) {
      piece = bytes.substr(at, c.bytes);
    } else if (c.value < 0x100) {
      piece = fmt::format("\\x{:02x}", static_cast<unsigned>(c.value));
    } else if (c.value < 0x10000) {
      piece = fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
    } else {
      piece = fmt::format("\\U{:08x}", static_cast<unsigned>(c.value));
    }
    out.append(piece, marks.tainted(at, at + c.bytes));
    at += c.bytes;
  }
  out.append({&quote, 1});
}

void append_items_repr(TextBuilder& out, const Value& value, std::size_t depth) {
  const Sequence& sequence = value.sequence();
  const bool tuple = value.is(Kind::tuple);
  out.append(tuple ? "(" : "[");
  for (std::size_t i = 0; i < sequence.items.size(); ++i) {
    if (i > 0) out.append(", ");
    append_repr(out, sequence.items[i], depth);
  }
  if (tuple && sequence.items.size() == 1) out.append(",");
  out.append(tuple ? ")" : "]");
}

void append_range_repr(TextBuilder& out, const Sequence& range) {
  out.append(range.step == 1 ? fmt::format("range({}, {})", range.start, range.stop)
                             : fmt::format("range({}, {}, {})", range.start, range.stop, range.step));
}

}  // namespace

void Object::append_repr(TextBuilder& /*out*/, std::size_t /*depth*/) const {
  fail(ErrorKind::unsupported, "a {} has no text that could be printed", type_name());
}

std::string float_repr(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[40];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), std::chars_format::scientific);
  const std::string_view shortest(buffer, static_cast<std::size_t>(end.ptr - buffer));
  const std::size_t e = shortest.find('e');
  std::string digits(1, shortest[0]);
  if (e > 1) digits += shortest.substr(2, e - 2);
  int exponent = 0;
  const std::size_t from = e + (shortest[e + 1] == '+' ? 2 : 1);
  std::from_chars(shortest.data() + from, shortest.data() + shortest.size(), exponent);

  std::string out = std::signbit(value) ? "-" : "";
  const auto count = static_cast<int>(digits.size());
  if (exponent < -4 || exponent >= 16) {
    out += digits[0];
    if (count > 1) out += "." + digits.substr(1);
    return out + fmt::format("e{}{:02}", exponent < 0 ? '-' : '+', std::abs(exponent));
  }
  if (exponent < 0) return out + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  if (count <= exponent + 1)
    return out + digits + std::string(static_cast<std::size_t>(exponent + 1 - count), '0') + ".0";
  const std::size_t whole = static_cast<std::size_t>(exponent) + 1;
  return out + digits.substr(0, whole) + "." + digits.substr(whole);
}

void append_str(TextBuilder& out, const Value& value) {
  if (value.is_string()) {
    out.append(value.text());
  } else if (!value.is_undefined()) {
    append_repr(out, value);
  }
}

Text to_text(Budget& budget, const Value& value) {
  if (value.is_string()) return value.text();
  TextBuilder out(budget);
  append_str(out, value);
  return out.take();
}

void append_dict_repr(TextBuilder& out, const Dict& dict, std::size_t depth) {
  out.append("{");
  bool first = true;
  for (const auto& [key, item] : dict.entries) {
    if (!first) out.append(", ");
    first = false;
    append_repr(out, key, depth);
    out.append(": ");
    append_repr(out, item, depth);
  }
  out.append("}");
}

void append_repr(TextBuilder& out, const Value& value, std::size_t depth) {
  out.budget().spend(1);
  if (depth > kMaxReprDepth) fail(ErrorKind::too_large, "a printed value is nested too deeply");
  switch (value.kind()) {
    case Kind::undefined:
      return out.append("Undefined");
    case Kind::none:
      return out.append("None");
    case Kind::boolean:
      return out.append(value.as_bool() ? "True" : "False");
    case Kind::integer:
      return out.append(std::to_string(value.as_integer()));
    case Kind::big_integer:
      return out.append(value.text());
    case Kind::floating:
      return out.append(float_repr(value.as_float()));
    case Kind::string:
      if (value.text().markup()) out.append("Markup(");
      append_quoted(out, value.text());
      if (value.text().markup()) out.append(")");
      return;
    case Kind::list:
    case Kind::tuple:
      return append_items_repr(out, value, depth + 1);
    case Kind::range:
      return append_range_repr(out, value.sequence());
    case Kind::view:
      out.append(value.sequence().label);
      out.append("([");
      for (std::size_t i = 0; i < value.sequence().items.size(); ++i) {
        if (i > 0) out.append(", ");
        append_repr(out, value.sequence().items[i], depth + 1);
      }
      return out.append("])");
    case Kind::dict:
      return append_dict_repr(out, value.mapping(), depth + 1);
    case Kind::iterator:
      fail(ErrorKind::unsupported, "an iterator has no text that could be printed (is \"| list\" missing?)");
    case Kind::object:
      return value.object().append_repr(out, depth + 1);
  }
}

// ---- JSON

namespace {

void append_json_string(TextBuilder& out, const Text& text, bool ascii) {
  out.budget().spend(text.length() / 16);
  out.append("\"");
  MarkReader marks(text);
  const std::string_view bytes = text.view();
  std::size_t copied = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    const CodePoint c = decode(bytes, at);
    std::string escaped;
    if (c.value == '"' || c.value == '\\') {
      escaped = {'\\', static_cast<char>(c.value)};
    } else if (c.value < 0x20) {
      constexpr std::string_view kShort = "bfnrt", kFrom = "\b\f\n\r\t";
      const std::size_t known = kFrom.find(static_cast<char>(c.value));
      escaped = known == std::string_view::npos ? fmt::format("\\u{:04x}", static_cast<unsigned>(c.value))
                                                : std::string{'\\', kShort[known]};
    } else if (ascii && c.value >= 0x10000) {
      const auto rest = static_cast<unsigned>(c.value - 0x10000);
      escaped = fmt::format("\\u{:04x}\\u{:04x}", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
    } else if (ascii && c.value >= 0x7F) {
      escaped = fmt::format("\\u{:04x}", static_cast<unsigned>(c.value));
    }
    if (!escaped.empty()) {
      out.append(text, copied, at);
      out.append(escaped, marks.tainted(at, at + c.bytes));
      copied = at + c.bytes;
    }
    at += c.bytes;
  }
  out.append(text, copied, bytes.size());
  out.append("\"");
}

std::string json_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return float_repr(value);
}

void append_json_scalar(TextBuilder& out, const Value& value) {
  switch (value.kind()) {
    case Kind::none:
      return out.append("null");
    case Kind::boolean:
      return out.append(value.as_bool() ? "true" : "false");
    case Kind::floating:
      return out.append(json_float(value.as_float()));
    case Kind::integer:
    case Kind::big_integer:
      return append_repr(out, value);
    default:
      fail(ErrorKind::invalid_input, "a value of type {} cannot be written as JSON", type_name(value));
  }
}

void append_json_key(TextBuilder& out, const Value& key, bool ascii) {
  if (key.is_string()) return append_json_string(out, key.text(), ascii);
  if (key.is(Kind::tuple)) fail(ErrorKind::invalid_input, "a tuple cannot be a key of a JSON object");
  out.append("\"");
  append_json_scalar(out, key);
  out.append("\"");
}

void new_line(TextBuilder& out, const JsonStyle& style, std::size_t level) {
  if (!style.indent.has_value()) return;
  out.append("\n");
  out.append_repeated(*style.indent, level);
}

void append_json_at(TextBuilder& out, const Value& value, const JsonStyle& style, std::size_t level);

void append_json_dict(TextBuilder& out, const Value& value, const JsonStyle& style, std::size_t level) {
  const auto entries = value.entries();
  if (entries.empty()) return out.append("{}");
  std::vector<std::size_t> places(entries.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (style.sort_keys) {
    std::stable_sort(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
      return std::is_lt(order(out.budget(), entries[a].first, entries[b].first, "<"));
    });
  }
  out.append("{");
  for (std::size_t i = 0; i < places.size(); ++i) {
    if (i > 0) out.append(style.item_separator);
    new_line(out, style, level + 1);
    append_json_key(out, entries[places[i]].first, style.ascii);
    out.append(style.key_separator);
    append_json_at(out, entries[places[i]].second, style, level + 1);
  }
  new_line(out, style, level);
  out.append("}");
}

void append_json_at(TextBuilder& out, const Value& value, const JsonStyle& style, std::size_t level) {
  out.budget().spend(1);
  if (value.is_string()) return append_json_string(out, value.text(), style.ascii);
  if (value.is_dict()) return append_json_dict(out, value, style, level);
  if (!value.is(Kind::list) && !value.is(Kind::tuple)) return append_json_scalar(out, value);
  const auto items = value.items();
  if (items.empty()) return out.append("[]");
  out.append("[");
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) out.append(style.item_separator);
    new_line(out, style, level + 1);
    append_json_at(out, items[i], style, level + 1);
  }
  new_line(out, style, level);
  out.append("]");
}

}  // namespace

void append_json(TextBuilder& out, const Value& value, const JsonStyle& style) {
  append_json_at(out, value, style, 0);
}

// ---- Numbers from text

namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty()) {
    const CodePoint c = decode(text, 0);
    if (!is_space(c.value)) break;
    text.remove_prefix(c.bytes);
  }
  while (!text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && (static_cast<unsigned char>(text[start]) & 0xC0) == 0x80) --start;
    if (!is_space(decode(text, start).value)) break;
    text = text.substr(0, start);
  }
  return text;
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  return c >= 'A' && c <= 'Z' ? c - 'A' + 10 : 99;
}

// The text without its digit-separating underscores; nothing when one is out of place.
std::optional<std::string> without_underscores(std::string_view text, int base) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      out.push_back(text[i]);
      continue;
    }
    const bool between =
        i > 0 && i + 1 < text.size() && digit_value(text[i - 1]) < base && digit_value(text[i + 1]) < base;
    if (!between) return std::nullopt;
  }
  return out;
}

// For a decimal number outside the range of doubles: whether it is too large and not too small.
bool overflows(std::string_view number) {
  const std::size_t e = number.find_first_of("eE");
  const std::string_view mantissa = number.substr(0, e);
  const std::size_t first = mantissa.find_first_of("123456789");
  if (first == std::string_view::npos) return false;
  const std::size_t dot = std::min(mantissa.find('.'), mantissa.size());
  const auto place = static_cast<std::int64_t>(dot) - static_cast<std::int64_t>(first);
  if (e == std::string_view::npos) return place > 0;
  std::string_view digits = number.substr(e + 1);
  if (digits.starts_with('+')) digits.remove_prefix(1);
  std::int64_t exponent = 0;
  const auto got = std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  if (got.ec == std::errc::result_out_of_range) return !digits.starts_with('-');
  return place + std::clamp<std::int64_t>(exponent, -(INT64_C(1) << 40), INT64_C(1) << 40) > 0;
}

}  // namespace

std::optional<double> parse_float(std::string_view text) {
  text = trimmed(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const double sign = negative ? -1.0 : 1.0;
  if (lower == "inf" || lower == "infinity") return sign * HUGE_VAL;
  if (lower == "nan") return sign * NAN;
  const std::optional<std::string> number = without_underscores(lower, 10);
  if (!number.has_value() || number->empty() ||
      number->find_first_not_of("0123456789.e+-") != std::string::npos) {
    return std::nullopt;
  }
  double value = 0;
  const char* end = number->data() + number->size();
  const auto got = std::from_chars(number->data(), end, value);
  if (got.ptr != end) return std::nullopt;
  if (got.ec == std::errc::result_out_of_range) return sign * (overflows(*number) ? HUGE_VAL : 0.0);
  if (got.ec != std::errc()) return std::nullopt;
  return sign * value;
}

std::optional<Value> parse_int(std::string_view text, int base) {
  text = trimmed(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  const auto prefixed = [&](char letter) {
    return text.size() > 2 && text[0] == '0' && (text[1] == letter || text[1] == letter - 32);
  };
  int radix = base;
  for (const auto& [letter, by] : {std::pair{'x', 16}, std::pair{'o', 8}, std::pair{'b', 2}}) {
    if ((base != 0 && base != by) || !prefixed(letter)) continue;
    radix = by;
    text.remove_prefix(2);
    if (text.starts_with('_')) text.remove_prefix(1);
    break;
  }
  const bool implied = radix == 0;
  if (implied) radix = 10;
  const std::optional<std::string> digits = without_underscores(text, radix);
  if (!digits.has_value() || digits->empty()) return std::nullopt;
  for (const char c : *digits) {
    if (digit_value(c) >= radix) return std::nullopt;
  }
  if (implied && digits->size() > 1 && (*digits)[0] == '0' &&
      digits->find_first_not_of('0') != std::string::npos) {
    return std::nullopt;
  }
  if (radix == 10) return Value::big_integer((negative ? "-" : "") + *digits);
  std::int64_t value = 0;
  const auto got = std::from_chars(digits->data(), digits->data() + digits->size(), value, radix);
  if (got.ec != std::errc()) fail(ErrorKind::too_large, "an integer does not fit in 64 bits");
  return negative ? -value : value;
}

}  // namespace ponder::text::jinja
