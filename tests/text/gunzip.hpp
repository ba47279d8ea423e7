// Reads a gzip file of the test data.
#pragma once

#include <stdexcept>
#include <string>

#include <zlib.h>

namespace ponder::testing {

inline std::string gunzip_file(const std::string& path) {
  gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) throw std::runtime_error(path + ": cannot be opened");
  std::string text;
  std::string block(1 << 16, '\0');
  int n = 0;
  while ((n = gzread(file, block.data(), static_cast<unsigned>(block.size()))) > 0) {
    text.append(block, 0, static_cast<std::size_t>(n));
  }
  gzclose(file);
  if (n < 0) throw std::runtime_error(path + ": not a gzip file");
  return text;
}

}  // namespace ponder::testing
