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

// Floats of one row that the largest block needs besides x and h; see the take() calls of the blocks.
std::size_t scratch_floats(const Config& c) {
  const auto wide = [](int n) { return static_cast<std::size_t>(n); };
  const std::size_t delta = 2 * wide(c.conv_dim()) + 2 * wide(c.value_dim()) +
                            2 * wide(c.linear_num_value_heads) + wide(c.key_dim());
  const std::size_t attention =
      (3 * wide(c.num_attention_heads) + 2 * wide(c.num_key_value_heads)) * wide(c.head_dim);
  const std::size_t mlp = wide(c.intermediate_size);
  const std::size_t drafted = 5 * wide(c.value_dim());
  return std::max({delta, attention, mlp, drafted}) + 8 * kLine;  // take() rounds each piece up to a line
}

}  // namespace

HybridModel::HybridModel(Config config, Weights weights, std::shared_ptr<ops::Backend> backend, int max_rows)
    : HybridModel(std::move(config), std::move(weights), Drafter{}, DraftMemory{}, std::move(backend),
                  max_rows) {}

HybridModel::HybridModel(Config config, Weights weights, Drafter drafter, const DraftMemory& memory,
                         std::shared_ptr<ops::Backend> backend, int max_rows)
    : config_(std::move(config)),
      weights_(std::move(weights)),
      drafter_(std::move(drafter)),
      draft_memory_(memory),
      backend_(std::move(backend)),
      max_rows_(max_rows) {
  if (max_rows < 1) fail(ErrorKind::invalid_input, "a step of {} rows, expected at least 1", max_rows);
  plan_state();
  const auto rows = static_cast<std::size_t>(max_rows);
  const auto hidden = static_cast<std::size_t>(config_.hidden_size);
  const auto half = static_cast<std::size_t>(std::max(rotary_half(), 1));
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
  const auto conv = static_cast<std::size_t>(config_.linear_conv_kernel_dim - 1 + ops::kHeldRows) *
                    static_cast<std::size_t>(config_.conv_dim());
  const std::size_t draft_bytes = has_drafter() ? align_up(backend_->kv_page_bytes(draft_shape()), 64) : 0;
  if (has_drafter()) {
    layout_.draft_window = draft_memory_.window;
    layout_.draft_sinks = draft_memory_.sinks;
    layout_.draft_page_bytes = 64;  // there may be no delta layer
  }
  const ops::DeltaStateLayout delta(config_.delta_shape());
  for (const LayerKind kind : config_.layers) {
    LayerState state;
    if (kind == LayerKind::delta) {
      state.conv = layout_.recurrent_floats;
      state.delta = align_up(state.conv + conv, kLine);
      layout_.recurrent_floats = align_up(state.delta + delta.floats, kLine);
      state.draft = layout_.draft_page_bytes;
      layout_.draft_page_bytes += draft_bytes;
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

ops::KvShape HybridModel::draft_shape() const {
  return draft_kv_shape(config_, draft_memory_.type);
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
    conv_segments_[s] = {row, rows, nullptr, segment.hold};
    delta_segments_[s] = {row, rows, segment.position, nullptr, segment.hold};
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
  for (const models::Segment& segment : segments) {
    if (segment.hold && segment.ids.size() > ops::kHeldRows) {
      fail(ErrorKind::internal, "{} rows on probation, at most {} fit", segment.ids.size(), ops::kHeldRows);
    }
  }
  start_step(segments);
  const ops::Rows x{x_.data(), config_.hidden_size};
  const ops::Rows h{h_.data(), config_.hidden_size};
  const ops::Groups whole{1, config_.hidden_size, 0};
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    backend_->embed(*weights_.embedding, segments[s].ids, {x[conv_segments_[s].first_row], x.stride});
  }
  turn_positions();
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

// The rotary tables of this step's positions.
void HybridModel::turn_positions() {
  const int half = rotary_half();
  if (half == 0) return;
  backend_->rotary_table(positions_, config_.rotary_dim(), config_.rope_theta, {cos_.data(), half},
                         {sin_.data(), half});
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
  remember_for_drafts(segments, mixed, state);
  const ops::Groups heads{value_heads, config_.linear_value_head_dim, config_.linear_value_head_dim};
  backend_->gated_rms_norm(o, z, o, rows_, heads, w.norm.data(), static_cast<float>(config_.rms_norm_eps));
  const ops::LinearOut out[] = {w.out.to(x, /*accumulate=*/true)};
  backend_->linear(out, o, rows_);
}

// What mask rows will see of these rows: keys behind the convolution, turned like the attention layers', and
// values.
void HybridModel::remember_for_drafts(std::span<const models::Segment> segments, ops::ConstRows mixed,
                                      const LayerState& state) {
  const bool wanted = std::any_of(segments.begin(), segments.end(),
                                  [](const models::Segment& s) { return s.draft_pages != nullptr; });
  if (!wanted) return;
  const int key_dim = config_.key_dim(), half = rotary_half();
  const ops::Rows keys = take(key_dim);
  for (int r = 0; r < rows_; ++r) std::copy_n(mixed[r] + key_dim, key_dim, keys[r]);
  const ops::Groups heads{config_.linear_num_key_heads, config_.linear_key_head_dim,
                          config_.linear_key_head_dim};
  if (half > 0) backend_->rotary(keys, rows_, heads, half, {cos_.data(), half}, {sin_.data(), half});
  const ops::ConstRows values{mixed.data + std::ptrdiff_t{2} * key_dim, mixed.stride};
  kv_appends_.clear();
  for (std::size_t s = 0; s < segments.size(); ++s) {
    if (segments[s].draft_pages == nullptr) continue;
    const ops::AttentionSegment& segment = attention_segments_[s];
    kv_appends_.push_back(
        {{segments[s].draft_pages, state.draft}, segments[s].position, segment.first_row, segment.rows});
  }
  backend_->kv_append(draft_shape(), kv_appends_, keys, values);
}

void HybridModel::settle(const models::Segment& segment, int accepted) {
  if (accepted < 0 || static_cast<std::size_t>(accepted) > segment.ids.size()) {
    fail(ErrorKind::internal, "{} of {} rows on probation accepted", accepted, segment.ids.size());
  }
  const std::int64_t past = config_.linear_conv_kernel_dim - 1, channels = config_.conv_dim();
  for (std::size_t i = 0; i < layer_states_.size(); ++i) {
    if (config_.layers[i] != LayerKind::delta) continue;
    float* const inputs = segment.recurrent + layer_states_[i].conv;
    std::copy(inputs + accepted * channels, inputs + (accepted + past) * channels, inputs);
    backend_->delta_settle(config_.delta_shape(), segment.recurrent + layer_states_[i].delta,
                           segment.position, accepted);
  }
}

// Queries with their gates, keys and values of all rows: normed and turned.
HybridModel::AttentionRows HybridModel::attention_inputs(const AttentionWeights& w, const Linear& q,
                                                         const Linear& k, const Linear& v) {
  const int dim = config_.head_dim;
  const ops::KvShape shape = config_.kv_shape();
  AttentionRows rows;
  rows.q = take(static_cast<std::int64_t>(config_.num_attention_heads) * 2 * dim);
  rows.k = take(static_cast<std::int64_t>(shape.heads) * dim);
  rows.v = take(static_cast<std::int64_t>(shape.heads) * dim);
  const ops::LinearOut inputs[] = {q.to(rows.q), k.to(rows.k), v.to(rows.v)};
  backend_->linear(inputs, {h_.data(), config_.hidden_size}, rows_);

  const auto eps = static_cast<float>(config_.rms_norm_eps);
  const ops::Groups queries = query_groups();
  const ops::Groups keys{shape.heads, dim, dim};
  backend_->rms_norm(rows.q, rows.q, rows_, queries, w.q_norm.data(), eps);
  backend_->rms_norm(rows.k, rows.k, rows_, keys, w.k_norm.data(), eps);
  if (const int half = rotary_half(); half > 0) {
    const ops::ConstRows cos{cos_.data(), half};
    const ops::ConstRows sin{sin_.data(), half};
    backend_->rotary(rows.q, rows_, queries, half, cos, sin);
    backend_->rotary(rows.k, rows_, keys, half, cos, sin);
  }
  return rows;
}

// Each head's D of query are followed by D of gate.
ops::Groups HybridModel::query_groups() const {
  return {config_.num_attention_heads, config_.head_dim, std::int64_t{2} * config_.head_dim};
}

// x += o_proj( softmax(q k^T / sqrt(D)) v * sigmoid(gate) ) over what attention_segments_ say
void HybridModel::attention_output(const AttentionWeights& w, const AttentionRows& rows) {
  const int dim = config_.head_dim;
  const ops::Rows o = take(static_cast<std::int64_t>(config_.num_attention_heads) * dim);
  backend_->attention({.q = rows.q,
                       .q_head_stride = 2 * static_cast<std::int64_t>(dim),
                       .out = o,
                       .heads = config_.num_attention_heads,
                       .kv = config_.kv_shape(),
                       .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))),
                       .segments = attention_segments_});
  backend_->sigmoid_mul(o, {rows.q.data + dim, rows.q.stride}, rows_, query_groups());
  const ops::LinearOut out[] = {w.o.to({x_.data(), config_.hidden_size}, /*accumulate=*/true)};
  backend_->linear(out, o, rows_);
}

void HybridModel::attention_layer(std::span<const models::Segment> segments, const AttentionWeights& w,
                                  const LayerState& state) {
  const AttentionRows rows = attention_inputs(w, w.q, w.k, w.v);
  kv_appends_.clear();
  for (std::size_t s = 0; s < segments.size(); ++s) {
    ops::AttentionSegment& segment = attention_segments_[s];
    segment.cache = {segments[s].pages, state.kv};
    kv_appends_.push_back({segment.cache, segments[s].position, segment.first_row, segment.rows});
  }
  backend_->kv_append(config_.kv_shape(), kv_appends_, rows.k, rows.v);
  attention_output(w, rows);
}

// x += down( silu(gate h) * up h )
void HybridModel::mlp(const LayerWeights& w) {
  const ops::Rows gate = take(config_.intermediate_size);
  backend_->gated_linear(*w.gate.weight, *w.up.weight, {h_.data(), config_.hidden_size}, rows_, gate);
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
