// What may follow "is".
#include <map>

#include "base/error.hpp"
#include "text/template_interp.hpp"
#include "text/template_unicode.hpp"

namespace ponder::text::jinja {
namespace {

using Kind = Value::Kind;

template <bool (*holds)(const Value&)>
bool plain(Interp& /*interp*/, const Value& input, const CallArgs& args) {
  const Params none("a test", args, {});
  return holds(input);
}

bool is_defined(const Value& v) {
  return !v.is_undefined();
}
bool is_undefined(const Value& v) {
  return v.is_undefined();
}
bool is_none(const Value& v) {
  return v.is_none();
}
bool is_boolean(const Value& v) {
  return v.is(Kind::boolean);
}
bool is_true(const Value& v) {
  return v.is(Kind::boolean) && truth(v);
}
bool is_false(const Value& v) {
  return v.is(Kind::boolean) && !truth(v);
}
bool is_whole(const Value& v) {
  return v.is(Kind::integer) || v.is(Kind::big_integer);
}
bool is_float(const Value& v) {
  return v.is(Kind::floating);
}
bool is_text(const Value& v) {
  return v.is_string();
}
bool is_mapping(const Value& v) {
  return v.is_dict();
}
bool is_iterable(const Value& v) {
  return iterable(v);
}
bool is_escaped(const Value& v) {
  return v.is_string() && v.text().markup();
}
bool is_callable(const Value& v) {
  return v.is(Kind::object) && v.object().callable();
}
// Sized and indexed, as len() and [] see it: dicts are, views are not.
bool is_sequence(const Value& v) {
  return length_of(v).has_value() && !v.is(Kind::view);
}
bool is_filter(const Value& v) {
  return v.is_string() && find_filter(v.as_string()) != nullptr;
}
bool is_test(const Value& v) {
  return v.is_string() && find_test(v.as_string()) != nullptr;
}

bool remainder_is(Interp& interp, const Value& input, const Value& by, const Value& rest) {
  if (!input.is_undefined() && !is_number(input)) {
    fail(ErrorKind::invalid_input, "this test needs a number, not {}", type_name(input));
  }
  return equals(interp.budget(), arithmetic(interp.budget(), Arith::mod, input, by), rest);
}

bool odd(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("odd", args, {});
  return remainder_is(interp, input, 2, 1);
}

bool even(Interp& interp, const Value& input, const CallArgs& args) {
  const Params none("even", args, {});
  return remainder_is(interp, input, 2, 0);
}

bool divisible(Interp& interp, const Value& input, const CallArgs& args) {
  return remainder_is(interp, input, Params("divisibleby", args, {"num"}).need(0), 0);
}

bool cased(Interp& interp, const Value& input, const CallArgs& args, std::string_view method) {
  const Params none("a test", args, {});
  return truth(string_method(interp.budget(), to_text(interp.budget(), input), method, {}));
}

bool lower(Interp& interp, const Value& input, const CallArgs& args) {
  return cased(interp, input, args, "islower");
}
bool upper(Interp& interp, const Value& input, const CallArgs& args) {
  return cased(interp, input, args, "isupper");
}

bool same_as(Interp& interp, const Value& input, const CallArgs& args) {
  const Value& other = Params("sameas", args, {"other"}).need(0);
  if (input.kind() != other.kind()) return false;
  if (is_number(input) || input.is_string() || input.is_none()) return equals(interp.budget(), input, other);
  return input.cell() == other.cell();
}

bool in(Interp& interp, const Value& input, const CallArgs& args) {
  return contains(interp.budget(), input, Params("in", args, {"seq"}).need(0));
}

bool equal(Interp& interp, const Value& input, const CallArgs& args) {
  return equals(interp.budget(), input, Params("eq", args, {"other"}).need(0));
}

bool not_equal(Interp& interp, const Value& input, const CallArgs& args) {
  return !equals(interp.budget(), input, Params("ne", args, {"other"}).need(0));
}

bool less(Interp& interp, const Value& input, const CallArgs& args) {
  return std::is_lt(order(interp.budget(), input, Params("lt", args, {"other"}).need(0), "<"));
}

bool less_equal(Interp& interp, const Value& input, const CallArgs& args) {
  return std::is_lteq(order(interp.budget(), input, Params("le", args, {"other"}).need(0), "<="));
}

bool greater(Interp& interp, const Value& input, const CallArgs& args) {
  return std::is_gt(order(interp.budget(), input, Params("gt", args, {"other"}).need(0), ">"));
}

bool greater_equal(Interp& interp, const Value& input, const CallArgs& args) {
  return std::is_gteq(order(interp.budget(), input, Params("ge", args, {"other"}).need(0), ">="));
}

}  // namespace

const TestInfo* find_test(std::string_view name) {
  static const std::map<std::string_view, TestInfo> kTests = {
      {"!=", {not_equal}},
      {"<", {less}},
      {"<=", {less_equal}},
      {"==", {equal}},
      {">", {greater}},
      {">=", {greater_equal}},
      {"boolean", {plain<is_boolean>}},
      {"callable", {plain<is_callable>}},
      {"defined", {plain<is_defined>}},
      {"divisibleby", {divisible}},
      {"eq", {equal}},
      {"equalto", {equal}},
      {"escaped", {plain<is_escaped>}},
      {"even", {even}},
      {"false", {plain<is_false>}},
      {"filter", {plain<is_filter>}},
      {"float", {plain<is_float>}},
      {"ge", {greater_equal}},
      {"greaterthan", {greater}},
      {"gt", {greater}},
      {"in", {in}},
      {"integer", {plain<is_whole>}},
      {"iterable", {plain<is_iterable>}},
      {"le", {less_equal}},
      {"lessthan", {less}},
      {"lower", {lower}},
      {"lt", {less}},
      {"mapping", {plain<is_mapping>}},
      {"ne", {not_equal}},
      {"none", {plain<is_none>}},
      {"number", {plain<is_number>}},
      {"odd", {odd}},
      {"sameas", {same_as}},
      {"sequence", {plain<is_sequence>}},
      {"string", {plain<is_text>}},
      {"test", {plain<is_test>}},
      {"true", {plain<is_true>}},
      {"undefined", {plain<is_undefined>}},
      {"upper", {upper}},
  };
  const auto at = kTests.find(name);
  return at == kTests.end() ? nullptr : &at->second;
}

}  // namespace ponder::text::jinja
