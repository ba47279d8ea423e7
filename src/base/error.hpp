// The one way to fail: an exception that carries a kind and one readable line.
//
// Thrown anywhere below, caught at one boundary per front-end (a verb of the command line, a request of a
// server). A message names what was found, where, and what was expected; it never holds a line break, so text
// from files or requests goes through printable() first.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <fmt/format.h>

namespace ponder {

enum class ErrorKind {
  usage,          // the command line or an API call is wrong
  invalid_input,  // a request, prompt or token list is wrong
  bad_file,       // a file is damaged or not what its name promises
  unsupported,    // well-formed, but of a kind this build does not handle
  too_large,      // over a stated limit (tokens, bytes, depth)
  no_memory,      // the machine cannot hold what was asked for
  cancelled,      // the caller gave up
  internal,       // a broken assumption of our own
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

template <class... Args>
[[noreturn]] void fail(ErrorKind kind, fmt::format_string<Args...> format, Args&&... args) {
  throw Error(kind, fmt::format(format, std::forward<Args>(args)...));
}

// Text of unknown origin made safe for a one-line message: control characters and bytes that are not UTF-8
// are written as \xNN, and anything past `limit` bytes is cut and marked with "...".
std::string printable(std::string_view text, std::size_t limit = 80);

}  // namespace ponder
