// What a Value's handle points to. Internal to the template engine.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/template_value.hpp"

namespace ponder::text::jinja {

struct Cell {
  Cell() = default;
  Cell(const Cell&) = default;
  Cell& operator=(const Cell&) = default;
  virtual ~Cell() = default;
};

// Bytes [begin, end) of a text.
struct Mark {
  std::size_t begin, end;
};

// A string: bytes, the untrusted ranges (ascending, apart, not empty), and whether it is HTML-safe (`|safe`).
class Text : public Cell {
 public:
  Text() = default;
  explicit Text(std::string bytes, std::vector<Mark> marks = {}, bool markup = false);

  std::string_view view() const { return bytes_; }
  const std::string& bytes() const { return bytes_; }
  const std::vector<Mark>& marks() const { return marks_; }
  bool tainted() const { return !marks_.empty(); }
  bool markup() const { return markup_; }
  bool ascii() const { return length_ == bytes_.size(); }
  std::size_t length() const { return length_; }  // code points
  // Byte offset of a code point; `index` may be length().
  std::size_t offset(std::size_t index) const;
  // Code points before a byte offset that starts one.
  std::size_t index_of(std::size_t offset) const;

 private:
  std::string bytes_;
  std::vector<Mark> marks_;
  std::size_t length_ = 0;
  bool markup_ = false;
};

// Nesting and size of a value, kept so that no walk over shared parts can be deeper or longer than planned.
std::size_t depth_of(const Value& value);
std::size_t checked_depth(std::size_t inner);  // inner + 1; fails above kMaxValueDepth
std::uint64_t weight_of(const Value& value);   // about one a scalar or 128 bytes of text, saturating

struct Sequence : Cell {
  std::vector<Value> items;
  std::size_t cursor = 0;                      // of an iterator: the next item
  const char* label = nullptr;                 // of a view: "dict_items"; of a groupby tuple: "group"
  std::int64_t start = 0, stop = 0, step = 1;  // of a range
  std::size_t depth = 1;
  std::uint64_t weight = 1;
};

// An order of keys in which 1, 1.0 and True are one key, as in Python. Lists, dicts and views are no keys;
// objects are told apart by identity.
struct KeyLess {
  bool operator()(const Value& a, const Value& b) const;
};

struct Dict : Cell {
  std::vector<std::pair<Value, Value>> entries;
  std::size_t depth = 1;
  std::uint64_t weight = 1;

  const Value* find(const Value& key) const;
  const Value* find_name(std::string_view key) const;
  // Fails when the key cannot be one (a list, a dict) or the depth is too large.
  void put(Value key, Value value);
  void reserve(std::size_t n) { entries.reserve(n); }

 private:
  std::map<Value, std::size_t, KeyLess> index_;  // only once there are many entries
};

// Whether a value may be a dict's key.
bool hashable(const Value& value);

class TextBuilder;

struct Object : Cell {
  std::size_t depth = 0;  // as of a list; 0 for what is taken apart only when the rendering ends
  virtual std::string_view type_name() const = 0;
  // Lets go of everything held, at the end of a rendering: such objects can hold one another in a ring.
  virtual void release() {}
  virtual bool callable() const { return false; }
  virtual Value attribute(const Value& self, std::string_view name);  // undefined when there is none
  // What printing it shows; fails (unsupported) where Python would show an address. `depth` counts the levels
  // already open, since a namespace may hold itself.
  virtual void append_repr(TextBuilder& out, std::size_t depth) const;
};

Value make_sequence(Value::Kind kind, std::vector<Value> items, const char* label = nullptr);
Value make_dict(Dict dict);
Value make_text(Text text);

// "str", "NoneType", "dict", ...: Python's name of a value's type.
std::string_view type_name(const Value& value);

}  // namespace ponder::text::jinja
