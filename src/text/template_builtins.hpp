// The filters, tests, methods and functions a template may use. Internal to the template engine.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template_ops.hpp"

namespace ponder::text::jinja {

class Interp;

struct CallArgs {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

// A call's arguments by parameter. Fails when there are too many, one is unknown, or one is given twice.
class Params {
 public:
  Params(std::string_view function, const CallArgs& args, std::initializer_list<std::string_view> names);
  bool has(std::size_t i) const { return values_[i] != nullptr; }
  const Value& need(std::size_t i) const;
  Value get(std::size_t i, const Value& otherwise) const { return has(i) ? *values_[i] : otherwise; }
  // Typed reading; fails when the argument is of another kind.
  std::int64_t integer(std::size_t i, std::int64_t otherwise) const;
  const Text* text_or_none(std::size_t i) const;  // null when left out or None
  const Text& text(std::size_t i) const;
  bool flag(std::size_t i, bool otherwise) const { return has(i) ? truth(*values_[i]) : otherwise; }
  bool none(std::size_t i) const { return !has(i) || values_[i]->is_none(); }
  [[noreturn]] void wrong_type(std::size_t i, std::string_view wanted) const;

 private:
  std::string_view function_;
  std::vector<std::string_view> names_;
  std::vector<const Value*> values_;
};

struct FilterInfo {
  Value (*apply)(Interp&, const Value& input, const CallArgs&);
};
struct TestInfo {
  bool (*check)(Interp&, const Value& input, const CallArgs&);
};

// Null when there is none (or it is one this engine refuses).
const FilterInfo* find_filter(std::string_view name);
const TestInfo* find_test(std::string_view name);

// The method `name` bound to a string, list, dict, ...; undefined when its type has none.
Value find_method(const Value& receiver, std::string_view name);
// range, dict, namespace, cycler, joiner, raise_exception, strftime_now, ...; undefined when there is none.
Value find_global(std::string_view name);

Value string_method(Budget& budget, const Text& self, std::string_view name, const CallArgs& args);
bool is_string_method(std::string_view name);

// Fails (unsupported) when the name is one of Python's internals: a template has no business there.
void refuse_private(std::string_view name, int line);  // .name, for anything that starts with '_'
void refuse_dunder(std::string_view name, int line);   // ["name"], for __name__

// strftime of a broken-down time, in the C locale.
std::string format_time(const std::tm& when, std::string_view format);
// text.format(...): {} {0} {name}, with conversions and format specifications but no attributes or items.
Text format_braces(Budget& budget, const Text& format, const CallArgs& args);
// A number or text in Python's format mini-language.
Text format_value(Budget& budget, const Value& value, std::string_view spec);

// Filters by family, each with its own table.
const FilterInfo* find_text_filter(std::string_view name);
const FilterInfo* find_sequence_filter(std::string_view name);

}  // namespace ponder::text::jinja
