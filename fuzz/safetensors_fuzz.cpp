// Any bytes as a safetensors file, and any text as the index of a model folder: a clean Error or a sound
// result.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <string_view>

#include <unistd.h>

#include "base/error.hpp"
#include "formats/safetensors.hpp"

namespace {

using ponder::formats::TensorView;

void require(bool condition) {
  if (!condition) __builtin_trap();
}

// Every byte of the data belongs to exactly one tensor, of the size its type and shape ask for.
void check(const std::vector<TensorView>& tensors, std::size_t data_size) {
  std::set<std::string_view> names;
  std::size_t total = 0;
  unsigned sum = 0;
  for (const TensorView& tensor : tensors) {
    require(names.insert(tensor.name).second);
    const auto elements = ponder::formats::checked_elements(tensor.shape);
    require(elements.has_value() && ponder::dtype_bytes(tensor.dtype, *elements) == tensor.bytes.size());
    total += tensor.bytes.size();
    for (const std::byte byte : tensor.bytes) sum += std::to_integer<unsigned>(byte);  // read them all
  }
  require(total == data_size && sum < UINT32_MAX);
}

void parse(std::string_view file) {
  try {
    const auto contents = ponder::formats::parse_safetensors(std::as_bytes(std::span(file)), "f");
    std::uint64_t header = 0;
    std::memcpy(&header, file.data(), sizeof header);
    check(contents.tensors, file.size() - 8 - header);
  } catch (const ponder::Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
}

// With the length that the header's last bracket suggests, most changes reach the JSON.
void parse_with_right_length(std::string file) {
  const std::size_t end = file.rfind('}');
  if (end == std::string::npos || end < 8) return;
  const std::uint64_t length = end + 1 - 8;
  std::memcpy(file.data(), &length, sizeof length);
  parse(file);
}

// A folder with one shard, gone again at exit.
class ModelFolder {
 public:
  ModelFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "ponder-fuzz-XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr);
    path_ = name;
    const ponder::formats::TensorData tensor{"a", ponder::DType::u8, {0}, {}};
    ponder::formats::write_safetensors(path_ / "f.safetensors", std::span(&tensor, 1));
  }
  ~ModelFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ModelFolder(const ModelFolder&) = delete;
  ModelFolder& operator=(const ModelFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

void open_index(std::string_view text) {
  static const ModelFolder made;
  const std::filesystem::path& folder = made.path();
  std::ofstream(folder / "model.safetensors.index.json", std::ios::binary)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
  try {
    const auto checkpoint = ponder::formats::open_model_folder(folder);
    require(checkpoint.size() == 1 && checkpoint.contains("a"));
  } catch (const ponder::Error& error) {
    require(std::strchr(error.what(), '\n') == nullptr);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  parse(input);
  if (size >= 8) parse_with_right_length(std::string(input));
  if (input.starts_with('{')) open_index(input);
  return 0;
}
