// What every reader of this room returns: named, typed tensors whose bytes stay in the mapped files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.hpp"
#include "base/mapped_file.hpp"

namespace ponder::formats {

// One tensor, row-major, little-endian. `bytes` has no alignment beyond what the file happens to give and is
// exactly dtype_bytes(dtype, product of shape) long; `file` names where it came from, for messages. Both
// point into the Checkpoint that holds the view (or a copy of it).
struct TensorView {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  // empty for a scalar; sizes may be 0
  std::span<const std::byte> bytes;
  std::string_view file;
};

// Product of a shape. Nothing when a dimension is negative or the product of those that are not 0 passes 63
// bits, so that the answer depends neither on their order nor on a 0 among absurd ones.
std::optional<std::uint64_t> checked_elements(std::span<const std::int64_t> shape) noexcept;

// The same for a tensor whose reader has checked it.
std::int64_t element_count(const TensorView& tensor) noexcept;

// "[2, 4]"; "[]" for a scalar. Past 8 dimensions the rest is counted.
std::string shape_text(std::span<const std::int64_t> shape);

// All values as floats (f64 rounded). Throws unsupported, naming the tensor, when it does not hold plain
// floats.
std::vector<float> float_values(const TensorView& tensor);

struct FileInfo {
  std::string path;
  std::string format;  // "safetensors", "torch", ...
  std::uint64_t bytes = 0;
  std::size_t tensors = 0;
  std::map<std::string, std::string> metadata;  // the file's own strings
};

// One file's contents, as a reader hands them over. TensorView::file may be left empty.
struct CheckpointPart {
  FileInfo file;
  std::vector<TensorView> tensors;
  std::shared_ptr<const MappedFile>
      mapping;  // what the tensors' bytes point into; null for memory of the caller's
};

// An immutable set of tensors from one or more files, in a stable order: by file as given, then as stored.
// Copies share the same tensors; the mappings live as long as any copy. Safe to read from several threads.
class Checkpoint {
 public:
  Checkpoint();
  // Throws bad_file naming the tensor and both files when two parts (or one part twice) hold the same name.
  explicit Checkpoint(std::vector<CheckpointPart> parts);

  std::span<const TensorView> tensors() const noexcept;
  auto begin() const noexcept { return tensors().begin(); }
  auto end() const noexcept { return tensors().end(); }
  std::size_t size() const noexcept { return tensors().size(); }
  bool empty() const noexcept { return tensors().empty(); }

  // Null when there is no such tensor.
  const TensorView* find(std::string_view name) const noexcept;
  bool contains(std::string_view name) const noexcept { return find(name) != nullptr; }
  // Throws bad_file naming the tensor and where it was looked for.
  const TensorView& at(std::string_view name) const;

  std::span<const FileInfo> files() const noexcept;
  // Sum over the tensors, without headers.
  std::uint64_t tensor_bytes() const noexcept;
  // The first file's value under this key, or null.
  const std::string* metadata(std::string_view key) const noexcept;

  // Throws bad_file when a file was shortened, rewritten or replaced since it was opened. One stat per file:
  // call it before a request runs.
  void check_unchanged() const;
  // A hint to all mappings.
  void advise(MappedFile::Advice advice) const noexcept;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace ponder::formats
