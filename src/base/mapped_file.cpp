#include "base/mapped_file.hpp"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.hpp"
#include "base/mapping_faults.hpp"

namespace ponder {
namespace {

constexpr std::size_t path_limit = 4096;

std::string reason(int error) {
  return std::generic_category().message(error);
}

const char* kind_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISSOCK(mode)) return "a socket";
  return "something else";
}

// A device can act on being opened and a pipe can block, so the kind is asked first.
struct stat stat_regular(const std::string& path, const std::string& shown) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    fail(ErrorKind::bad_file, "{}: cannot be opened: {}", shown, reason(errno));
  }
  if (!S_ISREG(status.st_mode)) {
    fail(ErrorKind::bad_file, "{}: is {}, expected a regular file", shown, kind_name(status.st_mode));
  }
  return status;
}

class Descriptor {
 public:
  explicit Descriptor(int value) : value_(value) {}
  ~Descriptor() {
    if (value_ >= 0) ::close(value_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return value_; }

 private:
  int value_;
};

int advice_flag(MappedFile::Advice advice) {
  switch (advice) {
    case MappedFile::Advice::sequential:
      return MADV_SEQUENTIAL;
    case MappedFile::Advice::random:
      return MADV_RANDOM;
    case MappedFile::Advice::will_need:
      return MADV_WILLNEED;
    case MappedFile::Advice::dont_need:
      return MADV_DONTNEED;
    case MappedFile::Advice::normal:
      break;
  }
  return MADV_NORMAL;
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path.string()) {
  const std::string shown = printable(path_, path_limit);
  if (path_.find('\0') != std::string::npos)
    fail(ErrorKind::bad_file, "{}: the path holds a NUL byte", shown);
  stat_regular(path_, shown);
  // Between the two looks the path can come to name a pipe: O_NONBLOCK keeps even that from hanging.
  const Descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (file.get() < 0) fail(ErrorKind::bad_file, "{}: cannot be opened: {}", shown, reason(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    fail(ErrorKind::bad_file, "{}: stopped being a regular file while it was opened", shown);
  }
  if (status.st_size <= 0) fail(ErrorKind::bad_file, "{}: the file is empty", shown);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > std::numeric_limits<std::size_t>::max() / 2) {
    fail(ErrorKind::too_large, "{}: {} bytes do not fit the address space", shown, size);
  }

  std::error_code ignored;
  absolute_path_ = std::filesystem::absolute(path, ignored).string();
  if (absolute_path_.empty()) absolute_path_ = path_;
  const std::string line = fmt::format(
      "ponder: {}: can no longer be read: the file was cut short or its disk failed while in use (it had {} "
      "bytes "
      "when opened)\n",
      shown, size);

  void* data = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    fail(ErrorKind::no_memory, "{}: {} bytes cannot be mapped: {}", shown, size, reason(errno));
  }
  data_ = static_cast<const std::byte*>(data);
  size_ = size;
  identity_ = {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino), size,
               status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
  detail::register_mapping(data_, size_, line);
}

MappedFile::~MappedFile() {
  release();
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      absolute_path_(std::move(other.absolute_path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      identity_(other.identity_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    release();
    path_ = std::move(other.path_);
    absolute_path_ = std::move(other.absolute_path_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    identity_ = other.identity_;
  }
  return *this;
}

void MappedFile::release() noexcept {
  if (data_ == nullptr) return;
  detail::forget_mapping(data_);
  ::munmap(const_cast<std::byte*>(data_), size_);
  data_ = nullptr;
  size_ = 0;
}

void MappedFile::advise(Advice advice, std::size_t offset, std::size_t length) const noexcept {
  if (offset >= size_ || length == 0) return;
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = offset + std::min(length, size_ - offset);
  const std::size_t begin = offset / page * page;
  ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, advice_flag(advice));
}

// The mapping keeps the inode alive, so an equal inode number can only be the mapped file itself.
std::string MappedFile::difference() const {
  if (data_ == nullptr) return {};
  struct stat now {};
  if (::stat(absolute_path_.c_str(), &now) != 0) return "it can no longer be found: " + reason(errno);
  if (static_cast<std::uint64_t>(now.st_dev) != identity_.device ||
      static_cast<std::uint64_t>(now.st_ino) != identity_.inode) {
    return "another file has taken its place";
  }
  if (static_cast<std::uint64_t>(now.st_size) != identity_.size) {
    return fmt::format("it had {} bytes and now has {}", identity_.size, now.st_size);
  }
  if (now.st_mtim.tv_sec != identity_.modified_s || now.st_mtim.tv_nsec != identity_.modified_ns) {
    return "it has been written to";
  }
  return {};
}

void MappedFile::check_unchanged() const {
  const std::string what = difference();
  if (what.empty()) return;
  fail(ErrorKind::bad_file, "{}: the file changed while in use: {}; load the model again",
       printable(path_, path_limit), what);
}

}  // namespace ponder
