#include "decide/json_write.hpp"

#include <cmath>

#include "base/error.hpp"
#include "decide/python_format.hpp"
#include "decide/utf8_point.hpp"

namespace ponder::decide {
namespace {

struct Style {
  std::string_view comma;
  std::string_view colon;
  bool ascii;
  int indent;  // 0: everything on one line
};

class Writer {
 public:
  explicit Writer(const Style& style) : style_(style) {}

  void value(const Value& v, std::size_t depth) {
    if (v.is_null()) {
      out_ += "null";
    } else if (const bool* b = v.if_bool()) {
      out_ += *b ? "true" : "false";
    } else if (const std::int64_t* i = v.if_integer()) {
      out_ += std::to_string(*i);
    } else if (const BigInteger* big = v.if_big_integer()) {
      out_ += big->text;
    } else if (const double* d = v.if_double()) {
      if (!std::isfinite(*d)) fail(ErrorKind::internal, "JSON cannot hold the number {}", *d);
      out_ += python_float(*d);
    } else if (const std::string* s = v.if_string()) {
      string(*s);
    } else {
      container(v, depth);
    }
  }

  std::string take() { return std::move(out_); }

 private:
  void container(const Value& v, std::size_t depth) {
    if (depth >= max_nesting) {
      fail(ErrorKind::too_large, "value to write is nested deeper than {} levels", max_nesting);
    }
    const Array* array = v.if_array();
    const Object* object = v.if_object();
    const std::size_t count = array != nullptr ? array->size() : object->size();
    out_ += array != nullptr ? '[' : '{';
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out_ += style_.comma;
      new_line(depth + 1);
      if (object != nullptr) {
        string(object->members()[i].key);
        out_ += style_.colon;
      }
      value(array != nullptr ? (*array)[i] : object->members()[i].value, depth + 1);
    }
    if (count > 0) new_line(depth);
    out_ += array != nullptr ? ']' : '}';
  }

  void new_line(std::size_t depth) {
    if (style_.indent == 0) return;
    out_ += '\n';
    out_.append(depth * static_cast<std::size_t>(style_.indent), ' ');
  }

  void string(std::string_view text) {
    out_ += '"';
    for (std::size_t at = 0; at < text.size();) {
      const CodePoint point = code_point_at(text, at);
      if (!simple_escape(point.code)) {
        if (point.code < 0x20 || (style_.ascii && point.code > 0x7E)) {
          unicode_escape(static_cast<unsigned>(point.code));
        } else {
          out_ += point.valid ? text.substr(at, point.bytes) : "\uFFFD";
        }
      }
      at += point.bytes;
    }
    out_ += '"';
  }

  bool simple_escape(char32_t c) {
    constexpr std::string_view from = "\"\\\n\r\t\b\f", to = "\"\\nrtbf";
    if (c > 0x7F) return false;
    const std::size_t at = from.find(static_cast<char>(c));
    if (at == from.npos) return false;
    out_ += '\\';
    out_ += to[at];
    return true;
  }

  void unicode_escape(unsigned code) {
    if (code > 0xFFFF) {
      code -= 0x10000;
      out_ += fmt::format("\\u{:04x}", 0xD800 + (code >> 10));
      code = 0xDC00 + (code & 0x3FF);
    }
    out_ += fmt::format("\\u{:04x}", code);
  }

  Style style_;
  std::string out_;
};

std::string write(const Value& value, const Style& style) {
  Writer writer(style);
  writer.value(value, 0);
  return writer.take();
}

}  // namespace

std::string write_python_json(const Value& value) {
  return write(value, {", ", ": ", true, 0});
}

std::string write_json(const Value& value, int indent) {
  if (indent > 0) return write(value, {",", ": ", false, indent});
  return write(value, {",", ":", false, 0});
}

}  // namespace ponder::decide
