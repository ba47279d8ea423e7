#include "models/hybrid/weights.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

#include <fmt/format.h>

#include "models/hybrid/stored_weights.hpp"
#include "ops/packed_layout.hpp"

namespace ponder::hybrid {
namespace {

std::vector<float> unpack(ops::WeightType type, const MatrixShape& m, std::span<const std::byte> bytes) {
  const ops::PackedLayout layout(type, m.rows, m.cols);
  std::vector<float> values(static_cast<std::size_t>(m.rows) * static_cast<std::size_t>(m.cols));
  for (std::int64_t r = 0; r < m.rows; ++r) layout.read_values(bytes.data(), r, values.data() + r * m.cols);
  return values;
}

class Loader {
 public:
  Loader(const Config& config, const formats::Checkpoint& checkpoint, ops::Backend& backend, TypeChoice type)
      : c_(config),
        source_(checkpoint),
        plan_(config, source_),
        backend_(backend),
        type_(type),
        owner_(std::make_shared<formats::Checkpoint>(checkpoint)) {}

  Weights load() {
    Weights w;
    w.embedding = matrix(plan_.embedding());
    w.head = plan_.has_head() ? matrix(plan_.head()) : w.embedding;
    w.final_norm = source_.vector("model.norm.weight", c_.hidden_size, 1);
    for (std::size_t i = 0; i < c_.layers.size(); ++i) w.layers.push_back(layer(i));
    source_.check_all_used();
    w.owned_bytes = owned_bytes_;
    w.error = error_;
    // The embedding table itself is not read whole; when tied it is, as the head.
    w.bytes_per_row = matrix_bytes_ - (w.head == w.embedding ? 0 : w.embedding->bytes());
    return w;
  }

 private:
  ops::WeightPtr matrix(const MatrixShape& m) {
    const StoredMatrix stored = source_.take_matrix(m.name, m.rows, m.cols);
    ops::WeightPtr weight = load_matrix(source_, m, held_type(stored.type(), type_, m), backend_, owner_);
    owned_bytes_ += weight->owned_bytes();
    matrix_bytes_ += weight->bytes();
    error_.difference += weight->error().difference;
    error_.value += weight->error().value;
    return weight;
  }

  Linear linear(const std::string& name, std::int64_t rows, std::int64_t cols, bool bias = false,
                MatrixRole role = MatrixRole::linear) {
    Linear out;
    out.weight = matrix({name + ".weight", rows, cols, role});
    if (bias) out.bias = source_.vector(name + ".bias", rows);
    return out;
  }

  LayerWeights layer(std::size_t i) {
    const std::string p = MatrixPlan::prefix(i);
    LayerWeights w;
    w.kind = c_.layers[i];
    w.input_norm = source_.vector(p + "input_layernorm.weight", c_.hidden_size, 1);
    w.post_norm = source_.vector(p + "post_attention_layernorm.weight", c_.hidden_size, 1);
    if (w.kind == LayerKind::delta) {
      w.delta = delta(p + "linear_attn.");
    } else {
      w.attention = attention(p + "self_attn.");
    }
    w.gate = linear(p + "mlp.gate_proj", c_.intermediate_size, c_.hidden_size);
    w.up = linear(p + "mlp.up_proj", c_.intermediate_size, c_.hidden_size);
    w.down = linear(p + "mlp.down_proj", c_.hidden_size, c_.intermediate_size);
    return w;
  }

  DeltaWeights delta(const std::string& p) {
    const int heads = c_.linear_num_value_heads;
    DeltaWeights w;
    w.qkv = linear(p + "in_proj_qkv", c_.conv_dim(), c_.hidden_size);
    w.z = linear(p + "in_proj_z", c_.value_dim(), c_.hidden_size);
    w.a = linear(p + "in_proj_a", heads, c_.hidden_size, false, MatrixRole::gate);
    w.b = linear(p + "in_proj_b", heads, c_.hidden_size, false, MatrixRole::gate);
    w.out = linear(p + "out_proj", c_.hidden_size, c_.value_dim());
    w.dt_bias = source_.vector(p + "dt_bias", heads);
    w.rate = source_.vector(p + "A_log", heads);
    for (float& v : w.rate) v = std::exp(v);
    w.norm = source_.vector(p + "norm.weight", c_.linear_value_head_dim);

    const auto channels = static_cast<std::size_t>(c_.conv_dim());
    const auto kernel = static_cast<std::size_t>(c_.linear_conv_kernel_dim);
    const Shape shape{c_.conv_dim(), 1, c_.linear_conv_kernel_dim};
    const std::vector<float> stored = formats::float_values(source_.take(p + "conv1d.weight", shape));
    w.conv.resize(stored.size());
    for (std::size_t ch = 0; ch < channels; ++ch) {
      for (std::size_t j = 0; j < kernel; ++j) w.conv[j * channels + ch] = stored[ch * kernel + j];
    }
    return w;
  }

  AttentionWeights attention(const std::string& p) {
    const std::int64_t q = static_cast<std::int64_t>(c_.num_attention_heads) * c_.head_dim;
    const std::int64_t kv = static_cast<std::int64_t>(c_.num_key_value_heads) * c_.head_dim;
    const bool bias = c_.attention_bias;
    AttentionWeights w;
    w.q = linear(p + "q_proj", 2 * q, c_.hidden_size, bias);
    w.k = linear(p + "k_proj", kv, c_.hidden_size, bias);
    w.v = linear(p + "v_proj", kv, c_.hidden_size, bias);
    w.o = linear(p + "o_proj", c_.hidden_size, q, bias);
    w.q_norm = source_.vector(p + "q_norm.weight", c_.head_dim, 1);
    w.k_norm = source_.vector(p + "k_norm.weight", c_.head_dim, 1);
    return w;
  }

  const Config& c_;
  StoredWeights source_;
  MatrixPlan plan_;
  ops::Backend& backend_;
  TypeChoice type_;
  std::shared_ptr<const void> owner_;
  std::size_t owned_bytes_ = 0;
  std::size_t matrix_bytes_ = 0;
  ops::QuantizationError error_;
};

}  // namespace

//   fp8      what the format's rule allows; never the embedding
//   q8, q4…  everything but a table that is only looked up, and the projections of the gates, which are small
//            and steer a whole state
ops::WeightPtr load_matrix(StoredWeights& stored, const MatrixShape& m, ops::WeightType target,
                           ops::Backend& backend, const std::shared_ptr<const void>& owner) {
  const StoredMatrix source = stored.take_matrix(m.name, m.rows, m.cols);
  std::vector<float> scales, unpacked;
  if (source.tensor->dtype == DType::f8_e4m3) scales = stored.scales(m.name, m.rows);
  ops::WeightData data;
  data.dtype = source.tensor->dtype;
  data.rows = m.rows;
  data.cols = m.cols;
  data.data = source.tensor->bytes.data();
  data.row_scale = scales.empty() ? nullptr : scales.data();
  data.owner = owner;
  if (source.packed && *source.packed == target) {
    data.packed = source.packed;
  } else if (source.packed) {
    unpacked = unpack(*source.packed, m, source.tensor->bytes);
    data.dtype = DType::f32;
    data.data = reinterpret_cast<const std::byte*>(unpacked.data());
    data.owner = nullptr;
  }
  return backend.make_weight(data, target);
}

void add_needs(const StoredMatrix& stored, const MatrixShape& m, TypeChoice type, MemoryNeeds& needs) {
  const ops::WeightType target = held_type(stored.type(), type, m);
  if (target == stored.type()) {
    needs.mapped += stored.tensor->bytes.size();
    return;
  }
  const auto elements = static_cast<std::uint64_t>(m.rows) * static_cast<std::uint64_t>(m.cols);
  needs.allocated +=
      ops::is_quantized(target)
          ? ops::PackedLayout(target, m.rows, m.cols).bytes()
          : static_cast<std::uint64_t>(static_cast<double>(elements) * ops::weight_type_bits(target) / 8);
  if (stored.packed) needs.largest_unpacked = std::max(needs.largest_unpacked, elements * sizeof(float));
}

MemoryNeeds estimate_memory(const Config& config, const formats::Checkpoint& checkpoint, TypeChoice type) {
  StoredWeights source(checkpoint);
  MemoryNeeds needs;
  MatrixPlan(config, source).each([&](const MatrixShape& m) {
    add_needs(source.take_matrix(m.name, m.rows, m.cols), m, type, needs);
  });
  return needs;
}

Weights load_weights(const Config& config, const formats::Checkpoint& checkpoint, ops::Backend& backend,
                     TypeChoice type) {
  return Loader(config, checkpoint, backend, type).load();
}

}  // namespace ponder::hybrid
