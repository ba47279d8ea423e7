#include "cli/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"

namespace ponder::cli {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const fs::path& path, int error) {
  fail(ErrorKind::bad_file, "{}: cannot be written: {}", printable(path.string(), 4000),
       std::strerror(error));
}

fs::path folder_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

// A file of a name of its own, gone again unless it was kept.
class Draft {
 public:
  explicit Draft(const fs::path& path) : target_(path), name_(path.string() + ".XXXXXX") {
    file_ = ::mkostemp(name_.data(), O_CLOEXEC);
    if (file_ < 0) cannot_write(target_, errno);
  }
  ~Draft() {
    if (file_ >= 0) ::close(file_);
    if (!kept_) ::unlink(name_.c_str());
  }
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  void write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t n = ::write(file_, text.data(), text.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) cannot_write(target_, errno);
      text.remove_prefix(static_cast<std::size_t>(n));
    }
  }

  void keep() {
    struct stat old = {};
    // umask() cannot be asked without setting it: a new file gets what most have.
    const mode_t mode = ::stat(target_.c_str(), &old) == 0 ? old.st_mode & 07777U : 0644U;
    if (::fchmod(file_, mode) != 0 || ::fsync(file_) != 0) cannot_write(target_, errno);
    const int closed = ::close(file_);
    file_ = -1;
    if (closed != 0 || ::rename(name_.c_str(), target_.c_str()) != 0) cannot_write(target_, errno);
    kept_ = true;
  }

 private:
  fs::path target_;
  std::string name_;
  int file_ = -1;
  bool kept_ = false;
};

}  // namespace

void write_whole_file(const fs::path& path, std::string_view text) {
  Draft draft(path);
  draft.write(text);
  draft.keep();
}

void require_writable(const fs::path& path) {
  std::error_code ec;
  if (fs::is_directory(path, ec)) {
    fail(ErrorKind::bad_file, "{}: is a folder, expected a file to write", printable(path.string(), 4000));
  }
  if (::access(folder_of(path).c_str(), W_OK | X_OK) != 0) cannot_write(path, errno);
}

}  // namespace ponder::cli
