// Arithmetic as Python does it, on integers of 64 bits.
#include <cmath>

#include "base/error.hpp"
#include "text/template_ops.hpp"

namespace ponder::text::jinja {
namespace {

using Kind = Value::Kind;

constexpr std::string_view kSigns[] = {"+", "-", "*", "/", "//", "%", "**"};

[[noreturn]] void too_big() {
  fail(ErrorKind::too_large, "an integer result does not fit in 64 bits");
}
[[noreturn]] void zero_division() {
  fail(ErrorKind::invalid_input, "division by zero");
}

std::int64_t floor_divide(std::int64_t a, std::int64_t b) {
  if (b == 0) zero_division();
  if (a == INT64_MIN && b == -1) too_big();
  const std::int64_t quotient = a / b;
  return quotient - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

std::int64_t modulo(std::int64_t a, std::int64_t b) {
  if (b == 0) zero_division();
  if (b == -1) return 0;
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

double modulo(double a, double b) {
  if (b == 0.0) zero_division();
  double rest = std::fmod(a, b);
  if (rest == 0.0) return std::copysign(0.0, b);
  if ((rest < 0) != (b < 0)) rest += b;
  return rest;
}

double floor_divide(double a, double b) {
  if (b == 0.0) zero_division();
  const double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  if (rest != 0.0 && (rest < 0) != (b < 0)) quotient -= 1.0;
  if (quotient == 0.0) return std::copysign(0.0, a / b);
  const double whole = std::floor(quotient);
  return quotient - whole > 0.5 ? whole + 1.0 : whole;
}

std::int64_t power(std::int64_t base, std::int64_t exponent) {
  std::int64_t result = 1;
  while (exponent > 0) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) too_big();
    exponent >>= 1;
    if (exponent > 0 && __builtin_mul_overflow(base, base, &base)) too_big();
  }
  return result;
}

double power(double base, double exponent) {
  if (base == 0.0 && exponent < 0) zero_division();
  if (base < 0 && std::isfinite(base) && std::isfinite(exponent) && exponent != std::floor(exponent)) {
    fail(ErrorKind::unsupported, "a power that is a complex number");
  }
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent)) {
    fail(ErrorKind::invalid_input, "the result of ** is too large for a float");
  }
  return result;
}

Value integer_arithmetic(Arith op, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  switch (op) {
    case Arith::add:
      return checked_add(a, b);
    case Arith::sub:
      if (__builtin_sub_overflow(a, b, &result)) too_big();
      return result;
    case Arith::mul:
      if (__builtin_mul_overflow(a, b, &result)) too_big();
      return result;
    case Arith::div:
      if (b == 0) zero_division();
      return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
    case Arith::floordiv:
      return floor_divide(a, b);
    case Arith::mod:
      return modulo(a, b);
    case Arith::pow:
      if (b < 0) return power(static_cast<double>(a), static_cast<double>(b));
      return power(a, b);
  }
  return result;
}

Value float_arithmetic(Arith op, double a, double b) {
  switch (op) {
    case Arith::add:
      return a + b;
    case Arith::sub:
      return a - b;
    case Arith::mul:
      return a * b;
    case Arith::div:
      if (b == 0.0) zero_division();
      return a / b;
    case Arith::floordiv:
      return floor_divide(a, b);
    case Arith::mod:
      return modulo(a, b);
    case Arith::pow:
      return power(a, b);
  }
  return a;
}

// Text + text; the plain side is escaped when the other is HTML-safe, as markupsafe does.
Value concatenate(Budget& budget, const Text& a, const Text& b) {
  TextBuilder out(budget);
  const bool markup = a.markup() || b.markup();
  out.append(markup && !a.markup() ? escape_html(budget, a) : a);
  out.append(markup && !b.markup() ? escape_html(budget, b) : b);
  return out.take_value(markup);
}

Value repeat_items(Budget& budget, const Value& sequence, std::int64_t times) {
  const auto& items = sequence.sequence().items;
  std::vector<Value> out;
  std::uint64_t total = 0;
  if (times > 0 && __builtin_mul_overflow(items.size(), static_cast<std::uint64_t>(times), &total)) {
    total = UINT64_MAX;
  }
  budget.spend(total);
  out.reserve(total);
  for (std::int64_t i = 0; i < times && !items.empty(); ++i)
    out.insert(out.end(), items.begin(), items.end());
  return make_sequence(sequence.kind(), std::move(out));
}

bool repeatable(const Value& value) {
  return value.is_string() || value.is(Kind::list) || value.is(Kind::tuple);
}

Value multiply(Budget& budget, const Value& value, std::int64_t times) {
  if (!value.is_string()) return repeat_items(budget, value, times);
  Text out = repeat(budget, value.text(), times);
  return make_text(value.text().markup() ? Text(out.bytes(), out.marks(), true) : std::move(out));
}

}  // namespace

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result)) too_big();
  return result;
}

Value arithmetic(Budget& budget, Arith op, const Value& a, const Value& b) {
  need_defined(a);
  if (op == Arith::mod && a.is_string()) return make_text(format_percent(budget, a.text(), b));
  need_defined(b);
  if (is_integer(a) && is_integer(b)) return integer_arithmetic(op, a.integer_or_bool(), b.integer_or_bool());
  if (is_number(a) && is_number(b)) {
    if (!a.is(Kind::floating) && !b.is(Kind::floating)) {
      fail(ErrorKind::too_large, "arithmetic on an integer beyond 64 bits");
    }
    return float_arithmetic(op, to_double(a), to_double(b));
  }
  if (op == Arith::add && a.is_string() && b.is_string()) return concatenate(budget, a.text(), b.text());
  if (op == Arith::add && a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    std::vector<Value> items = iterate(budget, a);
    const std::vector<Value> more = iterate(budget, b);
    items.insert(items.end(), more.begin(), more.end());
    return make_sequence(a.kind(), std::move(items));
  }
  if (op == Arith::mul && repeatable(a) && is_integer(b)) return multiply(budget, a, b.integer_or_bool());
  if (op == Arith::mul && repeatable(b) && is_integer(a)) return multiply(budget, b, a.integer_or_bool());
  fail(ErrorKind::invalid_input, "'{}' does not work between {} and {}", kSigns[static_cast<int>(op)],
       type_name(a), type_name(b));
}

Value negate(const Value& value) {
  need_defined(value);
  if (value.is(Kind::floating)) return -value.as_float();
  if (value.is(Kind::big_integer)) {
    const std::string& digits = value.text().bytes();
    return Value::big_integer(digits.starts_with('-') ? digits.substr(1) : "-" + digits);
  }
  if (!is_integer(value))
    fail(ErrorKind::invalid_input, "a value of type {} cannot be negated", type_name(value));
  if (value.integer_or_bool() == INT64_MIN) return Value::big_integer("9223372036854775808");
  return -value.integer_or_bool();
}

Value absolute(const Value& value) {
  need_defined(value);
  if (!is_number(value)) fail(ErrorKind::invalid_input, "abs needs a number, not {}", type_name(value));
  if (value.is(Kind::floating)) return std::fabs(value.as_float());
  if (is_integer(value)) return value.integer_or_bool() < 0 ? negate(value) : Value(value.integer_or_bool());
  return value.text().bytes().starts_with('-') ? negate(value) : value;
}

}  // namespace ponder::text::jinja
