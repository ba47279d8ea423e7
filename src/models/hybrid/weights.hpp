// Weights of the hybrid backbone: checkpoint tensors checked, named and handed to a backend.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "formats/checkpoint.hpp"
#include "models/hybrid/config.hpp"
#include "ops/backend.hpp"

namespace ponder::hybrid {

// A linear layer: weight [out, in] and an optional bias [out] (empty when the layer has none).
struct Linear {
  ops::WeightPtr weight;
  std::vector<float> bias;

  ops::LinearOut to(ops::Rows y, bool accumulate = false) const {
    return {weight.get(), bias.empty() ? nullptr : bias.data(), y, accumulate};
  }
};

struct DeltaWeights {
  Linear qkv;                        // [2 Hk Dk + Hv Dv, hidden]
  Linear z;                          // [Hv Dv, hidden]
  Linear a, b;                       // [Hv, hidden]
  Linear out;                        // [hidden, Hv Dv]
  std::vector<float> conv;           // [kernel][conv_dim], transposed from the checkpoint
  std::vector<float> rate, dt_bias;  // [Hv]; rate = exp(A_log)
  std::vector<float> norm;           // [Dv], used as it is
};

struct AttentionWeights {
  Linear q;                           // [H 2D, hidden]: per head D rows of query, then D of gate
  Linear k, v;                        // [Hkv D, hidden]
  Linear o;                           // [hidden, H D]
  std::vector<float> q_norm, k_norm;  // [D], 1 + w
};

struct LayerWeights {
  LayerKind kind = LayerKind::delta;
  std::vector<float> input_norm, post_norm;  // [hidden], 1 + w
  DeltaWeights delta;                        // filled for LayerKind::delta
  AttentionWeights attention;                // filled for LayerKind::attention
  Linear gate, up;                           // [intermediate, hidden]
  Linear down;                               // [hidden, intermediate]
};

struct Weights {
  ops::WeightPtr embedding;       // [vocab, hidden]
  ops::WeightPtr head;            // [vocab, hidden]; the embedding itself when tied
  std::vector<float> final_norm;  // [hidden], 1 + w
  std::vector<LayerWeights> layers;

  // Bytes of matrices one decoded row reads, and bytes that are not simply the mapped file.
  std::size_t bytes_per_row = 0;
  std::size_t owned_bytes = 0;
  // What quantising while loading cost, over all matrices it was done to.
  ops::QuantizationError error;
};

// What a matrix is for, as far as the choice of its type cares.
enum class MatrixRole : std::uint8_t {
  linear,  // a linear layer or a head of its own
  table,   // an embedding that is only looked up
  tied,    // an embedding that is the head as well
  gate,    // the projections of the delta rule's decay and step size: a few rows
};

struct MatrixShape {
  std::string name;
  std::int64_t rows = 0, cols = 0;
  MatrixRole role = MatrixRole::linear;
};

// The name under which a packed matrix stands in a checkpoint: "X.weight.q4".
std::string packed_name(const std::string& name, ops::WeightType type);

// How matrices are held: nullopt keeps each tensor's own type. f8_e4m3 quantises the linear layers that the
// format's rule allows (in % 256 == 0, out >= 1024, out % 16 == 0); q8, q4 and q4tp everything but
// MatrixRole::table and MatrixRole::gate. The rest stays as stored.
using TypeChoice = std::optional<ops::WeightType>;
// What a matrix that is stored as `stored` will be held as.
ops::WeightType held_type(ops::WeightType stored, TypeChoice choice, const MatrixShape& m);

// What load_weights will need: bytes used where they are mapped, and bytes it will allocate.
struct MemoryNeeds {
  std::uint64_t mapped = 0;
  std::uint64_t allocated = 0;         // largest_unpacked not among it
  std::uint64_t largest_unpacked = 0;  // for a while, where a packed matrix changes its type
};
MemoryNeeds estimate_memory(const Config& config, const formats::Checkpoint& checkpoint, TypeChoice type);

// Reads every tensor the configuration asks for. Names may carry the base checkpoints'
// "model.language_model." prefix; "model.visual." and "mtp." tensors are skipped. A missing, mis-shaped or
// unknown tensor is an Error(bad_file) that names it and both shapes.
Weights load_weights(const Config& config, const formats::Checkpoint& checkpoint, ops::Backend& backend,
                     TypeChoice type);

}  // namespace ponder::hybrid
