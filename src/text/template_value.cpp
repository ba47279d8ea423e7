#include "text/template_value.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <functional>

#include "base/error.hpp"
#include "text/template_cells.hpp"
#include "text/template_ops.hpp"
#include "text/template_unicode.hpp"

namespace ponder::text::jinja {
namespace {

constexpr std::uint64_t kMaxWeight = std::uint64_t{1} << 60;
constexpr std::uint64_t kMaxKeyWeight = 4096;
constexpr std::size_t kIndexFrom = 12;  // entries from which a dict keeps an index

[[noreturn]] void wrong_kind(const Value& value, std::string_view expected) {
  fail(ErrorKind::usage, "a template value of type {} was read as {}", type_name(value), expected);
}

}  // namespace

// ---- Text

Text::Text(std::string bytes, std::vector<Mark> marks, bool markup)
    : bytes_(std::move(bytes)),
      marks_(std::move(marks)),
      length_(count_code_points(bytes_)),
      markup_(markup) {}

std::size_t Text::offset(std::size_t index) const {
  if (ascii() || index == 0) return index;
  if (index >= length_) return bytes_.size();
  std::size_t at = 0;
  for (; index > 0; --index) at += decode(bytes_, at).bytes;
  return at;
}

std::size_t Text::index_of(std::size_t offset) const {
  return ascii() ? offset : count_code_points(std::string_view(bytes_).substr(0, offset));
}

// ---- Sizes

std::size_t checked_depth(std::size_t inner) {
  if (inner >= kMaxValueDepth) {
    fail(ErrorKind::too_large, "a value is nested deeper than {} levels", kMaxValueDepth);
  }
  return inner + 1;
}

std::size_t depth_of(const Value& value) {
  if (value.is_sequence_cell()) return value.sequence().depth;
  if (value.is(Value::Kind::object)) return value.object().depth;
  return value.is_dict() ? value.mapping().depth : 0;
}

std::uint64_t weight_of(const Value& value) {
  if (value.is_sequence_cell()) return value.sequence().weight;
  if (value.is_dict()) return value.mapping().weight;
  if (value.is_string() || value.is(Value::Kind::big_integer)) return 1 + value.text().bytes().size() / 128;
  return 1;
}

// ---- Making values

Value::Value(std::string text) : kind_(Kind::string), cell_(std::make_shared<Text>(std::move(text))) {}

Value Value::from_unsigned(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(INT64_MAX)) return {static_cast<std::int64_t>(value)};
  return big_integer(std::to_string(value));
}

Value Value::adopt(Kind kind, std::shared_ptr<Cell> cell) {
  Value value;
  value.kind_ = kind;
  value.cell_ = std::move(cell);
  return value;
}

Value Value::undefined(std::string hint) {
  return adopt(Kind::undefined, std::make_shared<Text>(std::move(hint)));
}

Value make_text(Text text) {
  return Value::adopt(Value::Kind::string, std::make_shared<Text>(std::move(text)));
}

Value Value::untrusted(std::string text) {
  std::vector<Mark> marks;
  if (!text.empty()) marks.push_back({0, text.size()});
  return make_text(Text(std::move(text), std::move(marks)));
}

Value Value::mixed(std::span<const Segment> segments) {
  std::string bytes;
  std::vector<Mark> marks;
  for (const Segment& segment : segments) {
    const std::size_t begin = bytes.size();
    bytes += segment.text;
    if (segment.trusted || segment.text.empty()) continue;
    if (!marks.empty() && marks.back().end == begin) {
      marks.back().end = bytes.size();
    } else {
      marks.push_back({begin, bytes.size()});
    }
  }
  return make_text(Text(std::move(bytes), std::move(marks)));
}

Value Value::big_integer(std::string digits) {
  const std::size_t from = digits.starts_with('-') ? 1 : 0;
  if (digits.size() == from || digits.find_first_not_of("0123456789", from) != std::string::npos) {
    fail(ErrorKind::usage, "not an integer: \"{}\"", printable(digits));
  }
  const std::size_t zeros = digits.find_first_not_of('0', from);
  digits.erase(from, std::min(zeros, digits.size()) - from);
  // Within 64 bits it is an ordinary integer: one number has one kind.
  if (digits.size() == from) return Value(0);
  if (digits.size() - from <= 19) {
    std::uint64_t magnitude = 0;
    for (const char c : std::string_view(digits).substr(from)) {
      magnitude = magnitude * 10 + static_cast<std::uint64_t>(c - '0');
    }
    const std::uint64_t limit = static_cast<std::uint64_t>(INT64_MAX) + from;
    if (magnitude <= limit) return Value(static_cast<std::int64_t>(from == 1 ? 0 - magnitude : magnitude));
  }
  return adopt(Kind::big_integer, std::make_shared<Text>(std::move(digits)));
}

Value make_sequence(Value::Kind kind, std::vector<Value> items, const char* label) {
  auto sequence = std::make_shared<Sequence>();
  std::size_t inner = 0;
  std::uint64_t weight = 1;
  for (const Value& item : items) {
    inner = std::max(inner, depth_of(item));
    weight = std::min(kMaxWeight, weight + weight_of(item));
  }
  sequence->depth = checked_depth(inner);
  sequence->weight = weight;
  sequence->items = std::move(items);
  sequence->label = label;
  return Value::adopt(kind, std::move(sequence));
}

Value Value::list(std::vector<Value> items) {
  return make_sequence(Kind::list, std::move(items));
}
Value Value::tuple(std::vector<Value> items) {
  return make_sequence(Kind::tuple, std::move(items));
}

Value make_dict(Dict dict) {
  return Value::adopt(Value::Kind::dict, std::make_shared<Dict>(std::move(dict)));
}

Value Value::dict(std::vector<std::pair<std::string, Value>> entries) {
  Dict made;
  made.reserve(entries.size());
  for (auto& entry : entries) made.put(Value(std::move(entry.first)), std::move(entry.second));
  return make_dict(std::move(made));
}

// ---- Reading values

bool Value::as_bool() const {
  return kind_ == Kind::boolean ? integer_ != 0 : (wrong_kind(*this, "a bool"), false);
}
std::int64_t Value::as_integer() const {
  return kind_ == Kind::integer ? integer_ : (wrong_kind(*this, "an integer"), 0);
}
double Value::as_float() const {
  return kind_ == Kind::floating ? floating_ : (wrong_kind(*this, "a float"), 0.0);
}

const Text& Value::text() const {
  return static_cast<const Text&>(*cell_);
}
Sequence& Value::sequence() const {
  return static_cast<Sequence&>(*cell_);
}
Dict& Value::mapping() const {
  return static_cast<Dict&>(*cell_);
}
Object& Value::object() const {
  return static_cast<Object&>(*cell_);
}

bool Value::is_sequence_cell() const {
  return kind_ == Kind::list || kind_ == Kind::tuple || kind_ == Kind::range || kind_ == Kind::view ||
         kind_ == Kind::iterator;
}

const std::string& Value::as_string() const {
  if (kind_ != Kind::string) wrong_kind(*this, "a string");
  return text().bytes();
}

std::vector<Segment> Value::segments() const {
  const std::string& bytes = as_string();
  std::vector<Segment> out;
  std::size_t at = 0;
  const auto trusted_until = [&](std::size_t end) {
    if (end > at) out.push_back({bytes.substr(at, end - at), true});
  };
  for (const Mark& mark : text().marks()) {
    trusted_until(mark.begin);
    out.push_back({bytes.substr(mark.begin, mark.end - mark.begin), false});
    at = mark.end;
  }
  trusted_until(bytes.size());
  return out;
}

std::span<const Value> Value::items() const {
  if (!is_sequence_cell() || kind_ == Kind::iterator) wrong_kind(*this, "a list");
  return sequence().items;
}

std::span<const std::pair<Value, Value>> Value::entries() const {
  if (kind_ != Kind::dict) wrong_kind(*this, "a dict");
  return mapping().entries;
}

Value Value::get(std::string_view key) const {
  if (kind_ != Kind::dict) wrong_kind(*this, "a dict");
  const Value* found = mapping().find_name(key);
  return found == nullptr ? Value() : *found;
}

void Value::set(std::string_view key, Value value) {
  put(Value(key), std::move(value));
}

void Value::put(Value key, Value value) {
  if (kind_ != Kind::dict) wrong_kind(*this, "a dict");
  if (cell_.use_count() > 1) cell_ = std::make_shared<Dict>(mapping());
  mapping().put(std::move(key), std::move(value));
}

void Value::push_back(Value value) {
  if (kind_ != Kind::list) wrong_kind(*this, "a list");
  if (cell_.use_count() > 1) cell_ = std::make_shared<Sequence>(sequence());
  Sequence& list = sequence();
  list.depth = std::max(list.depth, checked_depth(depth_of(value)));
  list.weight = std::min(kMaxWeight, list.weight + weight_of(value));
  list.items.push_back(std::move(value));
}

// ---- Dict

bool hashable(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
    case Value::Kind::none:
    case Value::Kind::iterator:
    case Value::Kind::object:
    case Value::Kind::boolean:
    case Value::Kind::integer:
    case Value::Kind::big_integer:
    case Value::Kind::floating:
    case Value::Kind::string:
      return true;
    case Value::Kind::tuple:
      return weight_of(value) <= kMaxKeyWeight &&
             std::all_of(value.items().begin(), value.items().end(),
                         [](const Value& item) { return hashable(item); });
    default:
      return false;
  }
}

bool KeyLess::operator()(const Value& a, const Value& b) const {
  const auto rank = [](const Value& v) {
    switch (v.kind()) {
      case Value::Kind::none:
        return 0;
      case Value::Kind::string:
        return 2;
      case Value::Kind::tuple:
        return 3;
      case Value::Kind::undefined:
        return 4;
      case Value::Kind::iterator:
      case Value::Kind::object:
        return 5;
      default:
        return 1;
    }
  };
  if (rank(a) != rank(b)) return rank(a) < rank(b);
  if (rank(a) == 1) {
    const std::partial_ordering order = compare_numbers(a, b);
    // NaN equals nothing; put all of them last, told apart by nothing.
    if (order == std::partial_ordering::unordered) {
      const auto is_nan = [](const Value& v) {
        return v.is(Value::Kind::floating) && std::isnan(v.as_float());
      };
      return !is_nan(a) && is_nan(b);
    }
    return std::is_lt(order);
  }
  if (a.is_string()) return a.text().bytes() < b.text().bytes();
  if (a.is_none() || a.is_undefined()) return false;
  if (rank(a) == 5) return std::less<>()(a.cell().get(), b.cell().get());
  const auto left = a.items(), right = b.items();
  return std::lexicographical_compare(left.begin(), left.end(), right.begin(), right.end(), *this);
}

const Value* Dict::find_name(std::string_view key) const {
  if (index_.empty()) {
    for (const auto& [name, value] : entries) {
      if (name.is_string() && name.text().bytes() == key) return &value;
    }
    return nullptr;
  }
  return find(Value(key));
}

const Value* Dict::find(const Value& key) const {
  if (index_.empty()) {
    const KeyLess less;
    for (const auto& [name, value] : entries) {
      if (!less(name, key) && !less(key, name)) return &value;
    }
    return nullptr;
  }
  const auto at = index_.find(key);
  return at == index_.end() ? nullptr : &entries[at->second].second;
}

void Dict::put(Value key, Value value) {
  if (!hashable(key))
    fail(ErrorKind::invalid_input, "a value of type {} cannot be a dict's key", type_name(key));
  depth = std::max(depth, checked_depth(std::max(depth_of(value), depth_of(key))));
  weight = std::min(kMaxWeight, weight + weight_of(key) + weight_of(value));
  if (const Value* found = find(key)) {
    const_cast<Value&>(*found) = std::move(value);
    return;
  }
  if (!index_.empty()) index_.emplace(key, entries.size());
  entries.emplace_back(std::move(key), std::move(value));
  if (index_.empty() && entries.size() >= kIndexFrom) {
    for (std::size_t i = 0; i < entries.size(); ++i) index_.emplace(entries[i].first, i);
  }
}

Value Object::attribute(const Value& /*self*/, std::string_view /*name*/) {
  return {};
}

std::string_view type_name(const Value& value) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      return "Undefined";
    case Value::Kind::none:
      return "NoneType";
    case Value::Kind::boolean:
      return "bool";
    case Value::Kind::integer:
    case Value::Kind::big_integer:
      return "int";
    case Value::Kind::floating:
      return "float";
    case Value::Kind::string:
      return "str";
    case Value::Kind::list:
      return "list";
    case Value::Kind::tuple:
      return "tuple";
    case Value::Kind::dict:
      return "dict";
    case Value::Kind::range:
      return "range";
    case Value::Kind::view:
      return value.sequence().label;
    case Value::Kind::iterator:
      return "generator";
    case Value::Kind::object:
      return value.object().type_name();
  }
  return "object";
}

}  // namespace ponder::text::jinja
