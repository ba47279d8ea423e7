#include "formats/checkpoint.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/float_types.hpp"

namespace ponder::formats {

std::optional<std::uint64_t> checked_elements(std::span<const std::int64_t> shape) noexcept {
  std::int64_t product = 1;
  bool zero = false;
  for (const std::int64_t dimension : shape) {
    if (dimension < 0) return std::nullopt;
    zero = zero || dimension == 0;
    if (dimension != 0 && __builtin_mul_overflow(product, dimension, &product)) return std::nullopt;
  }
  return zero ? 0 : static_cast<std::uint64_t>(product);
}

std::int64_t element_count(const TensorView& tensor) noexcept {
  return static_cast<std::int64_t>(checked_elements(tensor.shape).value_or(0));
}

std::string shape_text(std::span<const std::int64_t> shape) {
  constexpr std::size_t shown = 8;
  const auto first = shape.first(std::min(shape.size(), shown));
  const std::string rest = shape.size() > shown ? fmt::format(", … {} more", shape.size() - shown) : "";
  return fmt::format("[{}{}]", fmt::join(first, ", "), rest);
}

std::vector<float> float_values(const TensorView& tensor) {
  if (!is_plain_float(tensor.dtype)) {
    fail(ErrorKind::unsupported, "{}: tensor '{}' is {}, expected floats", printable(tensor.file, 4096),
         printable(tensor.name), dtype_name(tensor.dtype));
  }
  std::vector<float> values(static_cast<std::size_t>(element_count(tensor)));
  to_floats(tensor.dtype, tensor.bytes, values);
  return values;
}

struct Checkpoint::State {
  std::vector<FileInfo> files;
  std::vector<TensorView> tensors;
  std::vector<std::uint32_t> by_name;  // indices into tensors, sorted by name
  std::vector<std::shared_ptr<const MappedFile>> mappings;
  std::uint64_t tensor_bytes = 0;
};

Checkpoint::Checkpoint() : state_(std::make_shared<const State>()) {}

Checkpoint::Checkpoint(std::vector<CheckpointPart> parts) {
  auto state = std::make_shared<State>();
  std::size_t count = 0;
  for (const CheckpointPart& part : parts) count += part.tensors.size();
  if (count > std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorKind::too_large, "{} tensors in {} files are more than a checkpoint can hold", count,
         parts.size());
  }
  state->files.reserve(parts.size());  // views keep pointers to the paths in it
  if (parts.size() == 1) {
    state->tensors = std::move(parts.front().tensors);
  } else {
    state->tensors.reserve(count);
  }
  std::size_t at = 0;
  for (CheckpointPart& part : parts) {
    FileInfo& file = state->files.emplace_back(std::move(part.file));
    file.tensors = parts.size() == 1 ? count : part.tensors.size();
    std::move(part.tensors.begin(), part.tensors.end(), std::back_inserter(state->tensors));
    std::vector<TensorView>().swap(part.tensors);
    for (; at < state->tensors.size(); ++at) {
      state->tensors[at].file = file.path;
      state->tensor_bytes += state->tensors[at].bytes.size();
    }
    if (part.mapping != nullptr) state->mappings.push_back(std::move(part.mapping));
  }

  const std::vector<TensorView>& tensors = state->tensors;
  state->by_name.resize(count);
  std::iota(state->by_name.begin(), state->by_name.end(), 0U);
  std::sort(state->by_name.begin(), state->by_name.end(), [&](std::uint32_t a, std::uint32_t b) {
    const int order = tensors[a].name.compare(tensors[b].name);
    return order != 0 ? order < 0 : a < b;
  });
  const auto twice = std::adjacent_find(state->by_name.begin(), state->by_name.end(),
                                        [&](auto a, auto b) { return tensors[a].name == tensors[b].name; });
  if (twice != state->by_name.end()) {
    const TensorView& first = tensors[twice[0]];
    const TensorView& second = tensors[twice[1]];
    if (first.file == second.file) {
      fail(ErrorKind::bad_file, "{}: tensor '{}' occurs twice", printable(first.file, 4096),
           printable(first.name));
    }
    fail(ErrorKind::bad_file, "{}: tensor '{}' is already in {}", printable(second.file, 4096),
         printable(second.name), printable(first.file, 4096));
  }
  state_ = std::move(state);
}

std::span<const TensorView> Checkpoint::tensors() const noexcept {
  return state_->tensors;
}

const TensorView* Checkpoint::find(std::string_view name) const noexcept {
  const std::vector<TensorView>& tensors = state_->tensors;
  const auto found =
      std::lower_bound(state_->by_name.begin(), state_->by_name.end(), name,
                       [&](std::uint32_t i, std::string_view n) { return tensors[i].name < n; });
  return found != state_->by_name.end() && tensors[*found].name == name ? &tensors[*found] : nullptr;
}

const TensorView& Checkpoint::at(std::string_view name) const {
  const TensorView* tensor = find(name);
  if (tensor != nullptr) return *tensor;
  const std::span<const FileInfo> all = files();
  const std::string where = all.empty() ? "the empty checkpoint" : printable(all.front().path, 4096);
  const std::string others = all.size() > 1 ? fmt::format(" and {} more files", all.size() - 1) : "";
  fail(ErrorKind::bad_file, "{}{}: tensor '{}' is missing among {}", where, others, printable(name), size());
}

std::span<const FileInfo> Checkpoint::files() const noexcept {
  return state_->files;
}

std::uint64_t Checkpoint::tensor_bytes() const noexcept {
  return state_->tensor_bytes;
}

const std::string* Checkpoint::metadata(std::string_view key) const noexcept {
  for (const FileInfo& file : state_->files) {
    for (const auto& [name, value] : file.metadata) {
      if (name == key) return &value;
    }
  }
  return nullptr;
}

void Checkpoint::check_unchanged() const {
  for (const auto& mapping : state_->mappings) mapping->check_unchanged();
}

void Checkpoint::advise(MappedFile::Advice advice) const noexcept {
  for (const auto& mapping : state_->mappings) mapping->advise(advice);
}

}  // namespace ponder::formats
