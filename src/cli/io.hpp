// Input from a file or standard input, whole or line by line, never more than a limit.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace ponder::cli {

// Longest request or line that is read.
inline constexpr std::size_t kLargestInput = std::size_t{8} << 20;

class Input {
 public:
  // A path, or "-" or "" for standard input. Throws Error(invalid_input) when it cannot be opened.
  explicit Input(const std::string& path);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;

  // Everything. Throws Error(too_large) past kLargestInput.
  std::string all();
  // The next line without its line end; nothing at the end. Blank lines are skipped. Throws Error(too_large),
  // naming the line, past kLargestInput; the call after that reads the line behind it.
  std::optional<std::string> line();
  std::size_t line_number() const noexcept { return line_; }
  const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
  std::FILE* file_;
  std::size_t line_ = 0;
};

// Writes to standard output; throws Error(invalid_input) when that fails (a closed pipe, a full disk).
void print(std::string_view text);
// Hands everything printed to the system; throws like print().
void flush();
// One line on standard error. Never fails: where nobody can be told, work goes on.
void complain(std::string_view line) noexcept;

// 1.5 as "1.5", 1e-7F as "1e-07": the shortest text that reads back as the same float; null for no number.
void append_number(std::string& out, float value);

}  // namespace ponder::cli
