// A checkpoint's tensors rewritten as a quantised type, packed as the kernels read them: what `ponder
// convert` writes, one tensor in memory at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "formats/checkpoint.hpp"
#include "models/hybrid/config.hpp"
#include "models/hybrid/weights.hpp"
#include "ops/backend.hpp"

namespace ponder::hybrid {

// A tensor of the result: known before it is made.
struct ConvertedTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::uint64_t bytes = 0;
  std::string part;  // "embedding", "head", "attention", "delta", "mlp": what errors are summed over; empty:
                     // as stored

  // What make() gives: the bytes, what keeps them alive, what rounding cost.
  struct Content {
    std::span<const std::byte> bytes;
    std::shared_ptr<const void> owner;
    ops::QuantizationError error;
  };
  std::function<Content()> make;
};

// Every tensor of the text model: matrices that `type` is for packed, the others as they are stored, packed
// ones first so that each starts at a multiple of 64 bytes. The result refers to its arguments. Throws as
// load_weights for a checkpoint that is not this model, Error(unsupported) for a type that is not quantised.
std::vector<ConvertedTensor> plan_conversion(const Config& config, const formats::Checkpoint& checkpoint,
                                             ops::Backend& backend, ops::WeightType type);

}  // namespace ponder::hybrid
