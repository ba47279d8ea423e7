// The mask drafter: projections with which rows of a mask embedding guess the tokens behind a sequence.
//
// A block of J mask rows at positions n to n + J - 1 sees everything fed so far and each other; row i guesses
// the token at n + i + 1. Only mask rows use these weights, so a draft changes speed and never results: what
// they see of the delta layers is kept in few bits, for a window and the first rows only.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/hybrid/weights.hpp"

namespace ponder::hybrid {

// Of each layer's own kind: attention layers [H 2D, hidden], [Hkv D, hidden] twice; delta layers [Hv Dv,
// hidden] each.
struct DrafterLayer {
  Linear q, k, v;
};

struct Drafter {
  std::vector<float> mask_embed;  // [hidden]
  std::vector<DrafterLayer> layers;
  std::size_t bytes_per_row = 0;  // of matrices one mask row reads
  std::size_t owned_bytes = 0;
};

// What mask rows see of the delta layers: the last `window` rows before them and the first `sinks` rows. The
// least that kept the accepted length in measurements (docs/performance.md).
struct DraftMemory {
  std::int64_t window = 512;
  std::int64_t sinks = 64;
  ops::KvType type = ops::KvType::q8;
};

// The drafter's view of a delta layer: rotated keys once a key head, a value of each value head.
ops::KvShape draft_kv_shape(const Config& config, ops::KvType type);

// q, k and v of a layer, by the names they have in a file.
std::array<MatrixShape, 3> drafter_matrices(const Config& config, std::size_t layer);

// Throws Error(unsupported) for a model that cannot have a drafter: delta layers whose keys and values have
// different sizes, or keys smaller than the rotary size.
void check_draftable(const Config& config);

// Throws as check_draftable(), and Error(bad_file) that names the tensor, the file and both shapes.
MemoryNeeds estimate_drafter_memory(const Config& config, const formats::Checkpoint& checkpoint,
                                    TypeChoice type);
Drafter load_drafter(const Config& config, const formats::Checkpoint& checkpoint, ops::Backend& backend,
                     TypeChoice type);

}  // namespace ponder::hybrid
