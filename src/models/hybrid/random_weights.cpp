#include "models/hybrid/random_weights.hpp"

#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"

namespace ponder::hybrid {
namespace {

constexpr ops::WeightType kStored = ops::WeightType::bf16;

MatrixShape embedding_shape(const Config& c) {
  return {{}, c.vocab_size, c.hidden_size, c.tie_word_embeddings ? MatrixRole::tied : MatrixRole::table};
}

// Every matrix of the model once: visit(shape).
template <class Visit>
void each_matrix(const Config& c, Visit&& visit) {
  const std::int64_t hidden = c.hidden_size, inner = c.intermediate_size;
  const std::int64_t q = std::int64_t{c.num_attention_heads} * c.head_dim;
  const std::int64_t kv = std::int64_t{c.num_key_value_heads} * c.head_dim;
  using enum MatrixRole;
  visit(embedding_shape(c));
  if (!c.tie_word_embeddings) visit(MatrixShape{{}, c.vocab_size, hidden, linear});
  for (const LayerKind kind : c.layers) {
    std::vector<MatrixShape> shapes;
    if (kind == LayerKind::delta) {
      shapes = {{{}, c.conv_dim(), hidden, linear},
                {{}, c.value_dim(), hidden, linear},
                {{}, c.linear_num_value_heads, hidden, gate},
                {{}, c.linear_num_value_heads, hidden, gate},
                {{}, hidden, c.value_dim(), linear}};
    } else {
      shapes = {{{}, 2 * q, hidden, linear},
                {{}, kv, hidden, linear},
                {{}, kv, hidden, linear},
                {{}, hidden, q, linear}};
    }
    for (const MatrixShape& shape : shapes) visit(shape);
    for (int i = 0; i < 2; ++i) visit(MatrixShape{{}, inner, hidden, linear});
    visit(MatrixShape{{}, hidden, inner, linear});
  }
}

class Maker {
 public:
  Maker(const Config& config, ops::Backend& backend, TypeChoice type, std::uint64_t seed)
      : c_(config), backend_(backend), type_(type), random_(seed) {}

  Weights make() {
    Weights w;
    w.embedding = matrix(embedding_shape(c_));
    w.head = c_.tie_word_embeddings ? w.embedding : matrix({{}, c_.vocab_size, c_.hidden_size});
    w.final_norm = ones(c_.hidden_size);
    for (const LayerKind kind : c_.layers) w.layers.push_back(layer(kind));
    w.owned_bytes = owned_bytes_;
    w.bytes_per_row = matrix_bytes_ - (w.head == w.embedding ? 0 : w.embedding->bytes());
    return w;
  }

  Drafter make_drafter() {
    Drafter d;
    d.mask_embed = uniform(c_.hidden_size, -1, 1);
    for (std::size_t i = 0; i < c_.layers.size(); ++i) {
      const auto m = drafter_matrices(c_, i);
      d.layers.push_back(
          {linear(m[0].rows, m[0].cols), linear(m[1].rows, m[1].cols), linear(m[2].rows, m[2].cols)});
    }
    d.bytes_per_row = matrix_bytes_;
    d.owned_bytes = owned_bytes_;
    return d;
  }

 private:
  static std::vector<float> ones(int n) { return std::vector<float>(static_cast<std::size_t>(n), 1.0F); }

  std::vector<float> uniform(std::int64_t n, double low, double high) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& v : values) v = static_cast<float>(random_.uniform(low, high));
    return values;
  }

  ops::WeightPtr matrix(const MatrixShape& m) {
    ops::WeightPtr w =
        backend_.make_random_weight(m.rows, m.cols, held_type(kStored, type_, m), random_.next_u64());
    owned_bytes_ += w->owned_bytes();
    matrix_bytes_ += w->bytes();
    return w;
  }

  Linear linear(std::int64_t rows, std::int64_t cols, bool bias = false,
                MatrixRole role = MatrixRole::linear) {
    Linear out;
    out.weight = matrix({{}, rows, cols, role});
    if (bias) out.bias = uniform(rows, -0.1, 0.1);
    return out;
  }

  LayerWeights layer(LayerKind kind) {
    LayerWeights w;
    w.kind = kind;
    w.input_norm = ones(c_.hidden_size);
    w.post_norm = ones(c_.hidden_size);
    if (kind == LayerKind::delta) {
      w.delta = delta();
    } else {
      w.attention = attention();
    }
    w.gate = linear(c_.intermediate_size, c_.hidden_size);
    w.up = linear(c_.intermediate_size, c_.hidden_size);
    w.down = linear(c_.hidden_size, c_.intermediate_size);
    return w;
  }

  // Decays as such layers are initialised for training: rate below 16, softplus(dt_bias) from 0.001 to 0.1.
  DeltaWeights delta() {
    const int heads = c_.linear_num_value_heads;
    DeltaWeights w;
    w.qkv = linear(c_.conv_dim(), c_.hidden_size);
    w.z = linear(c_.value_dim(), c_.hidden_size);
    w.a = linear(heads, c_.hidden_size, false, MatrixRole::gate);
    w.b = linear(heads, c_.hidden_size, false, MatrixRole::gate);
    w.out = linear(c_.hidden_size, c_.value_dim());
    const double reach = 1 / std::sqrt(static_cast<double>(c_.linear_conv_kernel_dim));
    w.conv = uniform(std::int64_t{c_.linear_conv_kernel_dim} * c_.conv_dim(), -reach, reach);
    w.rate = uniform(heads, 0.5, 16);
    w.dt_bias = uniform(heads, std::log(0.001), std::log(0.1));
    for (float& v : w.dt_bias) v = std::log(std::expm1(std::exp(v)));
    w.norm = ones(c_.linear_value_head_dim);
    return w;
  }

  AttentionWeights attention() {
    const std::int64_t q = std::int64_t{c_.num_attention_heads} * c_.head_dim;
    const std::int64_t kv = std::int64_t{c_.num_key_value_heads} * c_.head_dim;
    AttentionWeights w;
    w.q = linear(2 * q, c_.hidden_size, c_.attention_bias);
    w.k = linear(kv, c_.hidden_size, c_.attention_bias);
    w.v = linear(kv, c_.hidden_size, c_.attention_bias);
    w.o = linear(c_.hidden_size, q, c_.attention_bias);
    w.q_norm = ones(c_.head_dim);
    w.k_norm = ones(c_.head_dim);
    return w;
  }

  const Config& c_;
  ops::Backend& backend_;
  TypeChoice type_;
  Random random_;
  std::size_t owned_bytes_ = 0;
  std::size_t matrix_bytes_ = 0;
};

void add_random(const Config& config, const MatrixShape& m, TypeChoice type, MemoryNeeds& needs) {
  const double bits = ops::weight_type_bits(held_type(kStored, type, m));
  const double bytes = static_cast<double>(m.rows) * static_cast<double>(m.cols) * bits / 8;
  if (static_cast<double>(needs.allocated) + bytes > 0x1p62) {
    fail(ErrorKind::too_large, "a model of {} layers of {} features: its size does not fit 64 bits",
         config.num_hidden_layers, config.hidden_size);
  }
  needs.allocated += static_cast<std::uint64_t>(bytes);
}

}  // namespace

MemoryNeeds estimate_random_memory(const Config& config, TypeChoice type) {
  MemoryNeeds needs;
  each_matrix(config, [&](const MatrixShape& m) { add_random(config, m, type, needs); });
  return needs;
}

Weights make_random_weights(const Config& config, ops::Backend& backend, TypeChoice type,
                            std::uint64_t seed) {
  return Maker(config, backend, type, seed).make();
}

MemoryNeeds estimate_random_drafter_memory(const Config& config, TypeChoice type) {
  check_draftable(config);
  MemoryNeeds needs;
  for (std::size_t i = 0; i < config.layers.size(); ++i) {
    for (const MatrixShape& m : drafter_matrices(config, i)) add_random(config, m, type, needs);
  }
  return needs;
}

Drafter make_random_drafter(const Config& config, ops::Backend& backend, TypeChoice type,
                            std::uint64_t seed) {
  check_draftable(config);
  return Maker(config, backend, type, seed).make_drafter();
}

}  // namespace ponder::hybrid
