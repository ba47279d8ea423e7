#include "base/json_guard.hpp"

#include "base/error.hpp"

namespace ponder {

void check_json_text(std::string_view text, std::string_view where, std::size_t max_depth) {
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\0') fail(ErrorKind::bad_file, "{}: a NUL byte at byte {}, expected JSON text", where, i);
    if (in_string) {
      if (c == '\\') ++i;
      in_string = i < text.size() && c != '"';
    } else if (c == '"') {
      in_string = true;
    } else if (c == '[' || c == '{') {
      if (++depth > max_depth) {
        fail(ErrorKind::bad_file, "{}: nested deeper than {} levels at byte {}", where, max_depth, i);
      }
    } else if ((c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
}

}  // namespace ponder
