#include "base/pending_file.hpp"

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"

namespace ponder {

// Tries names beside the target until `make` succeeds with one or fails for another reason than that it is
// taken.
template <class Make>
bool PendingFile::with_free_name(Make make) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary_ = fmt::format("{}.partial-{}-{}", target_, ::getpid(), attempt);
    if (make()) return true;
    if (errno != EEXIST) break;
  }
  return false;
}

PendingFile::PendingFile(const std::filesystem::path& target) : target_(target.string()) {
  if (::access("/proc/self/fd", X_OK) == 0) {  // where a file without a name is found to be given one
    const std::string folder = target.has_parent_path() ? target.parent_path().string() : ".";
    descriptor_ = ::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) return;
  }
  with_free_name([&] {
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return descriptor_ >= 0;
  });
  if (descriptor_ < 0) fail_errno("cannot be created");
  named_ = true;
}

PendingFile::~PendingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (named_) ::unlink(temporary_.c_str());
}

void PendingFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    constexpr std::size_t piece = std::size_t{1} << 30;  // one call writes at most 2 GiB
    const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), piece));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) fail_errno("cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void PendingFile::take_over_mode() {
  struct stat old = {};
  if (::stat(target_.c_str(), &old) != 0) return;
  if (::fchmod(descriptor_, old.st_mode & 07777U) != 0) fail_errno("cannot be given its permissions");
}

void PendingFile::commit() {
  if (::fsync(descriptor_) != 0) fail_errno("cannot be written");
  if (!named_) {
    const std::string from = fmt::format("/proc/self/fd/{}", descriptor_);
    named_ = with_free_name([&] {
      return ::linkat(AT_FDCWD, from.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
    if (!named_) fail_errno("cannot be put in place");
  }
  const int descriptor = std::exchange(descriptor_, -1);
  if (::close(descriptor) != 0) fail_errno("cannot be written");
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail_errno("cannot be put in place");
  named_ = false;
}

void PendingFile::fail_errno(const char* what) const {
  const int error = errno;
  fail(ErrorKind::bad_file, "{}: {}: {}", printable(target_, 4096), what,
       std::generic_category().message(error));
}

}  // namespace ponder
