// printf-style and str.format formatting, and dates.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/error.hpp"
#include "text/template_builtins.hpp"
#include "text/template_unicode.hpp"

namespace ponder::text::jinja {
namespace {

using Kind = Value::Kind;

constexpr std::int64_t kMaxPrecision = 500;

// How a number is written: shared by both notations.
struct Spec {
  std::string fill = " ";
  char align = 0;  // < > ^ =
  char sign = '-';
  bool alternate = false;
  char grouping = 0;
  std::int64_t width = 0;
  std::int64_t precision = -1;
  char type = 0;
};

std::string float_digits(double value, const Spec& spec, char type, int precision) {
  switch (type) {
    case 'e':
      return spec.alternate ? fmt::format("{:#.{}e}", value, precision)
                            : fmt::format("{:.{}e}", value, precision);
    case 'E':
      return spec.alternate ? fmt::format("{:#.{}E}", value, precision)
                            : fmt::format("{:.{}E}", value, precision);
    case 'F':
      return spec.alternate ? fmt::format("{:#.{}F}", value, precision)
                            : fmt::format("{:.{}F}", value, precision);
    case 'G':
      return spec.alternate ? fmt::format("{:#.{}G}", value, precision)
                            : fmt::format("{:.{}G}", value, precision);
    case 'g':
      return spec.alternate ? fmt::format("{:#.{}g}", value, precision)
                            : fmt::format("{:.{}g}", value, precision);
    default:
      return spec.alternate ? fmt::format("{:#.{}f}", value, precision)
                            : fmt::format("{:.{}f}", value, precision);
  }
}

// The magnitude of an integer in the base its type names, without prefix.
std::string integer_digits(const Value& value, char type) {
  if (value.is(Kind::big_integer)) {
    if (type == 'x' || type == 'X' || type == 'o' || type == 'b') {
      fail(ErrorKind::too_large, "an integer beyond 64 bits can only be written in decimal");
    }
    const std::string& digits = value.text().bytes();
    return digits.starts_with('-') ? digits.substr(1) : digits;
  }
  const std::int64_t number = value.integer_or_bool();
  const std::uint64_t magnitude =
      number < 0 ? 0 - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
  switch (type) {
    case 'x':
      return fmt::format("{:x}", magnitude);
    case 'X':
      return fmt::format("{:X}", magnitude);
    case 'o':
      return fmt::format("{:o}", magnitude);
    case 'b':
      return fmt::format("{:b}", magnitude);
    default:
      return std::to_string(magnitude);
  }
}

bool negative(const Value& value) {
  if (value.is(Kind::floating)) return std::signbit(value.as_float()) && !std::isnan(value.as_float());
  if (value.is(Kind::big_integer)) return value.text().bytes().starts_with('-');
  return value.integer_or_bool() < 0;
}

std::string grouped(const std::string& digits, char separator, std::size_t every) {
  const std::size_t whole = std::min(digits.find_first_of(".eE"), digits.size());
  std::string out;
  for (std::size_t i = 0; i < whole; ++i) {
    if (i > 0 && (whole - i) % every == 0) out.push_back(separator);
    out.push_back(digits[i]);
  }
  return out + digits.substr(whole);
}

void padded(TextBuilder& out, const Text& prefix, const Text& body, const Spec& spec, char default_align) {
  const char align = spec.align == 0 ? default_align : spec.align;
  const auto length = static_cast<std::int64_t>(prefix.length() + body.length());
  const std::size_t missing = spec.width > length ? static_cast<std::size_t>(spec.width - length) : 0;
  const std::size_t left = align == '>' ? missing : align == '^' ? missing / 2 : 0;
  out.append_repeated(spec.fill, left);
  out.append(prefix);
  if (align == '=') out.append_repeated(spec.fill, missing);
  out.append(body);
  if (align == '<' || align == '^') out.append_repeated(spec.fill, missing - left);
}

// ---- text % values

class PercentFormat {
 public:
  PercentFormat(Budget& budget, const Text& format, const Value& values)
      : budget_(budget), format_(format), values_(values), out_(budget) {}

  Text run() {
    const std::string_view bytes = format_.view();
    while (at_ < bytes.size()) {
      const std::size_t percent = std::min(bytes.find('%', at_), bytes.size());
      out_.append(format_, at_, percent);
      at_ = percent;
      if (at_ < bytes.size()) directive();
    }
    const bool mapping =
        values_.is_undefined() || values_.is_dict() || values_.is(Kind::list) || values_.is(Kind::range);
    const std::size_t given = values_.is(Kind::tuple) ? values_.items().size() : mapping ? used_ : 1;
    if (used_ < given && !keyed_) fail(ErrorKind::invalid_input, "not all arguments are used by the format");
    return out_.take();
  }

 private:
  char peek() const { return at_ < format_.bytes().size() ? format_.bytes()[at_] : '\0'; }

  const Value& next_value() {
    const std::size_t index = used_++;
    if (values_.is(Kind::tuple)) {
      if (index < values_.items().size()) return values_.items()[index];
    } else if (index == 0) {
      return values_;
    }
    fail(ErrorKind::invalid_input, "not enough arguments for the format");
  }

  std::int64_t number() {
    if (peek() == '*') {
      ++at_;
      const Value& value = next_value();
      if (!is_integer(value)) fail(ErrorKind::invalid_input, "a format's * needs an integer");
      return value.integer_or_bool();
    }
    std::int64_t value = 0;
    while (peek() >= '0' && peek() <= '9') {
      value = std::min<std::int64_t>(value * 10 + (peek() - '0'), INT32_MAX);
      ++at_;
    }
    return value;
  }

  void directive() {
    ++at_;
    Spec spec;
    const Value* keyed = nullptr;
    if (peek() == '(') {
      const std::size_t close = format_.bytes().find(')', at_);
      if (close == std::string::npos) fail(ErrorKind::invalid_input, "a format's key is not closed");
      if (!values_.is_dict()) fail(ErrorKind::invalid_input, "a format with keys needs a dict");
      const std::string key = format_.bytes().substr(at_ + 1, close - at_ - 1);
      keyed = values_.mapping().find_name(key);
      if (keyed == nullptr)
        fail(ErrorKind::invalid_input, "the format's key \"{}\" is not in the dict", printable(key));
      keyed_ = true;
      at_ = close + 1;
    }
    bool zero = false;
    for (; std::string_view("#0- +").find(peek()) != std::string_view::npos && peek() != '\0'; ++at_) {
      const char flag = peek();
      if (flag == '#') spec.alternate = true;
      if (flag == '0') zero = true;
      if (flag == '-') spec.align = '<';
      if (flag == '+' || (flag == ' ' && spec.sign != '+')) spec.sign = flag;
    }
    spec.width = number();
    if (spec.width < 0) {
      spec.align = '<';
      spec.width = spec.width == INT64_MIN ? INT64_MAX : -spec.width;
    }
    if (peek() == '.') {
      ++at_;
      spec.precision = std::max<std::int64_t>(number(), 0);
    }
    if (peek() == 'h' || peek() == 'l' || peek() == 'L') ++at_;
    spec.type = peek();
    if (spec.type == '\0') fail(ErrorKind::invalid_input, "the format ends inside a directive");
    ++at_;
    if (spec.type == '%') {
      out_.append("%");
      return;
    }
    if (zero && spec.align == 0) {
      spec.align = '=';
      spec.fill = "0";
    }
    write(spec, keyed != nullptr ? *keyed : next_value());
  }

  void write(Spec& spec, const Value& value) {
    switch (spec.type) {
      case 's':
      case 'r':
      case 'a': {
        if (spec.align == '=') spec = {" ", 0, '-', false, 0, spec.width, spec.precision, spec.type};
        TextBuilder text(budget_);
        if (spec.type == 's') {
          append_str(text, value);
        } else {
          append_repr(text, value);
        }
        return write_text(spec, text.take());
      }
      case 'c':
        return write_text(spec, character(value));
      case 'd':
      case 'i':
      case 'u':
      case 'x':
      case 'X':
      case 'o':
        return write_integer(spec, value);
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
        return write_float(spec, value);
      default:
        fail(ErrorKind::invalid_input, "unsupported format character \"{}\"", printable({&spec.type, 1}));
    }
  }

  static Text character(const Value& value) {
    if (value.is_string() && value.text().length() == 1) return value.text();
    if (!is_integer(value)) fail(ErrorKind::invalid_input, "%c needs an integer or one character");
    const std::int64_t number = value.integer_or_bool();
    if (number < 0 || number > 0x10FFFF || (number >= 0xD800 && number < 0xE000)) {
      fail(ErrorKind::invalid_input, "%c: {} is not a character", number);
    }
    std::string out;
    encode(out, static_cast<char32_t>(number));
    return Text(out);
  }

  void write_text(const Spec& spec, Text text) {
    if (spec.precision >= 0 && static_cast<std::uint64_t>(spec.precision) < text.length()) {
      text = cut(budget_, text, 0, text.offset(static_cast<std::size_t>(spec.precision)));
    }
    padded(out_, Text(), text, spec, '>');
  }

  void write_integer(Spec& spec, const Value& given) {
    Value value = given;
    const bool decimal = spec.type == 'd' || spec.type == 'i' || spec.type == 'u';
    if (given.is(Kind::floating) && decimal && std::isfinite(given.as_float())) {
      value = Value::big_integer(fmt::format("{:.0f}", std::trunc(given.as_float()) + 0.0));
    }
    need_defined(value);
    if (!is_integer(value) && !value.is(Kind::big_integer)) {
      fail(ErrorKind::invalid_input, "%{} needs a number, not {}", spec.type, type_name(value));
    }
    std::string prefix = negative(value) ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
    if (spec.alternate && !decimal) prefix += std::string("0") + spec.type;
    TextBuilder digits(budget_);
    const std::string plain = integer_digits(value, spec.type);
    if (spec.precision > static_cast<std::int64_t>(plain.size())) {
      digits.append_repeated("0", static_cast<std::size_t>(spec.precision) - plain.size());
    }
    digits.append(plain);
    padded(out_, Text(prefix), digits.take(), spec, '>');
  }

  void write_float(const Spec& spec, const Value& value) {
    need_defined(value);
    if (!is_number(value))
      fail(ErrorKind::invalid_input, "%{} needs a number, not {}", spec.type, type_name(value));
    const double number = to_double(value);
    if (spec.precision > kMaxPrecision)
      fail(ErrorKind::too_large, "a precision of more than {}", kMaxPrecision);
    const bool minus = std::signbit(number) && !std::isnan(number);
    const std::string digits = float_digits(std::fabs(number), spec, spec.type,
                                            spec.precision < 0 ? 6 : static_cast<int>(spec.precision));
    padded(out_,
           Text(minus              ? "-"
                : spec.sign == '-' ? ""
                                   : std::string(1, spec.sign)),
           Text(digits), spec, '>');
  }

  Budget& budget_;
  const Text& format_;
  const Value& values_;
  TextBuilder out_;
  std::size_t at_ = 0;
  std::size_t used_ = 0;
  bool keyed_ = false;
};

// ---- The format mini-language

Spec parse_spec(std::string_view text) {
  Spec spec;
  std::size_t at = 0;
  const auto peek = [&] { return at < text.size() ? text[at] : '\0'; };
  const auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  const std::size_t first = text.empty() ? 0 : decode(text, 0).bytes;
  if (first > 0 && first < text.size() && is_align(text[first])) {
    spec.fill = text.substr(0, first);
    spec.align = text[first];
    at = first + 1;
  } else if (is_align(peek())) {
    spec.align = text[at++];
  }
  if (peek() == '+' || peek() == '-' || peek() == ' ') spec.sign = text[at++];
  if (peek() == '#') {
    spec.alternate = true;
    ++at;
  }
  if (peek() == '0') {
    if (spec.align == 0) {
      spec.align = '=';
      spec.fill = "0";
    }
    ++at;
  }
  const auto number = [&] {
    std::int64_t value = 0;
    while (peek() >= '0' && peek() <= '9')
      value = std::min<std::int64_t>(value * 10 + (text[at++] - '0'), INT32_MAX);
    return value;
  };
  spec.width = number();
  if (peek() == ',' || peek() == '_') spec.grouping = text[at++];
  if (peek() == '.') {
    ++at;
    if (peek() < '0' || peek() > '9')
      fail(ErrorKind::invalid_input, "a format specification without its precision");
    spec.precision = number();
  }
  if (at < text.size()) spec.type = text[at++];
  if (at != text.size())
    fail(ErrorKind::invalid_input, "not a format specification: \"{}\"", printable(text));
  return spec;
}

[[noreturn]] void bad_type(const Spec& spec, const Value& value) {
  fail(ErrorKind::invalid_input, "the format type \"{}\" does not fit a value of type {}",
       printable({&spec.type, 1}), type_name(value));
}

std::string sign_text(bool minus, const Spec& spec) {
  return minus ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
}

Text format_integer(Budget& budget, const Value& value, const Spec& spec) {
  if (spec.precision >= 0) fail(ErrorKind::invalid_input, "an integer is formatted without precision");
  const char type = spec.type == 'n' || spec.type == 0 ? 'd' : spec.type;
  if (std::string_view("dxXob").find(type) == std::string_view::npos) bad_type(spec, value);
  std::string prefix = sign_text(negative(value), spec);
  if (spec.alternate && type != 'd') prefix += std::string("0") + type;
  std::string digits = integer_digits(value, type);
  if (spec.grouping != 0) digits = grouped(digits, spec.grouping, type == 'd' ? 3 : 4);
  TextBuilder out(budget);
  padded(out, Text(prefix), Text(digits), spec, '>');
  return out.take();
}

Text format_float(Budget& budget, double value, const Spec& spec) {
  if (spec.precision > kMaxPrecision)
    fail(ErrorKind::too_large, "a precision of more than {}", kMaxPrecision);
  const double magnitude = std::fabs(value);
  std::string digits;
  if (spec.type == '%') {
    digits =
        float_digits(magnitude * 100, spec, 'f', spec.precision < 0 ? 6 : static_cast<int>(spec.precision)) +
        "%";
  } else if (spec.type == 0 && spec.precision < 0) {
    digits = float_repr(magnitude);
  } else {
    const char type = spec.type == 0 || spec.type == 'n' ? 'g' : spec.type;
    if (std::string_view("eEfFgG").find(type) == std::string_view::npos) bad_type(spec, value);
    digits = float_digits(magnitude, spec, type, spec.precision < 0 ? 6 : static_cast<int>(spec.precision));
    if (spec.type == 0 && digits.find_first_of(".enai") == std::string::npos) digits += ".0";
  }
  if (spec.grouping != 0) digits = grouped(digits, spec.grouping, 3);
  TextBuilder out(budget);
  padded(out, Text(sign_text(std::signbit(value) && !std::isnan(value), spec)), Text(digits), spec, '>');
  return out.take();
}

Text format_string(Budget& budget, const Value& value, const Spec& spec) {
  if ((spec.type != 0 && spec.type != 's') || spec.align == '=' || spec.sign != '-' || spec.alternate ||
      spec.grouping != 0) {
    bad_type(spec, value);
  }
  Text text = value.text();
  if (spec.precision >= 0 && static_cast<std::uint64_t>(spec.precision) < text.length()) {
    text = cut(budget, text, 0, text.offset(static_cast<std::size_t>(spec.precision)));
  }
  TextBuilder out(budget);
  padded(out, Text(), text, spec, '<');
  return out.take();
}

}  // namespace

Text format_percent(Budget& budget, const Text& format, const Value& values) {
  Text out = PercentFormat(budget, format, values).run();
  return format.markup() ? Text(out.bytes(), out.marks(), true) : out;
}

Text format_value(Budget& budget, const Value& value, std::string_view text) {
  if (text.empty()) return to_text(budget, value);
  const Spec spec = parse_spec(text);
  if (value.is_string()) return format_string(budget, value, spec);
  if (value.is(Kind::floating)) return format_float(budget, value.as_float(), spec);
  if (!is_number(value)) {
    fail(ErrorKind::invalid_input, "a value of type {} is formatted without specification", type_name(value));
  }
  if (std::string_view("eEfFgG%").find(spec.type) != std::string_view::npos && spec.type != 0) {
    return format_float(budget, to_double(value), spec);
  }
  return format_integer(budget, value, spec);
}

Text format_braces(Budget& budget, const Text& format, const CallArgs& args) {
  TextBuilder out(budget);
  const std::string_view bytes = format.view();
  std::size_t automatic = 0;
  for (std::size_t at = 0; at < bytes.size();) {
    budget.spend(1);
    const std::size_t brace = std::min(bytes.find_first_of("{}", at), bytes.size());
    out.append(format, at, brace);
    if (brace == bytes.size()) break;
    if (brace + 1 < bytes.size() && bytes[brace + 1] == bytes[brace]) {
      out.append(format, brace, brace + 1);
      at = brace + 2;
      continue;
    }
    const std::size_t close = bytes.find('}', brace);
    if (bytes[brace] == '}' || close == std::string_view::npos) {
      fail(ErrorKind::invalid_input, "format: a brace without its partner");
    }
    std::string_view field = bytes.substr(brace + 1, close - brace - 1);
    at = close + 1;
    const std::size_t colon = field.find(':');
    const std::string_view spec =
        colon == std::string_view::npos ? std::string_view() : field.substr(colon + 1);
    field = field.substr(0, colon);
    const std::size_t bang = field.find('!');
    const std::string_view conversion =
        bang == std::string_view::npos ? std::string_view() : field.substr(bang);
    field = field.substr(0, bang);
    if (field.find_first_of(".[") != std::string_view::npos || spec.find('{') != std::string_view::npos) {
      fail(ErrorKind::unsupported, "format: attributes, items and nested fields are refused (\"{}\")",
           printable(field));
    }
    const Value* value = nullptr;
    if (field.empty() || (field[0] >= '0' && field[0] <= '9')) {
      std::size_t index = automatic;
      if (field.empty()) {
        ++automatic;
      } else {
        const auto got = std::from_chars(field.data(), field.data() + field.size(), index);
        if (got.ec != std::errc() || got.ptr != field.data() + field.size()) index = SIZE_MAX;
      }
      if (index < args.positional.size()) value = &args.positional[index];
    } else {
      const auto named = std::find_if(args.named.begin(), args.named.end(),
                                      [&](const auto& arg) { return arg.first == field; });
      if (named != args.named.end()) value = &named->second;
    }
    if (value == nullptr)
      fail(ErrorKind::invalid_input, "format: no argument for the field \"{}\"", printable(field));
    if (conversion.empty()) {
      out.append(format_value(budget, *value, spec));
      continue;
    }
    if (conversion != "!s" && conversion != "!r") {
      fail(ErrorKind::invalid_input, "format: unknown conversion \"{}\"", printable(conversion));
    }
    TextBuilder shown(budget);
    if (conversion == "!s") {
      append_str(shown, *value);
    } else {
      append_repr(shown, *value);
    }
    out.append(format_value(budget, shown.take_value(), spec));
  }
  return out.take();
}

}  // namespace ponder::text::jinja
