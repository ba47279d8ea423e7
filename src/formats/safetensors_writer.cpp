#include <algorithm>
#include <numeric>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/pending_file.hpp"
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
