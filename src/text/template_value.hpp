// The values a chat template works on: Python's None, bool, int, float, str, list, tuple and dict.
//
// A Value is a small handle; copies share what they hold. Lists and dicts do not change once a template sees
// them (set() and push_back() copy first when shared), so sharing is never visible. Strings are bytes that
// should be UTF-8 and carry trust marks: the ranges that came from a user and not from the program or the
// template. Marks follow the text through every operation of a template; what cannot follow exactly is marked
// whole.
#pragma once

#include <concepts>
#include <cstdint>
#include <ctime>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ponder::text::jinja {

// A stretch of text that is either the template's (trusted) or the user's.
struct Segment {
  std::string text;
  bool trusted = true;
  bool operator==(const Segment&) const = default;
};

struct Cell;
class Text;
struct Sequence;
struct Dict;
struct Object;

class Value {
 public:
  enum class Kind : std::uint8_t {
    undefined,  // no such variable, key or item; the hint says which
    none,
    boolean,
    integer,
    big_integer,  // beyond 64 bits: printed and compared, not computed with
    floating,
    string,
    list,
    tuple,
    dict,
    range,     // range(...)
    view,      // dict.keys() and its kin: iterable and sized, not indexable
    iterator,  // what map, select and the like give: walked once
    object,    // namespace, loop, macro, function, ...
  };

  Value() = default;  // undefined
  Value(std::nullptr_t) : kind_(Kind::none) {}
  Value(bool value) : kind_(Kind::boolean), integer_(value ? 1 : 0) {}
  Value(double value) : kind_(Kind::floating), floating_(value) {}
  template <std::signed_integral T>
  Value(T value) : kind_(Kind::integer), integer_(value) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Value(T value) : Value(from_unsigned(value)) {}
  Value(std::string text);
  Value(std::string_view text) : Value(std::string(text)) {}
  Value(const char* text) : Value(std::string(text)) {}

  // A string that came from a user, or that is stitched from both.
  static Value untrusted(std::string text);
  static Value mixed(std::span<const Segment> segments);
  // `digits`: an optional '-' and decimal digits, of any length.
  static Value big_integer(std::string digits);
  // Fails (too_large) when values are nested deeper than kMaxValueDepth.
  static Value list(std::vector<Value> items);
  static Value tuple(std::vector<Value> items);
  static Value dict(std::vector<std::pair<std::string, Value>> entries = {});
  // The function strftime_now(format), fixed at this broken-down local time.
  static Value clock(const std::tm& now);

  Kind kind() const { return kind_; }
  bool is(Kind kind) const { return kind_ == kind; }
  bool is_undefined() const { return kind_ == Kind::undefined; }
  bool is_none() const { return kind_ == Kind::none; }
  bool is_string() const { return kind_ == Kind::string; }
  bool is_dict() const { return kind_ == Kind::dict; }
  bool is_list() const { return kind_ == Kind::list; }

  // Each fails (usage) on a value of another kind.
  bool as_bool() const;
  std::int64_t as_integer() const;
  double as_float() const;
  const std::string& as_string() const;   // its bytes
  std::vector<Segment> segments() const;  // of a string: maximal runs, in order, none empty
  std::span<const Value> items() const;   // of a list, tuple, range or view
  std::span<const std::pair<Value, Value>> entries() const;  // of a dict, in order of insertion

  // Dict: the value of a key, undefined when there is none; set() and put() add or replace.
  Value get(std::string_view key) const;
  void set(std::string_view key, Value value);
  void put(Value key, Value value);
  // List.
  void push_back(Value value);

  // For the interpreter.
  static Value undefined(std::string hint);
  static Value adopt(Kind kind, std::shared_ptr<Cell> cell);
  const std::shared_ptr<Cell>& cell() const { return cell_; }
  const Text& text() const;  // string, big_integer, or the hint of an undefined value that has one
  Sequence& sequence() const;
  Dict& mapping() const;
  Object& object() const;
  std::int64_t integer_or_bool() const { return integer_; }
  bool is_sequence_cell() const;  // list, tuple, range, view, iterator

 private:
  static Value from_unsigned(std::uint64_t value);

  Kind kind_ = Kind::undefined;
  union {
    std::int64_t integer_ = 0;
    double floating_;
  };
  std::shared_ptr<Cell> cell_;
};

inline constexpr std::size_t kMaxValueDepth = 256;

}  // namespace ponder::text::jinja
