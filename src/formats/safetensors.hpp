// The safetensors container: u64 header length, a JSON object name -> {dtype, shape, data_offsets}, then the
// data.
//
// Only the header is read on opening; data pages stay on disk until a tensor is used. Every reader throws
// bad_file (too_large past a stated limit) with one line that names the file and the entry and says what was
// expected.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "formats/checkpoint.hpp"

namespace ponder::formats {

inline constexpr std::uint64_t max_safetensors_header = 100'000'000;

struct SafetensorsContents {
  std::vector<TensorView> tensors;  // in header order; bytes point into the parsed file, `file` is left empty
  std::map<std::string, std::string> metadata;
};

// Parses a whole file already in memory; `file` is only for messages. Refuses: a header that is too long, cut
// short, not strict JSON or with a name twice; unknown types and fields; sizes that do not follow from type
// and shape; data that overlaps, leaves holes, runs past the end or stops short of it. Memory is bounded by a
// few times the header's size.
SafetensorsContents parse_safetensors(std::span<const std::byte> bytes, std::string_view file);

Checkpoint open_safetensors(const std::filesystem::path& path);

// The weights of a model folder: the shards of model.safetensors.index.json if there is one, else
// model.safetensors, else every *.safetensors whose name does not start with "drafter", sorted by name. An
// index and its shards must agree on every tensor, and shards are plain file names in the folder.
Checkpoint open_model_folder(const std::filesystem::path& folder);

// The folder's drafter*.safetensors, sorted by name; usually one or none.
std::vector<std::filesystem::path> find_drafters(const std::filesystem::path& folder);

struct TensorData {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::span<const std::byte> bytes;  // row-major, little-endian; read only during the call
};

enum class TensorOrder {
  by_size_then_name,  // widest elements first, so that every tensor is aligned to its element
  as_given,
};

// Writes one file: the same tensors and metadata give the same bytes. The data starts at a multiple of 64.
// The file appears under its name complete or not at all (written beside it, flushed, then renamed). Throws
// invalid_input for tensors that no valid file can hold, bad_file when the disk refuses.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorData> tensors,
                       const std::map<std::string, std::string>& metadata = {{"format", "pt"}},
                       TensorOrder order = TensorOrder::by_size_then_name);

}  // namespace ponder::formats
