#include "models/hybrid/model.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace ponder::hybrid {
namespace {

constexpr std::size_t kLine = 16;  // floats of a cache line

std::size_t align_up(std::size_t value, std::size_t to) {
  return (value + to - 1) / to * to;
}

int rotary_half(const Config& c) {
  return (c.rotary_dim() + 1) / 2;
}

// Floats of one row that the largest block needs besides x and h; see the take() calls of the blocks.
std::size_t scratch_floats(const Config& c) {
  const auto wide = [](int n) { return static_cast<std::size_t>(n); };
  const std::size_t delta =
      2 * wide(c.conv_dim()) + 2 * wide(c.value_dim()) + 2 * wide(c.linear_num_value_heads);
  const std::size_t attention =
      (3 * wide(c.num_attention_heads) + 2 * wide(c.num_key_value_heads)) * wide(c.head_dim);
  const std::size_t mlp = 2 * wide(c.intermediate_size);
  return std::max({delta, attention, mlp}) + 8 * kLine;  // take() rounds each piece up to a line
}

}  // namespace

HybridModel::HybridModel(Config config, Weights weights, std::shared_ptr<ops::Backend> backend, int max_rows)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      backend_(std::move(backend)),
      max_rows_(max_rows) {
  if (max_rows < 1) fail(ErrorKind::invalid_input, "a step of {} rows, expected at least 1", max_rows);
  plan_state();
  const auto rows = static_cast<std::size_t>(max_rows);
  const auto hidden = static_cast<std::size_t>(config_.hidden_size);
  const auto half = static_cast<std::size_t>(std::max(rotary_half(config_), 1));
  x_ = AlignedBuffer<float>(rows * hidden);
  h_ = AlignedBuffer<float>(rows * hidden);
  scratch_ = AlignedBuffer<float>(rows * scratch_floats(config_));
  cos_ = AlignedBuffer<float>(rows * half);
  sin_ = AlignedBuffer<float>(rows * half);
  positions_.reserve(rows);
}

std::size_t HybridModel::workspace_bytes() const noexcept {
  return (x_.size() + h_.size() + scratch_.size() + cos_.size() + sin_.size()) * sizeof(float);
}

void HybridModel::plan_state() {
  const std::size_t kv_bytes = align_up(backend_->kv_page_bytes(config_.kv_shape()), 64);
  const auto conv = static_cast<std::size_t>(config_.linear_conv_kernel_dim - 1) *
                    static_cast<std::size_t>(config_.conv_dim());
  const ops::DeltaStateLayout delta(config_.delta_shape());
  for (const LayerKind kind : config_.layers) {
    LayerState state;
    if (kind == LayerKind::delta) {
      state.conv = layout_.recurrent_floats;
      state.delta = align_up(state.conv + conv, kLine);
      layout_.recurrent_floats = align_up(state.delta + delta.floats, kLine);
    } else {
      state.kv = layout_.page_bytes;
      layout_.page_bytes += kv_bytes;
    }
    layer_states_.push_back(state);
  }
}

// Rows of `cols` floats in the scratch space; given back as a whole when the next block starts.
ops::Rows HybridModel::take(std::int64_t cols) {
  const std::size_t size = align_up(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(cols), kLine);
  if (scratch_used_ + size > scratch_.size())
    fail(ErrorKind::internal, "step scratch of {} floats is full", scratch_.size());
  float* data = scratch_.data() + scratch_used_;
  scratch_used_ += size;
  return {data, cols};
}

void HybridModel::start_step(std::span<const models::Segment> segments) {
  positions_.clear();
  conv_segments_.resize(segments.size());
  delta_segments_.resize(segments.size());
  attention_segments_.resize(segments.size());
  int row = 0;
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const models::Segment& segment = segments[s];
    const int rows = static_cast<int>(segment.ids.size());
    conv_segments_[s] = {row, rows, nullptr};
    delta_segments_[s] = {row, rows, segment.position, nullptr};
    attention_segments_[s] = {};
    attention_segments_[s].first_row = row;
    attention_segments_[s].rows = rows;
    attention_segments_[s].visible_end = segment.position + 1;
    for (int i = 0; i < rows; ++i) positions_.push_back(segment.position + i);
    row += rows;
  }
  rows_ = row;
}

ops::ConstRows HybridModel::forward(std::span<const models::Segment> segments,
                                    const models::LayerObserver* observer) {
  std::size_t rows = 0;
  for (const models::Segment& segment : segments) rows += segment.ids.size();
  if (rows > static_cast<std::size_t>(max_rows_)) {
    fail(ErrorKind::internal, "a step of {} rows, at most {} fit", rows, max_rows_);
  }
  start_step(segments);
  const ops::Rows x{x_.data(), config_.hidden_size};
  const ops::Rows h{h_.data(), config_.hidden_size};
  const ops::Groups whole{1, config_.hidden_size, 0};
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    backend_->embed(*weights_.embedding, segments[s].ids, {x[conv_segments_[s].first_row], x.stride});
  }
  const int half = rotary_half(config_);
  if (half > 0) {
    backend_->rotary_table(positions_, config_.rotary_dim(), config_.rope_theta, {cos_.data(), half},
                           {sin_.data(), half});
  }
  if (observer != nullptr) (*observer)(0, x, rows_);
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const LayerWeights& layer = weights_.layers[i];
    scratch_used_ = 0;
    backend_->rms_norm(x, h, rows_, whole, layer.input_norm.data(), eps);
    if (layer.kind == LayerKind::delta) {
      delta_layer(segments, layer.delta, layer_states_[i]);
    } else {
      attention_layer(segments, layer.attention, layer_states_[i]);
    }
    scratch_used_ = 0;
    backend_->rms_norm(x, h, rows_, whole, layer.post_norm.data(), eps);
    mlp(layer);
    if (observer != nullptr) (*observer)(static_cast<int>(i) + 1, x, rows_);
  }
  backend_->rms_norm(x, h, rows_, whole, weights_.final_norm.data(), eps);
  return h;
}

// x += out_proj( rms_norm_w(delta(conv(qkv h))) * silu(z h) )
void HybridModel::delta_layer(std::span<const models::Segment> segments, const DeltaWeights& w,
                              const LayerState& state) {
  const ops::Rows x{x_.data(), config_.hidden_size};
  const ops::Rows h{h_.data(), config_.hidden_size};
  const int value_heads = config_.linear_num_value_heads;
  const ops::Rows qkv = take(config_.conv_dim());
  const ops::Rows mixed = take(config_.conv_dim());
  const ops::Rows z = take(config_.value_dim());
  const ops::Rows o = take(config_.value_dim());
  const ops::Rows a = take(value_heads);
  const ops::Rows b = take(value_heads);
  const ops::LinearOut inputs[] = {w.qkv.to(qkv), w.z.to(z), w.b.to(b), w.a.to(a)};
  backend_->linear(inputs, h, rows_);

  for (std::size_t s = 0; s < segments.size(); ++s) {
    conv_segments_[s].state = segments[s].recurrent + state.conv;
    delta_segments_[s].state = segments[s].recurrent + state.delta;
  }
  backend_->causal_conv({.x = qkv,
                         .y = mixed,
                         .weight = w.conv.data(),
                         .channels = config_.conv_dim(),
                         .kernel = config_.linear_conv_kernel_dim,
                         .segments = conv_segments_});
  backend_->delta_rule({.shape = config_.delta_shape(),
                        .qkv = mixed,
                        .a = a,
                        .b = b,
                        .rate = w.rate.data(),
                        .dt_bias = w.dt_bias.data(),
                        .out = o,
                        .segments = delta_segments_});
  const ops::Groups heads{value_heads, config_.linear_value_head_dim, config_.linear_value_head_dim};
  backend_->gated_rms_norm(o, z, o, rows_, heads, w.norm.data(), static_cast<float>(config_.rms_norm_eps));
  const ops::LinearOut out[] = {w.out.to(x, /*accumulate=*/true)};
  backend_->linear(out, o, rows_);
}

// x += o_proj( softmax(q k^T / sqrt(D)) v * sigmoid(gate) )
void HybridModel::attention_layer(std::span<const models::Segment> segments, const AttentionWeights& w,
                                  const LayerState& state) {
  const ops::Rows x{x_.data(), config_.hidden_size};
  const ops::Rows h{h_.data(), config_.hidden_size};
  const int dim = config_.head_dim;
  const int heads = config_.num_attention_heads;
  const ops::KvShape shape = config_.kv_shape();
  const ops::Rows qg = take(static_cast<std::int64_t>(heads) * 2 * dim);
  const ops::Rows k = take(static_cast<std::int64_t>(shape.heads) * dim);
  const ops::Rows v = take(static_cast<std::int64_t>(shape.heads) * dim);
  const ops::Rows o = take(static_cast<std::int64_t>(heads) * dim);
  const ops::LinearOut inputs[] = {w.q.to(qg), w.k.to(k), w.v.to(v)};
  backend_->linear(inputs, h, rows_);

  const auto eps = static_cast<float>(config_.rms_norm_eps);
  const ops::Groups queries{heads, dim, 2 * dim};
  const ops::Groups keys{shape.heads, dim, dim};
  backend_->rms_norm(qg, qg, rows_, queries, w.q_norm.data(), eps);
  backend_->rms_norm(k, k, rows_, keys, w.k_norm.data(), eps);
  if (const int half = rotary_half(config_); half > 0) {
    const ops::ConstRows cos{cos_.data(), half};
    const ops::ConstRows sin{sin_.data(), half};
    backend_->rotary(qg, rows_, queries, half, cos, sin);
    backend_->rotary(k, rows_, keys, half, cos, sin);
  }
  for (std::size_t s = 0; s < segments.size(); ++s) {
    ops::AttentionSegment& segment = attention_segments_[s];
    segment.cache = {segments[s].pages, state.kv};
    backend_->kv_append(shape, segment.cache, segments[s].position, segment.first_row, segment.rows, k, v);
  }
  backend_->attention({.q = qg,
                       .q_head_stride = 2 * static_cast<std::int64_t>(dim),
                       .out = o,
                       .heads = heads,
                       .kv = shape,
                       .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))),
                       .segments = attention_segments_});
  backend_->sigmoid_mul(o, {qg.data + dim, qg.stride}, rows_, queries);
  const ops::LinearOut out[] = {w.o.to(x, /*accumulate=*/true)};
  backend_->linear(out, o, rows_);
}

// x += down( silu(gate h) * up h )
void HybridModel::mlp(const LayerWeights& w) {
  const ops::Rows gate = take(config_.intermediate_size);
  const ops::Rows up = take(config_.intermediate_size);
  const ops::LinearOut inputs[] = {w.gate.to(gate), w.up.to(up)};
  backend_->linear(inputs, {h_.data(), config_.hidden_size}, rows_);
  backend_->silu_mul(gate, up, rows_, config_.intermediate_size);
  const ops::LinearOut out[] = {w.down.to({x_.data(), config_.hidden_size}, /*accumulate=*/true)};
  backend_->linear(out, gate, rows_);
}

void HybridModel::logits(ops::ConstRows hidden, int rows, ops::Rows out) {
  const ops::LinearOut outs[] = {{weights_.head.get(), nullptr, out, false}};
  backend_->linear(outs, hidden, rows);
}

void HybridModel::argmax(ops::ConstRows hidden, int rows, std::int64_t limit, const std::uint64_t* banned,
                         std::int32_t* ids) {
  backend_->masked_argmax(hidden, rows, *weights_.head, limit, banned, ids);
}

}  // namespace ponder::hybrid
