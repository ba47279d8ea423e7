#include "cli/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <span>

#include <unistd.h>

#include "base/error.hpp"
#include "base/pending_file.hpp"

namespace ponder::cli {

namespace fs = std::filesystem;

void write_whole_file(const fs::path& path, std::string_view text) {
  PendingFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.take_over_mode();
  file.commit();
}

void require_writable(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    fail(ErrorKind::bad_file, "{}: is a folder, expected a file to write", printable(path.string(), 4000));
  }
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    fail(ErrorKind::bad_file, "{}: cannot be written: {}", printable(path.string(), 4000),
         std::strerror(errno));
  }
}

}  // namespace ponder::cli
