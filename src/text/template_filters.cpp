// Filters on text, numbers and single values.
#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.hpp"
#include "text/template_interp.hpp"
#include "text/template_unicode.hpp"

namespace ponder::text::jinja {
namespace {

using Kind = Value::Kind;

// str(value), HTML-safety kept.
Text soft(Interp& interp, const Value& value) {
  return to_text(interp.budget(), value);
}

Value with_markup(Text text, bool markup) {
  if (text.markup() == markup) return make_text(std::move(text));
  return make_text(Text(text.bytes(), text.marks(), markup));
}

template <Case form>
Value case_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("a case filter", args, {});
  const Text text = soft(interp, input);
  return with_markup(change_case(interp.budget(), text, form), text.markup());
}

// Each word's first letter raised and the rest lowered; words begin after white space and after - ( { [ <.
Value title_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("title", args, {});
  const Text text = soft(interp, input);
  Budget& budget = interp.budget();
  TextBuilder out(budget);
  const auto separates = [](char32_t c) {
    return is_space(c) || c == '-' || c == '(' || c == '{' || c == '[' || c == '<';
  };
  for (std::size_t at = 0; at < text.bytes().size();) {
    budget.spend(1);
    const CodePoint first = decode(text.view(), at);
    std::size_t end = at + first.bytes;
    while (end < text.bytes().size()) {
      const CodePoint c = decode(text.view(), end);
      if (separates(c.value) != separates(first.value)) break;
      end += c.bytes;
    }
    out.append(change_case(budget, cut(budget, text, at, at + first.bytes), Case::upper));
    out.append(change_case(budget, cut(budget, text, at + first.bytes, end), Case::lower));
    at = end;
  }
  return out.take_value();
}

Value trim_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("trim", args, {"chars"});
  const Text text = soft(interp, input);
  return with_markup(strip(interp.budget(), text, p.text_or_none(0), Side::both), text.markup());
}

Value replace_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("replace", args, {"old", "new", "count"});
  const std::int64_t count = p.none(2) ? -1 : p.integer(2, -1);
  return make_text(
      replace(interp.budget(), soft(interp, input), soft(interp, p.need(0)), soft(interp, p.need(1)), count));
}

Value center_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("center", args, {"width"});
  return make_text(pad(interp.budget(), soft(interp, input), p.integer(0, 80), " ", Side::both));
}

Value indent_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("indent", args, {"width", "first", "blank"});
  Budget& budget = interp.budget();
  need_defined(input);
  if (!input.is_string()) fail(ErrorKind::invalid_input, "indent needs a string, not {}", type_name(input));
  const Value width = p.get(0, 4);
  const Text step = width.is_string() ? width.text() : repeat(budget, Text(" "), p.integer(0, 4));
  const bool blank = p.flag(2, false);
  TextBuilder whole(budget);
  whole.append(input.text());
  whole.append("\n");  // so that the last line counts even when it is empty
  TextBuilder out(budget);
  bool first = true;
  for (const Value& line : split_lines(budget, whole.take(), false)) {
    if (!first) out.append("\n");
    const bool indented = first ? p.flag(1, false) : blank || !line.text().bytes().empty();
    if (indented) out.append(step);
    out.append(line.text());
    first = false;
  }
  return out.take_value(input.text().markup());
}

Value truncate_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("truncate", args, {"length", "killwords", "end", "leeway"});
  need_defined(input);
  if (!input.is_string()) fail(ErrorKind::invalid_input, "truncate needs a string, not {}", type_name(input));
  const Text& text = input.text();
  const Text end = p.has(2) ? p.text(2) : Text("...");
  const std::int64_t length = p.integer(0, 255), leeway = p.none(3) ? 5 : p.integer(3, 5);
  const auto end_length = static_cast<std::int64_t>(end.length());
  if (length < end_length || leeway < 0)
    fail(ErrorKind::invalid_input, "truncate: the length or leeway is too small");
  // Written so that no sum can overflow.
  if (static_cast<std::int64_t>(text.length()) - leeway <= length) return input;
  Text kept = cut(interp.budget(), text, 0, text.offset(static_cast<std::size_t>(length - end_length)));
  if (!p.flag(1, false)) {
    const std::size_t space = kept.bytes().rfind(' ');
    if (space != std::string::npos) kept = cut(interp.budget(), kept, 0, space);
  }
  TextBuilder out(interp.budget());
  out.append(kept);
  out.append(end);
  return out.take_value();
}

Value wordcount_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("wordcount", args, {});
  const Text text = soft(interp, input);
  interp.budget().spend_bytes(text.bytes().size());
  std::int64_t count = 0;
  bool inside = false;
  for (std::size_t at = 0; at < text.bytes().size();) {
    const CodePoint c = decode(text.view(), at);
    const bool word = is_alnum(c.value) || c.value == '_';
    count += word && !inside ? 1 : 0;
    inside = word;
    at += c.bytes;
  }
  return count;
}

Value string_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("string", args, {});
  return make_text(soft(interp, input));
}

Value safe_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("safe", args, {});
  return with_markup(soft(interp, input), true);
}

Value escape_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("escape", args, {});
  Text text = soft(interp, input);
  return make_text(text.markup() ? std::move(text) : escape_html(interp.budget(), text));
}

Value forceescape_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("forceescape", args, {});
  return make_text(escape_html(interp.budget(), soft(interp, input)));
}

Value format_filter(Interp& interp, const Value& input, const CallArgs& args) {
  if (!args.positional.empty() && !args.named.empty()) {
    fail(ErrorKind::invalid_input, "format takes positional or named arguments, not both");
  }
  Value values = Value::tuple(args.positional);
  if (!args.named.empty()) {
    std::vector<std::pair<std::string, Value>> named = args.named;
    values = Value::dict(std::move(named));
  }
  return make_text(format_percent(interp.budget(), soft(interp, input), values));
}

void append_quoted(TextBuilder& out, const Text& text, bool query) {
  MarkReader marks(text);
  out.budget().spend(text.bytes().size() / 16);
  for (std::size_t at = 0; at < text.bytes().size(); ++at) {
    const char c = text.bytes()[at];
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '_' || c == '.' || c == '-' || c == '~' || (c == '/' && !query);
    const bool tainted = marks.tainted(at, at + 1);
    if (plain) {
      out.append({&c, 1}, tainted);
    } else if (query && c == ' ') {
      out.append("+", tainted);
    } else {
      out.append(fmt::format("%{:02X}", static_cast<unsigned char>(c)), tainted);
    }
  }
}

Value urlencode_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("urlencode", args, {});
  TextBuilder out(interp.budget());
  if (input.is_string() || !iterable(input)) {
    append_quoted(out, soft(interp, input), false);
    return out.take_value();
  }
  const auto pair = [&](const Value& key, const Value& value) {
    if (out.size() > 0) out.append("&");
    append_quoted(out, soft(interp, key), true);
    out.append("=");
    append_quoted(out, soft(interp, value), true);
  };
  if (input.is_dict()) {
    for (const auto& [key, value] : input.entries()) pair(key, value);
    return out.take_value();
  }
  for (const Value& item : iterate(interp.budget(), input)) {
    const std::vector<Value> parts = iterate(interp.budget(), item);
    if (parts.size() != 2) fail(ErrorKind::invalid_input, "urlencode needs pairs of key and value");
    pair(parts[0], parts[1]);
  }
  return out.take_value();
}

// Hugging Face's: json.dumps(value, ensure_ascii, indent, separators, sort_keys), nothing escaped for HTML.
Value tojson_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("tojson", args, {"ensure_ascii", "indent", "separators", "sort_keys"});
  JsonStyle style;
  style.ascii = p.flag(0, false);
  style.sort_keys = p.flag(3, false);
  if (!p.none(1)) {
    const Value& indent = p.need(1);
    if (indent.is_string()) {
      style.indent = indent.as_string();
    } else {
      const std::int64_t width = std::max<std::int64_t>(p.integer(1, 0), 0);
      interp.budget().allow_text(static_cast<std::size_t>(width));
      style.indent = std::string(static_cast<std::size_t>(width), ' ');
    }
    style.item_separator = ",";
  }
  if (!p.none(2)) {
    const std::vector<Value> parts = iterate(interp.budget(), p.need(2));
    if (parts.size() != 2 || !parts[0].is_string() || !parts[1].is_string()) p.wrong_type(2, "two strings");
    style.item_separator = parts[0].as_string();
    style.key_separator = parts[1].as_string();
  }
  TextBuilder out(interp.budget());
  append_json(out, input, style);
  return out.take_value();
}

// ---- Numbers

Value int_of_float(double value) {
  if (std::isinf(value)) fail(ErrorKind::invalid_input, "int: infinity is no integer");
  return Value::big_integer(fmt::format("{:.0f}", std::trunc(value) == 0 ? 0.0 : std::trunc(value)));
}

Value int_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("int", args, {"default", "base"});
  need_defined(input);
  std::optional<double> as_float;
  if (input.is_string()) {
    interp.budget().spend_bytes(16 * input.text().bytes().size());
    const std::int64_t base = p.integer(1, 10);
    const bool valid = base == 0 || (base >= 2 && base <= 36);
    const auto parsed = valid ? parse_int(input.text().view(), static_cast<int>(base)) : std::nullopt;
    if (parsed.has_value()) return *parsed;
    as_float = parse_float(input.text().view());
  } else if (input.is(Kind::floating)) {
    as_float = input.as_float();
  } else if (is_integer(input)) {
    return input.integer_or_bool();
  } else if (input.is(Kind::big_integer)) {
    return input;
  }
  if (as_float.has_value() && !std::isnan(*as_float)) return int_of_float(*as_float);
  return p.get(0, 0);
}

Value float_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("float", args, {"default"});
  need_defined(input);
  if (is_number(input)) return to_double(input);
  if (input.is_string()) {
    interp.budget().spend_bytes(16 * input.text().bytes().size());
    if (const auto value = parse_float(input.text().view())) return *value;
  }
  return p.get(0, 0.0);
}

Value abs_filter(Interp& /*interp*/, const Value& input, const CallArgs& args) {
  const Params none("abs", args, {});
  return absolute(input);
}

// Python's round(): to even on ties, exact in decimal.
Value round_common(const Value& input, std::int64_t digits) {
  if (is_integer(input)) {
    const std::int64_t value = input.integer_or_bool();
    if (digits >= 0) return value;
    if (digits < -18) return 0;
    std::int64_t unit = 1;
    for (std::int64_t i = 0; i > digits; --i) unit *= 10;
    std::int64_t rest = value % unit;
    if (rest < 0) rest += unit;
    const std::int64_t below = checked_add(value, -rest);
    const bool up = rest > unit / 2 || (unit > 1 && rest == unit / 2 && (below / unit) % 2 != 0);
    return checked_add(below, up ? unit : 0);
  }
  const double value = input.as_float();
  if (!std::isfinite(value) || digits > 323) return value;
  if (digits >= 0)
    return parse_float(fmt::format("{:.{}f}", value, static_cast<int>(digits))).value_or(value);
  if (digits < -308) return std::copysign(0.0, value);
  const double unit = std::pow(10.0, static_cast<double>(-digits));
  return std::nearbyint(value / unit) * unit;
}

Value round_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("round", args, {"precision", "method"});
  need_defined(input);
  if (!is_number(input) || input.is(Kind::big_integer)) {
    fail(ErrorKind::invalid_input, "round needs a number, not {}", type_name(input));
  }
  const std::int64_t digits = p.integer(0, 0);
  const std::string method = p.has(1) ? to_text(interp.budget(), p.need(1)).bytes() : "common";
  if (method == "common") return round_common(input, digits);
  if (method != "ceil" && method != "floor")
    fail(ErrorKind::invalid_input, "round: method must be common, ceil or floor");
  const double unit = std::pow(10.0, static_cast<double>(digits));
  const double scaled = to_double(input) * unit;
  if (!std::isfinite(scaled) || unit == 0.0) fail(ErrorKind::invalid_input, "round: the number is too large");
  return (method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit;
}

// ---- Single values

Value default_filter(Interp& /*interp*/, const Value& input, const CallArgs& args) {
  const Params p("default", args, {"default_value", "boolean"});
  if (input.is_undefined() || (p.flag(1, false) && !truth(input))) return p.get(0, "");
  return input;
}

Value length_filter(Interp& /*interp*/, const Value& input, const CallArgs& args) {
  const Params none("length", args, {});
  const std::optional<std::size_t> length = length_of(input);
  if (!length.has_value())
    fail(ErrorKind::invalid_input, "a value of type {} has no length", type_name(input));
  return static_cast<std::int64_t>(*length);
}

Value attr_filter(Interp& interp, const Value& input, const CallArgs& args) {
  const Params p("attr", args, {"name"});
  const std::string& name = p.text(0).bytes();
  refuse_private(name, interp.line());
  need_defined(input);
  // Only what is an attribute in Python's sense: a dict's keys are not.
  return input.is_dict() ? find_method(input, name) : interp.attribute(input, name);
}

}  // namespace

const FilterInfo* find_text_filter(std::string_view name) {
  static const std::map<std::string_view, FilterInfo> kFilters = {
      {"abs", {abs_filter}},
      {"attr", {attr_filter}},
      {"capitalize", {case_filter<Case::capitalize>}},
      {"center", {center_filter}},
      {"count", {length_filter}},
      {"d", {default_filter}},
      {"default", {default_filter}},
      {"e", {escape_filter}},
      {"escape", {escape_filter}},
      {"float", {float_filter}},
      {"forceescape", {forceescape_filter}},
      {"format", {format_filter}},
      {"indent", {indent_filter}},
      {"int", {int_filter}},
      {"length", {length_filter}},
      {"lower", {case_filter<Case::lower>}},
      {"replace", {replace_filter}},
      {"round", {round_filter}},
      {"safe", {safe_filter}},
      {"string", {string_filter}},
      {"title", {title_filter}},
      {"tojson", {tojson_filter}},
      {"trim", {trim_filter}},
      {"truncate", {truncate_filter}},
      {"upper", {case_filter<Case::upper>}},
      {"urlencode", {urlencode_filter}},
      {"wordcount", {wordcount_filter}},
  };
  const auto at = kFilters.find(name);
  return at == kFilters.end() ? nullptr : &at->second;
}

}  // namespace ponder::text::jinja
