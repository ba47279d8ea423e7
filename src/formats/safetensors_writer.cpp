#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <system_error>

#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "base/error.hpp"
#include "formats/safetensors.hpp"
#include "formats/safetensors_dtypes.hpp"

namespace ponder::formats {
namespace {

constexpr std::size_t kDataAlignment = 64;  // a cache line: packed weights are used where they are mapped

namespace fs = std::filesystem;

std::string quoted(const std::string& text) {
  try {
    return nlohmann::json(text).dump();
  } catch (const nlohmann::json::exception&) {
    fail(ErrorKind::invalid_input, "'{}' is not valid UTF-8 and cannot be written to a safetensors header",
         printable(text));
  }
}

void check(const TensorData& tensor) {
  if (tensor.name == "__metadata__") {
    fail(ErrorKind::invalid_input, "a tensor cannot be named __metadata__ in a safetensors file");
  }
  const std::optional<std::uint64_t> elements = checked_elements(tensor.shape);
  if (!elements) {
    fail(ErrorKind::invalid_input, "tensor '{}' has the impossible shape {}", printable(tensor.name),
         shape_text(tensor.shape));
  }
  if (dtype_bytes(tensor.dtype, *elements) != tensor.bytes.size()) {
    fail(ErrorKind::invalid_input, "tensor '{}' comes with {} bytes for {} of shape {}",
         printable(tensor.name), tensor.bytes.size(), dtype_name(tensor.dtype), shape_text(tensor.shape));
  }
}

std::vector<std::size_t> ordered(std::span<const TensorData> tensors, TensorOrder order) {
  std::vector<std::size_t> indices(tensors.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::sort(indices.begin(), indices.end(),
            [&](std::size_t a, std::size_t b) { return tensors[a].name < tensors[b].name; });
  const auto twice = std::adjacent_find(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
    return tensors[a].name == tensors[b].name;
  });
  if (twice != indices.end()) {
    fail(ErrorKind::invalid_input, "tensor '{}' is given twice", printable(tensors[*twice].name));
  }
  if (order == TensorOrder::as_given) {
    std::sort(indices.begin(), indices.end());
  } else {
    std::stable_sort(indices.begin(), indices.end(), [&](std::size_t a, std::size_t b) {
      const DTypeInfo left = dtype_info(tensors[a].dtype);
      const DTypeInfo right = dtype_info(tensors[b].dtype);
      return left.block_bytes * right.block_elements > right.block_bytes * left.block_elements;
    });
  }
  return indices;
}

std::string header_text(std::span<const TensorData> tensors, std::span<const std::size_t> order,
                        const std::map<std::string, std::string>& metadata) {
  std::string text = "{";
  const auto separate = [&] {
    if (text.size() > 1) text += ',';
  };
  if (!metadata.empty()) {
    text += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata) {
      if (text.back() != '{') text += ',';
      text += quoted(key) + ':' + quoted(value);
    }
    text += '}';
  }
  std::uint64_t at = 0;
  for (const std::size_t i : order) {
    const TensorData& tensor = tensors[i];
    separate();
    text += fmt::format("{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        quoted(tensor.name), safetensors_name_of(tensor.dtype), fmt::join(tensor.shape, ","),
                        at, at + tensor.bytes.size());
    at += tensor.bytes.size();
  }
  text += '}';
  const std::size_t start = sizeof(std::uint64_t) + text.size();
  text.append((kDataAlignment - start % kDataAlignment) % kDataAlignment, ' ');
  if (text.size() > max_safetensors_header) {
    fail(ErrorKind::too_large, "a safetensors header of {} bytes is over the limit of {}", text.size(),
         max_safetensors_header);
  }
  return text;
}

// A file that takes the name of `target` once complete, and disappears otherwise: where the file system can,
// it has no name until then, so that not even a killed program leaves a part of it behind.
class PendingFile {
 public:
  explicit PendingFile(const fs::path& target) : target_(target.string()) {
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
  ~PendingFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (named_) ::unlink(temporary_.c_str());
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      constexpr std::size_t piece = std::size_t{1} << 30;  // one call writes at most 2 GiB
      const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), piece));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail_errno("cannot be written");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void commit() {
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

 private:
  // Tries names beside the target until `make` succeeds with one or fails for another reason than that it is
  // taken.
  template <class Make>
  bool with_free_name(Make make) {
    for (int attempt = 0; attempt < 100; ++attempt) {
      temporary_ = fmt::format("{}.partial-{}-{}", target_, ::getpid(), attempt);
      if (make()) return true;
      if (errno != EEXIST) break;
    }
    return false;
  }
  [[noreturn]] void fail_errno(const char* what) const {
    const int error = errno;
    fail(ErrorKind::bad_file, "{}: {}: {}", printable(target_, 4096), what,
         std::generic_category().message(error));
  }

  std::string target_;
  std::string temporary_;
  int descriptor_ = -1;
  bool named_ = false;  // under temporary_
};

}  // namespace

void write_safetensors(const fs::path& path, std::span<const TensorData> tensors,
                       const std::map<std::string, std::string>& metadata, TensorOrder order) {
  for (const TensorData& tensor : tensors) check(tensor);
  const std::vector<std::size_t> indices = ordered(tensors, order);
  const std::string header = header_text(tensors, indices, metadata);
  const std::uint64_t length = header.size();
  PendingFile file(path);
  file.write(std::as_bytes(std::span(&length, 1)));
  file.write(std::as_bytes(std::span(header)));
  for (const std::size_t i : indices) file.write(tensors[i].bytes);
  file.commit();
}

}  // namespace ponder::formats
