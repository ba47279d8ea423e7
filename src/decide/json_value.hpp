// JSON as a decision request means it: the order of keys, and the difference between 1, 1.0 and True, reach
// the model's prompt, so they survive parsing. A Value is a plain tree that owns everything below it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace ponder::decide {

class Value;
struct Member;
using Array = std::vector<Value>;

// Members in the order in which their keys were first seen; parse_json leaves no key twice.
class Object {
 public:
  Object();
  Object(const Object&);
  Object(Object&&) noexcept;
  Object& operator=(const Object&);
  Object& operator=(Object&&) noexcept;
  ~Object();

  // The caller vouches that `key` is new: nothing is looked up.
  void append(std::string key, Value value);
  // Linear in the number of members; null when there is none of that key.
  const Value* find(std::string_view key) const;

  std::size_t size() const;
  bool empty() const;
  const std::vector<Member>& members() const { return members_; }
  std::vector<Member>& members() { return members_; }
  bool operator==(const Object& other) const;

 private:
  std::vector<Member> members_;
};

// An integer outside int64, as Python prints it: an optional '-', then digits without leading zeros.
struct BigInteger {
  std::string text;
  bool operator==(const BigInteger&) const = default;
  bool negative() const { return !text.empty() && text.front() == '-'; }
};

class Value {
 public:
  Value() = default;  // null
  Value(std::nullptr_t) {}
  Value(bool b) : data_(b) {}
  Value(int i) : data_(std::int64_t{i}) {}
  Value(std::int64_t i) : data_(i) {}
  Value(BigInteger i) : data_(std::move(i)) {}
  Value(double d) : data_(d) {}
  Value(std::string s) : data_(std::move(s)) {}
  Value(std::string_view s) : data_(std::string(s)) {}
  Value(const char* s) : data_(std::string(s)) {}
  Value(Array a) : data_(std::move(a)) {}
  Value(Object o) : data_(std::move(o)) {}
  template <class T>
  Value(T*) = delete;  // any other pointer would turn into a bool

  bool is_null() const { return std::holds_alternative<std::monostate>(data_); }
  bool is_container() const { return if_array() != nullptr || if_object() != nullptr; }
  // Each gives null when the value is of another kind. Integers within int64 are int64, all others
  // BigInteger.
  const bool* if_bool() const { return std::get_if<bool>(&data_); }
  const std::int64_t* if_integer() const { return std::get_if<std::int64_t>(&data_); }
  const BigInteger* if_big_integer() const { return std::get_if<BigInteger>(&data_); }
  const double* if_double() const { return std::get_if<double>(&data_); }
  const std::string* if_string() const { return std::get_if<std::string>(&data_); }
  const Array* if_array() const { return std::get_if<Array>(&data_); }
  const Object* if_object() const { return std::get_if<Object>(&data_); }
  std::string* if_string() { return std::get_if<std::string>(&data_); }
  Array* if_array() { return std::get_if<Array>(&data_); }
  Object* if_object() { return std::get_if<Object>(&data_); }

  bool operator==(const Value&) const = default;

 private:
  std::variant<std::monostate, bool, std::int64_t, BigInteger, double, std::string, Array, Object> data_;
};

struct Member {
  std::string key;
  Value value;
  bool operator==(const Member&) const = default;
};

inline std::size_t Object::size() const {
  return members_.size();
}
inline bool Object::empty() const {
  return members_.empty();
}

// A count as a JSON number; none comes near 2^63.
inline Value whole(std::uint64_t n) {
  return static_cast<std::int64_t>(n);
}

// Containers inside containers: parsing, rendering and writing refuse more.
inline constexpr std::size_t max_nesting = 100;
// Digits of an integer (Python itself stops at 4300; a double at 308).
inline constexpr std::size_t max_integer_digits = 308;

struct ParseLimits {
  std::size_t max_bytes = std::size_t{8} << 20;
  std::size_t max_depth = max_nesting;
  std::size_t max_values = 1'000'000;  // of all kinds, repeated keys included; a value costs about 40 bytes
};

// One JSON text (RFC 8259, UTF-8, a byte order mark allowed) to a tree. A repeated key keeps its first place
// and its last value. Throws Error: too_large over a limit; invalid_input for anything that is not strict
// JSON, NaN/Infinity, numbers beyond double, lone surrogates and invalid UTF-8 included. Messages say line
// and byte.
Value parse_json(std::string_view text, const ParseLimits& limits = {});

}  // namespace ponder::decide
