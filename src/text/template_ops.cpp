#include "text/template_ops.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "text/template_unicode.hpp"

namespace ponder::text::jinja {
namespace {

using Kind = Value::Kind;

int sign_of(const Value& number) {
  if (number.is(Kind::big_integer)) return number.text().bytes().starts_with('-') ? -1 : 1;
  const std::int64_t value = number.integer_or_bool();
  return value < 0 ? -1 : value > 0 ? 1 : 0;
}

// The ordering of b and a, from that of a and b.
std::partial_ordering flipped(std::partial_ordering order) {
  if (std::is_lt(order)) return std::partial_ordering::greater;
  return std::is_gt(order) ? std::partial_ordering::less : order;
}

std::partial_ordering compare_big(const Value& a, const Value& b) {
  if (sign_of(a) != sign_of(b)) return sign_of(a) <=> sign_of(b);
  // A big integer is always further from zero than one of 64 bits.
  if (!a.is(Kind::big_integer)) return 0 <=> sign_of(b);
  if (!b.is(Kind::big_integer)) return sign_of(a) <=> 0;
  const std::string &x = a.text().bytes(), &y = b.text().bytes();
  const auto magnitude = x.size() != y.size() ? x.size() <=> y.size() : x <=> y;
  return sign_of(a) > 0 ? std::partial_ordering(magnitude) : flipped(magnitude);
}

std::partial_ordering compare_int_double(std::int64_t a, double b) {
  if (std::isnan(b)) return std::partial_ordering::unordered;
  if (b >= 9223372036854775808.0) return std::partial_ordering::less;
  if (b < -9223372036854775808.0) return std::partial_ordering::greater;
  const double whole = std::trunc(b);
  const auto truncated = static_cast<std::int64_t>(whole);
  if (a != truncated) return a <=> truncated;
  return 0.0 <=> (b - whole);
}

[[noreturn]] void bad_operands(std::string_view sign, const Value& a, const Value& b) {
  need_defined(a);
  need_defined(b);
  fail(ErrorKind::invalid_input, "'{}' does not work between {} and {}", sign, type_name(a), type_name(b));
}

bool equal_items(Budget& budget, std::span<const Value> a, std::span<const Value> b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!equals(budget, a[i], b[i])) return false;
  }
  return true;
}

bool equal_dicts(Budget& budget, const Dict& a, const Dict& b) {
  if (a.entries.size() != b.entries.size()) return false;
  return std::all_of(a.entries.begin(), a.entries.end(), [&](const auto& entry) {
    const Value* other = b.find(entry.first);
    return other != nullptr && equals(budget, entry.second, *other);
  });
}

}  // namespace

void fail_undefined(const Value& value) {
  if (value.cell() == nullptr) fail(ErrorKind::invalid_input, "an undefined value is used");
  fail(ErrorKind::invalid_input, "{}", printable(value.text().bytes(), 200));
}

bool is_integer(const Value& value) {
  return value.is(Kind::boolean) || value.is(Kind::integer);
}

bool is_number(const Value& value) {
  return is_integer(value) || value.is(Kind::floating) || value.is(Kind::big_integer);
}

bool truth(const Value& value) {
  switch (value.kind()) {
    case Kind::undefined:
    case Kind::none:
      return false;
    case Kind::boolean:
    case Kind::integer:
      return value.integer_or_bool() != 0;
    case Kind::floating:
      return value.as_float() != 0.0;
    case Kind::string:
      return !value.text().bytes().empty();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
    case Kind::view:
      return !value.sequence().items.empty();
    case Kind::dict:
      return !value.mapping().entries.empty();
    default:
      return true;
  }
}

double to_double(const Value& number) {
  if (number.is(Kind::floating)) return number.as_float();
  if (number.is(Kind::big_integer)) {
    const double value = parse_float(number.text().view()).value_or(0);
    if (std::isinf(value)) fail(ErrorKind::too_large, "an integer is too large for a float");
    return value;
  }
  return static_cast<double>(number.integer_or_bool());
}

std::partial_ordering compare_numbers(const Value& a, const Value& b) {
  const bool float_a = a.is(Kind::floating), float_b = b.is(Kind::floating);
  if (float_a && float_b) return a.as_float() <=> b.as_float();
  if (a.is(Kind::big_integer) || b.is(Kind::big_integer)) {
    if (!float_a && !float_b) return compare_big(a, b);
    const auto approximate = [](const Value& v) {
      return v.is(Kind::floating)      ? v.as_float()
             : v.is(Kind::big_integer) ? parse_float(v.text().view()).value_or(0)
                                       : static_cast<double>(v.integer_or_bool());
    };
    return approximate(a) <=> approximate(b);
  }
  if (float_b) return compare_int_double(a.integer_or_bool(), b.as_float());
  if (float_a) return flipped(compare_int_double(b.integer_or_bool(), a.as_float()));
  return a.integer_or_bool() <=> b.integer_or_bool();
}

bool equals(Budget& budget, const Value& a, const Value& b) {
  budget.spend(1);
  if (is_number(a) && is_number(b)) return std::is_eq(compare_numbers(a, b));
  if (a.kind() != b.kind()) return false;
  if (a.cell() == b.cell() && a.cell() != nullptr) return true;
  switch (a.kind()) {
    case Kind::string:
      budget.spend_bytes(std::min(a.text().bytes().size(), b.text().bytes().size()));
      return a.text().bytes() == b.text().bytes();
    case Kind::list:
    case Kind::tuple:
    case Kind::range:
      return equal_items(budget, a.items(), b.items());
    case Kind::dict:
      return equal_dicts(budget, a.mapping(), b.mapping());
    case Kind::undefined:
    case Kind::none:
      return true;
    default:
      return false;  // views, iterators and objects: only the same one
  }
}

std::partial_ordering order(Budget& budget, const Value& a, const Value& b, std::string_view sign) {
  budget.spend(1);
  if (is_number(a) && is_number(b)) return compare_numbers(a, b);
  if (a.is_string() && b.is_string()) {
    budget.spend_bytes(std::min(a.text().bytes().size(), b.text().bytes().size()));
    return a.text().bytes() <=> b.text().bytes();
  }
  if (a.kind() == b.kind() && (a.is(Kind::list) || a.is(Kind::tuple))) {
    const auto x = a.items(), y = b.items();
    for (std::size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!equals(budget, x[i], y[i])) return order(budget, x[i], y[i], sign);
    }
    return x.size() <=> y.size();
  }
  bad_operands(sign, a, b);
}

bool contains(Budget& budget, const Value& item, const Value& container) {
  switch (container.kind()) {
    case Kind::string:
      if (!item.is_string()) {
        fail(ErrorKind::invalid_input, "'in' a string needs a string on its left, not {}", type_name(item));
      }
      budget.spend_bytes(container.text().bytes().size() + item.text().bytes().size());
      return find_text(container.text().view(), item.text().view()) != std::string_view::npos;
    case Kind::dict:
      if (!hashable(item)) {
        fail(ErrorKind::invalid_input, "a value of type {} cannot be a dict's key", type_name(item));
      }
      budget.spend(std::min<std::uint64_t>(weight_of(item) + 12, container.mapping().entries.size() + 1));
      return container.mapping().find(item) != nullptr;
    default:
      break;
  }
  if (!iterable(container)) {
    fail(ErrorKind::invalid_input, "'in' needs a container on its right, not {}", type_name(container));
  }
  if (container.is_undefined()) return false;
  Sequence& sequence = container.sequence();
  const bool once = container.is(Kind::iterator);
  for (std::size_t i = once ? sequence.cursor : 0; i < sequence.items.size(); ++i) {
    if (once) sequence.cursor = i + 1;
    if (equals(budget, item, sequence.items[i])) return true;
  }
  return false;
}

bool iterable(const Value& value) {
  return value.is_undefined() || value.is_string() || value.is_dict() || value.is_sequence_cell();
}

std::vector<Value> iterate(Budget& budget, const Value& value) {
  if (value.is_undefined()) return {};
  if (value.is_string()) return characters(budget, value.text());
  if (value.is_dict()) {
    std::vector<Value> keys;
    budget.spend(value.mapping().entries.size());
    keys.reserve(value.mapping().entries.size());
    for (const auto& [key, item] : value.mapping().entries) keys.push_back(key);
    return keys;
  }
  if (!value.is_sequence_cell()) {
    fail(ErrorKind::invalid_input, "a value of type {} is not iterable", type_name(value));
  }
  Sequence& sequence = value.sequence();
  budget.spend(sequence.items.size() - sequence.cursor);
  if (!value.is(Kind::iterator)) return sequence.items;
  std::vector<Value> rest(sequence.items.begin() + static_cast<std::ptrdiff_t>(sequence.cursor),
                          sequence.items.end());
  sequence.cursor = sequence.items.size();
  return rest;
}

std::optional<std::size_t> length_of(const Value& value) {
  if (value.is_undefined()) return 0;
  if (value.is_string()) return value.text().length();
  if (value.is_dict()) return value.mapping().entries.size();
  if (value.is_sequence_cell() && !value.is(Kind::iterator)) return value.sequence().items.size();
  return std::nullopt;
}

// ---- Slices

namespace {

std::optional<std::int64_t> slice_part(const Value& part) {
  if (part.is_none()) return std::nullopt;
  if (!is_integer(part)) {
    need_defined(part);
    fail(ErrorKind::invalid_input, "a slice needs integers, not {}", type_name(part));
  }
  return part.integer_or_bool();
}

// The end of a slice as an index: counted from the end when negative, then kept within [low, high].
std::int64_t place(std::optional<std::int64_t> part, std::int64_t missing, std::int64_t length,
                   std::int64_t low, std::int64_t high) {
  if (!part.has_value()) return missing;
  const std::int64_t index = *part < 0 ? *part + length : *part;  // cannot overflow: the signs differ
  return std::clamp(index, low, high);
}

}  // namespace

Value slice(Budget& budget, const Value& value, const Value& start, const Value& stop, const Value& step) {
  const bool sliceable =
      value.is_string() || value.is(Kind::list) || value.is(Kind::tuple) || value.is(Kind::range);
  if (!sliceable) {
    need_defined(value);
    fail(ErrorKind::invalid_input, "a value of type {} cannot be sliced", type_name(value));
  }
  const std::int64_t by = slice_part(step).value_or(1);
  if (by == 0) fail(ErrorKind::invalid_input, "a slice's step cannot be zero");
  const auto length = static_cast<std::int64_t>(*length_of(value));
  const std::int64_t low = by > 0 ? 0 : -1, high = by > 0 ? length : length - 1;
  const std::int64_t from = place(slice_part(start), by > 0 ? low : high, length, low, high);
  const std::int64_t to = place(slice_part(stop), by > 0 ? high : low, length, low, high);

  if (value.is_string() && by == 1) {
    const Text& text = value.text();
    budget.spend_bytes(text.bytes().size());
    if (from >= to) return make_text(Text({}, {}, text.markup()));
    const std::size_t begin = text.offset(static_cast<std::size_t>(from));
    TextBuilder out(budget);
    out.append(text, begin, text.offset(static_cast<std::size_t>(to)));
    return out.take_value(text.markup());
  }
  const std::vector<Value> all =
      value.is_string() ? characters(budget, value.text()) : value.sequence().items;
  budget.spend(all.size() / 8);
  std::vector<Value> picked;
  for (std::int64_t i = from; by > 0 ? i < to : i > to;) {
    budget.spend(1);
    picked.push_back(all[static_cast<std::size_t>(i)]);
    if (__builtin_add_overflow(i, by, &i)) break;
  }
  if (!value.is_string()) {
    Value made = make_sequence(value.kind(), std::move(picked));
    if (value.is(Value::Kind::range)) {  // range(5)[1:3] is range(1, 3); indices are small, steps may not be
      const Sequence& range = value.sequence();
      Sequence& part = made.sequence();
      const auto at = [&](std::int64_t index) {
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(range.start) +
                                         static_cast<std::uint64_t>(index) *
                                             static_cast<std::uint64_t>(range.step));
      };
      part.start = at(from);
      part.stop = at(to);
      part.step =
          static_cast<std::int64_t>(static_cast<std::uint64_t>(range.step) * static_cast<std::uint64_t>(by));
    }
    return made;
  }
  TextBuilder out(budget);
  for (const Value& piece : picked) out.append(piece.text());
  return out.take_value(value.text().markup());
}

}  // namespace ponder::text::jinja
