// Python's methods of str.
#include <algorithm>
#include <map>

#include "base/error.hpp"
#include "text/template_builtins.hpp"
#include "text/template_unicode.hpp"

namespace ponder::text::jinja {
namespace {

using Kind = Value::Kind;

struct Call {
  Budget& budget;
  const Text& self;
  std::string_view name;
  const CallArgs& args;

  Params params(std::initializer_list<std::string_view> names) const { return {name, args, names}; }
};

// The bytes that self[start:stop] covers; nothing when start is past the end.
std::optional<Mark> window(const Text& self, const Params& p, std::size_t start_at) {
  const auto length = static_cast<std::int64_t>(self.length());
  const auto place = [&](std::size_t i, std::int64_t missing) {
    const std::int64_t given = p.none(i) ? missing : p.integer(i, missing);
    return std::max<std::int64_t>(given < 0 ? given + length : given, 0);
  };
  const std::int64_t start = place(start_at, 0), stop = std::min(place(start_at + 1, length), length);
  if (start > length) return std::nullopt;
  const std::size_t begin = self.offset(static_cast<std::size_t>(start));
  return Mark{begin, std::max(begin, self.offset(static_cast<std::size_t>(stop)))};
}

// ---- Trimming, splitting, joining

Value strip_method(const Call& c) {
  const Params p = c.params({"chars"});
  const Side side = c.name == "lstrip" ? Side::left : c.name == "rstrip" ? Side::right : Side::both;
  return make_text(strip(c.budget, c.self, p.text_or_none(0), side));
}

Value split_method(const Call& c) {
  const Params p = c.params({"sep", "maxsplit"});
  const auto run = c.name == "split" ? split : rsplit;
  return Value::list(run(c.budget, c.self, p.text_or_none(0), p.integer(1, -1)));
}

Value splitlines_method(const Call& c) {
  const Params p = c.params({"keepends"});
  return Value::list(split_lines(c.budget, c.self, p.flag(0, false)));
}

Value join_method(const Call& c) {
  const Params p = c.params({"iterable"});
  TextBuilder out(c.budget);
  bool first = true;
  for (const Value& piece : iterate(c.budget, p.need(0))) {
    if (!piece.is_string()) fail(ErrorKind::invalid_input, "join needs strings, not {}", type_name(piece));
    if (!first) out.append(c.self);
    first = false;
    out.append(c.self.markup() && !piece.text().markup() ? escape_html(c.budget, piece.text())
                                                         : piece.text());
  }
  return out.take_value();
}

Value partition_method(const Call& c) {
  const Params p = c.params({"sep"});
  const Text& separator = p.text(0);
  if (separator.bytes().empty()) fail(ErrorKind::invalid_input, "{}: the separator is empty", c.name);
  c.budget.spend_bytes(c.self.bytes().size());
  const bool from_left = c.name == "partition";
  const std::size_t hit =
      from_left ? find_text(c.self.view(), separator.view()) : rfind_text(c.self.view(), separator.view());
  if (hit == std::string_view::npos) {
    Value whole = make_text(c.self);
    return from_left ? Value::tuple({std::move(whole), "", ""}) : Value::tuple({"", "", std::move(whole)});
  }
  const std::size_t end = hit + separator.bytes().size();
  return Value::tuple({make_text(cut(c.budget, c.self, 0, hit)), make_text(cut(c.budget, c.self, hit, end)),
                       make_text(cut(c.budget, c.self, end, c.self.bytes().size()))});
}

Value replace_method(const Call& c) {
  const Params p = c.params({"old", "new", "count"});
  return make_text(replace(c.budget, c.self, p.text(0), p.text(1), p.integer(2, -1)));
}

Value remove_affix_method(const Call& c) {
  const Params p = c.params({"affix"});
  const std::string_view affix = p.text(0).view();
  const std::string_view bytes = c.self.view();
  if (c.name == "removeprefix" && bytes.starts_with(affix)) {
    return make_text(cut(c.budget, c.self, affix.size(), bytes.size()));
  }
  if (c.name == "removesuffix" && bytes.ends_with(affix)) {
    return make_text(cut(c.budget, c.self, 0, bytes.size() - affix.size()));
  }
  return make_text(c.self);
}

// ---- Searching

Value affix_method(const Call& c) {
  const Params p = c.params({"affix", "start", "end"});
  const std::optional<Mark> range = window(c.self, p, 1);
  const bool prefix = c.name == "startswith";
  const auto matches = [&](const Value& affix) {
    if (!affix.is_string()) p.wrong_type(0, "a string or a tuple of strings");
    if (!range.has_value()) return false;
    const std::string_view part = c.self.view().substr(range->begin, range->end - range->begin);
    return prefix ? part.starts_with(affix.text().view()) : part.ends_with(affix.text().view());
  };
  const Value& affix = p.need(0);
  c.budget.spend_bytes(c.self.bytes().size());
  if (!affix.is(Kind::tuple)) return matches(affix);
  c.budget.spend(affix.items().size());
  return std::any_of(affix.items().begin(), affix.items().end(), matches);
}

Value find_method_of_str(const Call& c) {
  const Params p = c.params({"sub", "start", "end"});
  const std::string_view sub = p.text(0).view();
  const std::optional<Mark> range = window(c.self, p, 1);
  c.budget.spend_bytes(2 * c.self.bytes().size());
  std::size_t hit = std::string_view::npos;
  if (range.has_value()) {
    const std::string_view part = c.self.view().substr(range->begin, range->end - range->begin);
    hit = c.name == "find" || c.name == "index" ? find_text(part, sub) : rfind_text(part, sub);
  }
  if (hit != std::string_view::npos) return static_cast<std::int64_t>(c.self.index_of(range->begin + hit));
  if (c.name == "index" || c.name == "rindex")
    fail(ErrorKind::invalid_input, "{}: substring not found", c.name);
  return -1;
}

Value count_method(const Call& c) {
  const Params p = c.params({"sub", "start", "end"});
  const std::string_view sub = p.text(0).view();
  const std::optional<Mark> range = window(c.self, p, 1);
  if (!range.has_value()) return 0;
  c.budget.spend_bytes(c.self.bytes().size());
  const std::string_view part = c.self.view().substr(range->begin, range->end - range->begin);
  if (sub.empty()) return static_cast<std::int64_t>(count_code_points(part) + 1);
  std::int64_t count = 0;
  for (std::size_t at = find_text(part, sub); at != std::string_view::npos;
       at = find_text(part, sub, at + sub.size())) {
    c.budget.spend(1);
    ++count;
  }
  return count;
}

// ---- Case, padding

Value case_method(const Call& c) {
  const Params none = c.params({});
  static const std::map<std::string_view, Case> kForms = {{"upper", Case::upper},
                                                          {"lower", Case::lower},
                                                          {"title", Case::title},
                                                          {"capitalize", Case::capitalize},
                                                          {"swapcase", Case::swap}};
  return make_text(change_case(c.budget, c.self, kForms.find(c.name)->second));
}

Value casefold_method(const Call& c) {
  const Params none = c.params({});
  TextBuilder out(c.budget);
  MarkReader marks(c.self);
  c.budget.spend(c.self.length() / 16);
  std::string folded;
  for (std::size_t at = 0; at < c.self.bytes().size();) {
    const CodePoint point = decode(c.self.view(), at);
    folded.clear();
    append_folded(folded, point.value);
    out.append(folded, marks.tainted(at, at + point.bytes));
    at += point.bytes;
  }
  return out.take_value();
}

Value pad_method(const Call& c) {
  const Params p = c.params({"width", "fillchar"});
  p.need(0);
  const Text fill = p.has(1) ? p.text(1) : Text(" ");
  if (fill.length() != 1) fail(ErrorKind::invalid_input, "{}: the fill must be one character", c.name);
  const Side side = c.name == "ljust" ? Side::right : c.name == "rjust" ? Side::left : Side::both;
  return make_text(pad(c.budget, c.self, p.integer(0, 0), fill.view(), side));
}

Value zfill_method(const Call& c) {
  const Params p = c.params({"width"});
  p.need(0);
  const std::string& bytes = c.self.bytes();
  const bool sign = bytes.starts_with('-') || bytes.starts_with('+');
  const auto length = static_cast<std::int64_t>(c.self.length());
  const std::int64_t width = p.integer(0, 0);
  TextBuilder out(c.budget);
  if (sign) out.append(c.self, 0, 1);
  if (width > length) out.append_repeated("0", static_cast<std::size_t>(width - length));
  out.append(c.self, sign ? 1 : 0, bytes.size());
  return out.take_value();
}

Value expandtabs_method(const Call& c) {
  const Params p = c.params({"tabsize"});
  const std::int64_t size = p.integer(0, 8);
  TextBuilder out(c.budget);
  std::size_t column = 0;
  for (const Value& piece : characters(c.budget, c.self)) {
    const std::string& bytes = piece.as_string();
    if (bytes == "\t") {
      const std::size_t fill =
          size > 0 ? static_cast<std::size_t>(size) - column % static_cast<std::size_t>(size) : 0;
      out.append_repeated(" ", fill);
      column += fill;
    } else {
      out.append(piece.text());
      column = bytes == "\n" || bytes == "\r" ? 0 : column + 1;
    }
  }
  return out.take_value();
}

// ---- Questions

template <class Holds>
bool all_points(const Call& c, Holds holds) {
  c.budget.spend(c.self.length() / 16);
  for (std::size_t at = 0; at < c.self.bytes().size();) {
    const CodePoint point = decode(c.self.view(), at);
    if (!holds(point.value)) return false;
    at += point.bytes;
  }
  return true;
}

Value is_class_method(const Call& c) {
  const Params none = c.params({});
  static const std::map<std::string_view, bool (*)(char32_t)> kClasses = {
      {"isalpha", is_alpha}, {"isalnum", is_alnum},     {"isdecimal", is_decimal},
      {"isdigit", is_digit}, {"isnumeric", is_numeric}, {"isspace", is_space}};
  return !c.self.bytes().empty() && all_points(c, kClasses.find(c.name)->second);
}

Value is_ascii_method(const Call& c) {
  const Params none = c.params({});
  return all_points(c, [](char32_t point) { return point < 0x80; });
}

Value is_printable_method(const Call& c) {
  const Params none = c.params({});
  return all_points(c, is_printable);
}

Value is_case_method(const Call& c) {
  const Params none = c.params({});
  const auto wanted = c.name == "islower" ? is_lower : is_upper;
  bool found = false;
  const bool pure = all_points(c, [&](char32_t point) {
    found |= wanted(point);
    return wanted(point) || !is_cased(point);
  });
  return pure && found;
}

Value is_title_method(const Call& c) {
  const Params none = c.params({});
  bool found = false, word = false;
  const bool pure = all_points(c, [&](char32_t point) {
    const bool starts = is_upper(point) || is_title(point), goes_on = is_lower(point);
    if ((starts && word) || (goes_on && !word)) return false;
    found |= starts || goes_on;
    word = starts || goes_on;
    return true;
  });
  return pure && found;
}

Value is_identifier_method(const Call& c) {
  const Params none = c.params({});
  if (c.self.bytes().empty()) return false;
  const char32_t first = decode(c.self.view(), 0).value;
  return (is_alpha(first) || first == '_') && all_points(c, is_identifier_part);
}

Value format_method(const Call& c) {
  return make_text(format_braces(c.budget, c.self, c.args));
}

Value refused_method(const Call& c) {
  fail(ErrorKind::unsupported, "str.{} is not supported in chat templates", c.name);
}

const std::map<std::string_view, Value (*)(const Call&)>& methods() {
  static const std::map<std::string_view, Value (*)(const Call&)> kMethods = {
      {"capitalize", case_method},
      {"casefold", casefold_method},
      {"center", pad_method},
      {"count", count_method},
      {"encode", refused_method},
      {"endswith", affix_method},
      {"expandtabs", expandtabs_method},
      {"find", find_method_of_str},
      {"format", format_method},
      {"format_map", refused_method},
      {"index", find_method_of_str},
      {"isalnum", is_class_method},
      {"isalpha", is_class_method},
      {"isascii", is_ascii_method},
      {"isdecimal", is_class_method},
      {"isdigit", is_class_method},
      {"isidentifier", is_identifier_method},
      {"islower", is_case_method},
      {"isnumeric", is_class_method},
      {"isprintable", is_printable_method},
      {"isspace", is_class_method},
      {"istitle", is_title_method},
      {"isupper", is_case_method},
      {"join", join_method},
      {"ljust", pad_method},
      {"lower", case_method},
      {"lstrip", strip_method},
      {"maketrans", refused_method},
      {"partition", partition_method},
      {"removeprefix", remove_affix_method},
      {"removesuffix", remove_affix_method},
      {"replace", replace_method},
      {"rfind", find_method_of_str},
      {"rindex", find_method_of_str},
      {"rjust", pad_method},
      {"rpartition", partition_method},
      {"rsplit", split_method},
      {"rstrip", strip_method},
      {"split", split_method},
      {"splitlines", splitlines_method},
      {"startswith", affix_method},
      {"strip", strip_method},
      {"swapcase", case_method},
      {"title", case_method},
      {"translate", refused_method},
      {"upper", case_method},
      {"zfill", zfill_method},
  };
  return kMethods;
}

Value as_markup(const Value& value) {
  if (value.is_string()) return make_text(Text(value.text().bytes(), value.text().marks(), true));
  if (!value.is(Kind::list) && !value.is(Kind::tuple)) return value;
  std::vector<Value> items;
  for (const Value& item : value.items()) items.push_back(as_markup(item));
  return make_sequence(value.kind(), std::move(items));
}

// On HTML-safe text, as markupsafe: the arguments that are put in are escaped, and the result is safe again.
Value markup_method(const Call& c, Value (*method)(const Call&)) {
  static constexpr std::string_view kPlain[] = {"casefold", "removeprefix", "removesuffix"};
  const bool escapes = c.name == "replace" || c.name.ends_with("just") || c.name == "center" ||
                       c.name.ends_with("strip") || c.name.ends_with("partition") || c.name == "format";
  CallArgs args = c.args;
  const auto escaped = [&](Value& value) {
    if (value.is_string() && !value.text().markup()) value = make_text(escape_html(c.budget, value.text()));
  };
  if (escapes) {
    for (Value& value : args.positional) escaped(value);
    for (auto& [name, value] : args.named) escaped(value);
  }
  const Value made = method({c.budget, c.self, c.name, args});
  const bool plain = std::find(std::begin(kPlain), std::end(kPlain), c.name) != std::end(kPlain);
  return plain && made.is_string() ? make_text(Text(made.text().bytes(), made.text().marks()))
                                   : as_markup(made);
}

}  // namespace

bool is_string_method(std::string_view name) {
  return methods().contains(name);
}

Value string_method(Budget& budget, const Text& self, std::string_view name, const CallArgs& args) {
  const auto at = methods().find(name);
  if (at == methods().end()) fail(ErrorKind::unsupported, "strings have no method \"{}\"", printable(name));
  const Call call{budget, self, at->first, args};
  budget.spend(1);
  return self.markup() ? markup_method(call, at->second) : at->second(call);
}

}  // namespace ponder::text::jinja
