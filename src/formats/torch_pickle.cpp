#include "formats/torch_pickle.hpp"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "base/error.hpp"
#include "formats/pickle_reader.hpp"
#include "formats/utf8.hpp"
#include "formats/zip_archive.hpp"

namespace ponder::formats {
namespace {

// A flat dict of ten thousand tensors takes some 2 MB.
constexpr std::size_t max_pickle = std::size_t{4} << 20;
constexpr std::string_view pickle_name = "/data.pkl";

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The archive's one folder holds everything; its name is free.
const ZipEntry& find_pickle(const ZipArchive& archive, const std::string& file) {
  const ZipEntry* found = nullptr;
  for (const ZipEntry& entry : archive.entries()) {
    if (!entry.name.ends_with(pickle_name)) continue;
    if (found != nullptr) {
      fail(ErrorKind::bad_file, "{}: has both '{}' and '{}', expected one data.pkl", file,
           printable(found->name), printable(entry.name));
    }
    found = &entry;
  }
  if (found == nullptr) {
    fail(ErrorKind::bad_file, "{}: a zip archive without a data.pkl, not written by torch.save", file);
  }
  return *found;
}

void check_byte_order(const ZipArchive& archive, const std::string& root, const std::string& file) {
  const ZipEntry* entry = archive.find(root + "byteorder");
  if (entry == nullptr) return;  // older writers, little-endian
  archive.verify(*entry);
  if (as_text(entry->bytes) == "little") return;
  fail(ErrorKind::unsupported, "{}: '{}' is '{}', expected little", file, printable(entry->name),
       printable(as_text(entry->bytes)));
}

void check_names(const std::vector<TensorView>& tensors, const std::string& file) {
  std::vector<std::string_view> names;
  names.reserve(tensors.size());
  for (const TensorView& tensor : tensors) {
    if (!is_utf8(tensor.name)) {
      fail(ErrorKind::bad_file, "{}: the tensor name '{}' is not valid UTF-8", file, printable(tensor.name));
    }
    names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return;
  fail(ErrorKind::bad_file, "{}: tensor '{}' occurs twice", file, printable(*twice));
}

}  // namespace

std::vector<TensorView> parse_torch_state_dict(std::span<const std::byte> bytes, std::string_view file) {
  const std::string shown = printable(file, 4096);
  const ZipArchive archive(bytes, file);
  const ZipEntry& pickle = find_pickle(archive, shown);
  if (pickle.bytes.size() > max_pickle) {
    fail(ErrorKind::too_large, "{}: '{}' has {} bytes, over the limit of {}", shown, printable(pickle.name),
         pickle.bytes.size(), max_pickle);
  }
  archive.verify(pickle);
  const std::string root(pickle.name.substr(0, pickle.name.size() - pickle_name.size() + 1));
  check_byte_order(archive, root, shown);
  const auto storage = [&](std::string_view key) {
    const std::string name = root + "data/" + std::string(key);
    const ZipEntry* entry = archive.find(name);
    if (entry == nullptr) {
      fail(ErrorKind::bad_file, "{}: the archive has no entry '{}', which the dict needs", shown,
           printable(name));
    }
    archive.verify(*entry);
    return entry->bytes;
  };
  PickleReader reader(pickle.bytes, fmt::format("{}: '{}'", shown, printable(pickle.name)), storage);
  std::vector<TensorView> tensors = reader.read();
  check_names(tensors, shown);
  return tensors;
}

Checkpoint load_torch_state_dict(const std::filesystem::path& path) {
  auto mapping = std::make_shared<const MappedFile>(path);
  CheckpointPart part;
  part.file = {mapping->path(), "torch", mapping->size(), 0, {}};
  part.tensors = parse_torch_state_dict(mapping->bytes(), mapping->path());
  part.mapping = std::move(mapping);
  std::vector<CheckpointPart> parts;
  parts.push_back(std::move(part));
  return Checkpoint(std::move(parts));
}

}  // namespace ponder::formats
