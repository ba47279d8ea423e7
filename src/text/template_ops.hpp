// Python's operators and spellings on values. Internal to the template engine.
//
// Every failure is invalid_input with Python's reason in our words, except integers that leave 64 bits
// (too_large).
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/template_text.hpp"

namespace ponder::text::jinja {

bool truth(const Value& value);
bool is_number(const Value& value);   // bool, int or float
bool is_integer(const Value& value);  // bool or int of 64 bits
// The message of using an undefined value.
[[noreturn]] void fail_undefined(const Value& value);
// Any use that an undefined value does not allow.
inline void need_defined(const Value& value) {
  if (value.is_undefined()) fail_undefined(value);
}

std::partial_ordering compare_numbers(const Value& a, const Value& b);  // both numbers, exact
double to_double(const Value& number);

bool equals(Budget& budget, const Value& a, const Value& b);
// Python's ordering of a < b; `sign` names the operator in the error.
std::partial_ordering order(Budget& budget, const Value& a, const Value& b, std::string_view sign);
bool contains(Budget& budget, const Value& item, const Value& container);

enum class Arith { add, sub, mul, div, floordiv, mod, pow };
Value arithmetic(Budget& budget, Arith op, const Value& a, const Value& b);
Value negate(const Value& value);
Value absolute(const Value& value);
std::int64_t checked_add(std::int64_t a, std::int64_t b);

// What an iteration over the value gives; an iterator is used up. Fails when it is not iterable.
std::vector<Value> iterate(Budget& budget, const Value& value);
bool iterable(const Value& value);
// len(); nothing for what has none.
std::optional<std::size_t> length_of(const Value& value);
// value[start:stop:step] of a string or sequence; a none or undefined part is left out.
Value slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step);

// str() and repr(). Text inside keeps its marks.
void append_str(TextBuilder& out, const Value& value);
void append_repr(TextBuilder& out, const Value& value, std::size_t depth = 0);
void append_dict_repr(TextBuilder& out, const Dict& dict, std::size_t depth);
Text to_text(Budget& budget, const Value& value);  // str()
std::string float_repr(double value);
// Python's float() of a text; nothing when it is not a number.
std::optional<double> parse_float(std::string_view text);
// Python's int() of a text in a base of 2..36 (0: by prefix).
std::optional<Value> parse_int(std::string_view text, int base);

struct JsonStyle {
  std::optional<std::string> indent;
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool ascii = false;
  bool sort_keys = false;
};
// json.dumps().
void append_json(TextBuilder& out, const Value& value, const JsonStyle& style);

// Python's printf-style formatting: text % values.
Text format_percent(Budget& budget, const Text& format, const Value& values);

}  // namespace ponder::text::jinja
