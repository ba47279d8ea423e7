#include "formats/strict_json.hpp"

#include <cstring>

namespace ponder::formats {

bool StrictSax::parse_error(std::size_t position, const std::string& token,
                            const nlohmann::detail::exception& error) {
  // The library's text is "[id] parse error at line L, column C: reason"; only the reason is of use here.
  std::string_view reason = error.what();
  const std::size_t reason_at = reason.find("while parsing");
  const std::size_t dash = reason_at == std::string_view::npos ? reason_at : reason.find(" - ", reason_at);
  if (dash != std::string_view::npos) reason.remove_prefix(dash + 3);
  const std::size_t last_read = reason.find("; last read");
  if (last_read != std::string_view::npos) reason = reason.substr(0, last_read);
  fail(ErrorKind::bad_file, "{}: {} is not valid JSON at byte {}, near '{}': {}", file_, what_, position,
       printable(token), printable(reason, 200));
}

void parse_strict_json(std::span<const std::byte> text, std::string_view file, std::string_view what,
                       StrictSax& reader) {
  const char* begin = reinterpret_cast<const char*>(text.data());
  // The library skips a byte-order mark and takes a NUL byte for the end of the text: neither is JSON.
  if (text.empty() || *begin != '{') {
    fail(ErrorKind::bad_file, "{}: {} does not start with '{{', expected a JSON object",
         printable(file, 4096), what);
  }
  const void* nul = std::memchr(begin, 0, text.size());
  if (nul != nullptr) {
    fail(ErrorKind::bad_file, "{}: {} is not valid JSON: NUL at byte {}", printable(file, 4096), what,
         static_cast<const char*>(nul) - begin);
  }
  nlohmann::json::sax_parse(begin, begin + text.size(), &reader);
}

}  // namespace ponder::formats
