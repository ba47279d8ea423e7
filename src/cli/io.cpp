#include "cli/io.hpp"

#include <cerrno>
#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include "base/error.hpp"

namespace ponder::cli {

Input::Input(const std::string& path) {
  const bool standard = path.empty() || path == "-";
  name_ = standard ? "standard input" : path;
  file_ = standard ? stdin : std::fopen(path.c_str(), "rb");
  if (file_ == nullptr)
    fail(ErrorKind::invalid_input, "{}: {}", printable(name_, 4000), std::strerror(errno));
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
  bool too_long = false;
  int c = 0;
  const auto finish = [&]() -> bool {  // whether `text` is a line to return
    ++line_;
    if (too_long) {
      fail(ErrorKind::too_large, "{}: line {} has more than {} bytes", printable(name_, 4000), line_,
           kLargestInput);
    }
    return text.find_first_not_of(" \t\r") != std::string::npos;
  };
  while ((c = std::getc(file_)) != EOF) {
    if (c == '\n') {
      if (finish()) return text;
      text.clear();
    } else if (text.size() < kLargestInput) {
      text += static_cast<char>(c);
    } else {
      too_long = true;  // read to its end, so that the next line is whole
    }
  }
  if (std::ferror(file_) != 0) {
    fail(ErrorKind::invalid_input, "{}: {}", printable(name_, 4000), std::strerror(errno));
  }
  if (text.empty() || !finish()) return std::nullopt;
  return text;
}

void flush() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    fail(ErrorKind::invalid_input, "cannot write to standard output: {}", std::strerror(errno));
  }
}

void complain(std::string_view line) noexcept {
  std::fwrite(line.data(), 1, line.size(), stderr);
  std::fputc('\n', stderr);
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
