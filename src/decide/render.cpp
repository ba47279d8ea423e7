#include "decide/render.hpp"

#include "base/error.hpp"
#include "decide/python_format.hpp"
#include "decide/utf8_point.hpp"

namespace ponder::decide {
namespace {

// str.isspace() of one code point.
bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

class Renderer {
 public:
  void value(const Value& v, std::size_t depth) {
    if (const Array* array = v.if_array()) {
      check_depth(depth);
      list(*array, depth);
    } else if (const Object* object = v.if_object()) {
      check_depth(depth);
      members(*object, depth);
    } else {
      scalar(v);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  static void check_depth(std::size_t depth) {
    if (depth >= max_nesting) {
      fail(ErrorKind::too_large, "value to render is nested deeper than {} levels", max_nesting);
    }
  }

  void scalar(const Value& v) {
    if (const std::string* s = v.if_string()) {
      put(*s);
    } else if (const bool* b = v.if_bool()) {
      put(*b ? "True" : "False");
    } else if (const std::int64_t* i = v.if_integer()) {
      put(std::to_string(*i));
    } else if (const BigInteger* big = v.if_big_integer()) {
      put(big->text);
    } else if (const double* d = v.if_double()) {
      put(python_float(*d));
    }
  }

  void list(const Array& array, std::size_t depth) {
    bool first = true;
    for (const Value& item : array) {
      start_line(first, depth);
      put("- ");
      stripping_ = true;
      value(item, depth + 1);
      stripping_ = false;
    }
  }

  void members(const Object& object, std::size_t depth) {
    bool first = true;
    for (const Member& m : object.members()) {
      start_line(first, depth);
      put(m.key);
      if (m.value.is_container()) {
        put(":\n");
        value(m.value, depth + 1);
      } else {
        put(": ");
        scalar(m.value);
      }
    }
  }

  void start_line(bool& first, std::size_t depth) {
    if (!first) put("\n");
    first = false;
    pad_.resize(2 * depth, ' ');
    put(pad_);
  }

  // While stripping, whitespace vanishes up to the first character that is none: the lstrip of a list item,
  // done before its text exists.
  void put(std::string_view text) {
    while (stripping_ && !text.empty()) {
      const CodePoint point = code_point_at(text, 0);
      if (point.valid && is_python_space(point.code)) {
        text.remove_prefix(point.bytes);
      } else {
        stripping_ = false;
      }
    }
    if (text.size() > max_rendered_bytes - out_.size()) {
      fail(ErrorKind::too_large, "value renders to more than {} bytes of text", max_rendered_bytes);
    }
    out_ += text;
  }

  std::string out_;
  std::string pad_;
  bool stripping_ = false;
};

bool is_name(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

std::string render(const Value& value) {
  Renderer renderer;
  renderer.value(value, 0);
  return renderer.take();
}

std::string sanitize(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  std::size_t copied = 0;
  for (std::size_t at = text.find("<|"); at != text.npos; at = text.find("<|", at)) {
    const std::size_t name = at + 2;
    std::size_t end = name;
    while (end < text.size() && is_name(text[end])) ++end;
    if (end > name && text.substr(end, 2) == "|>") {
      out += text.substr(copied, at - copied);
      out += "<\u00A6";
      out += text.substr(name, end - name);
      out += "\u00A6>";
      copied = end + 2;
      at = copied;
    } else {
      at = end;  // no "<|" starts inside a name, so every byte is looked at twice at most
    }
  }
  out += text.substr(copied);
  return out;
}

}  // namespace ponder::decide
