// One line on a terminal that is written over again and again; nothing elsewhere.
#pragma once

#include <cstdio>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

namespace ponder::cli {

class Progress {
 public:
  Progress() = default;
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress() { clear(); }

  bool watched() const { return terminal_; }
  void show(const std::string& what) const {
    if (terminal_) fmt::print(stderr, "\r\033[K{} ...", what);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
};

}  // namespace ponder::cli
