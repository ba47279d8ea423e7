#include "models/hybrid/drafter.hpp"

#include <memory>
#include <string>

#include <fmt/format.h>

#include "base/error.hpp"
#include "models/hybrid/stored_weights.hpp"

namespace ponder::hybrid {
ops::KvShape draft_kv_shape(const Config& c, ops::KvType type) {
  ops::KvShape shape;
  shape.heads = c.linear_num_key_heads;
  shape.value_heads = c.linear_num_value_heads;
  shape.key_dim = c.linear_key_head_dim;
  shape.value_dim = c.linear_value_head_dim;
  shape.type = type;
  return shape;
}

std::array<MatrixShape, 3> drafter_matrices(const Config& c, std::size_t layer) {
  const std::int64_t hidden = c.hidden_size;
  if (c.layers[layer] == LayerKind::delta) {
    const auto name = [&](const char* part) { return fmt::format("delta_{}.{}.weight", part, layer); };
    const std::int64_t values = c.value_dim();
    return {MatrixShape{name("q"), values, hidden}, MatrixShape{name("k"), values, hidden},
            MatrixShape{name("v"), values, hidden}};
  }
  const auto name = [&](const char* part) { return fmt::format("attn_{}.{}.weight", part, layer); };
  const std::int64_t q = static_cast<std::int64_t>(c.num_attention_heads) * c.head_dim;
  const std::int64_t kv = static_cast<std::int64_t>(c.num_key_value_heads) * c.head_dim;
  return {MatrixShape{name("q"), 2 * q, hidden}, MatrixShape{name("k"), kv, hidden},
          MatrixShape{name("v"), kv, hidden}};
}

void check_draftable(const Config& c) {
  bool delta = false;
  for (const LayerKind kind : c.layers) delta = delta || kind == LayerKind::delta;
  if (!delta) return;
  if (c.linear_key_head_dim != c.linear_value_head_dim) {
    fail(ErrorKind::unsupported,
         "a drafter needs delta layers with keys and values of one size, this model has {} and {}",
         c.linear_key_head_dim, c.linear_value_head_dim);
  }
  if (c.rotary_dim() > c.linear_key_head_dim) {
    fail(ErrorKind::unsupported,
         "a drafter turns the first {} entries of a delta layer's keys, this model's have {}", c.rotary_dim(),
         c.linear_key_head_dim);
  }
}

MemoryNeeds estimate_drafter_memory(const Config& config, const formats::Checkpoint& checkpoint,
                                    TypeChoice type) {
  check_draftable(config);
  StoredWeights stored(checkpoint);
  MemoryNeeds needs;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    for (const MatrixShape& m : drafter_matrices(config, i)) {
      add_needs(stored.take_matrix(m.name, m.rows, m.cols), m, type, needs);
    }
  }
  return needs;
}

Drafter load_drafter(const Config& config, const formats::Checkpoint& checkpoint, ops::Backend& backend,
                     TypeChoice type) {
  check_draftable(config);
  StoredWeights stored(checkpoint);
  const auto owner = std::make_shared<formats::Checkpoint>(checkpoint);
  Drafter drafter;
  drafter.mask_embed = stored.vector("mask_embed", config.hidden_size);
  const auto matrix = [&](const MatrixShape& m) {
    const ops::WeightType natural = stored.take_matrix(m.name, m.rows, m.cols).type();
    Linear linear;
    linear.weight = load_matrix(stored, m, held_type(natural, type, m), backend, owner);
    drafter.bytes_per_row += linear.weight->bytes();
    drafter.owned_bytes += linear.weight->owned_bytes();
    return linear;
  };
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    const auto m = drafter_matrices(config, i);
    drafter.layers.push_back({matrix(m[0]), matrix(m[1]), matrix(m[2])});
  }
  stored.check_all_used();
  return drafter;
}

}  // namespace ponder::hybrid
