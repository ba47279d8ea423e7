#include "cli/io.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"

namespace ponder::cli {

Input::Input(const std::string& path)
    : name_(path.empty() || path == "-" ? "standard input" : path),
      file_(name_ == "standard input" ? stdin : std::fopen(path.c_str(), "rb")) {
  if (file_ == nullptr) fail(ErrorKind::invalid_input, "{}: {}", name_, std::strerror(errno));
}

Input::~Input() {
  if (file_ != stdin) std::fclose(file_);
}

std::string Input::all() {
  std::string text;
  char block[1 << 16];
  std::size_t n = 0;
  while ((n = std::fread(block, 1, sizeof block, file_)) > 0) {
    text.append(block, n);
    if (text.size() > kLargestInput) {
      fail(ErrorKind::too_large, "{}: more than {} bytes", name_, kLargestInput);
    }
  }
  if (std::ferror(file_) != 0) fail(ErrorKind::invalid_input, "{}: {}", name_, std::strerror(errno));
  return text;
}

std::optional<std::string> Input::line() {
  std::string text;
  int c = 0;
  while ((c = std::getc(file_)) != EOF) {
    if (c != '\n') {
      text += static_cast<char>(c);
      if (text.size() > kLargestInput) {
        fail(ErrorKind::too_large, "{}: line {} has more than {} bytes", name_, line_ + 1, kLargestInput);
      }
      continue;
    }
    ++line_;
    if (text.find_first_not_of(" \t\r") != std::string::npos) return text;
    text.clear();
  }
  if (std::ferror(file_) != 0) fail(ErrorKind::invalid_input, "{}: {}", name_, std::strerror(errno));
  if (text.find_first_not_of(" \t\r") == std::string::npos) return std::nullopt;
  ++line_;
  return text;
}

void print(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) {
    fail(ErrorKind::invalid_input, "cannot write to standard output: {}", std::strerror(errno));
  }
}

void append_number(std::string& out, float value) {
  if (!std::isfinite(value)) {
    out += "null";
  } else {
    fmt::format_to(std::back_inserter(out), "{}", value);
  }
}

}  // namespace ponder::cli
