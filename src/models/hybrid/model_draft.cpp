// Mask rows: the base's layers with the drafter's projections, seeing a sequence they leave as it is.
#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "models/hybrid/model.hpp"

namespace ponder::hybrid {

ops::ConstRows HybridModel::draft(std::span<const models::DraftSegment> segments) {
  if (!has_drafter()) fail(ErrorKind::internal, "this model has no drafter");
  positions_.clear();
  attention_segments_.resize(segments.size());
  for (std::size_t s = 0; s < segments.size(); ++s) {
    const models::DraftSegment& segment = segments[s];
    attention_segments_[s] = {};
    attention_segments_[s].first_row = static_cast<int>(positions_.size());
    attention_segments_[s].rows = segment.rows;
    attention_segments_[s].visible_end = segment.position;
    attention_segments_[s].visible_step = 0;
    attention_segments_[s].own_rows = segment.rows;
    for (int i = 0; i < segment.rows; ++i) positions_.push_back(segment.position + i);
  }
  rows_ = static_cast<int>(positions_.size());
  if (rows_ > max_rows_) fail(ErrorKind::internal, "a step of {} rows, at most {} fit", rows_, max_rows_);

  const ops::Rows x{x_.data(), config_.hidden_size};
  const ops::Rows h{h_.data(), config_.hidden_size};
  const ops::Groups whole{1, config_.hidden_size, 0};
  const auto eps = static_cast<float>(config_.rms_norm_eps);
  for (int r = 0; r < rows_; ++r) std::copy(drafter_.mask_embed.begin(), drafter_.mask_embed.end(), x[r]);
  turn_positions();
  for (std::size_t i = 0; i < weights_.layers.size(); ++i) {
    const LayerWeights& layer = weights_.layers[i];
    scratch_used_ = 0;
    backend_->rms_norm(x, h, rows_, whole, layer.input_norm.data(), eps);
    if (layer.kind == LayerKind::delta) {
      draft_delta_layer(segments, layer.delta, drafter_.layers[i], layer_states_[i]);
    } else {
      draft_attention_layer(segments, layer.attention, drafter_.layers[i], layer_states_[i]);
    }
    scratch_used_ = 0;
    backend_->rms_norm(x, h, rows_, whole, layer.post_norm.data(), eps);
    mlp(layer);
  }
  backend_->rms_norm(x, h, rows_, whole, weights_.final_norm.data(), eps);
  return h;
}

// Softmax attention over the layer's keys and values in place of the recurrence.
void HybridModel::draft_delta_layer(std::span<const models::DraftSegment> segments, const DeltaWeights& w,
                                    const DrafterLayer& d, const LayerState& state) {
  const int heads = config_.linear_num_value_heads, dim = config_.linear_value_head_dim, half = rotary_half();
  const int width = config_.value_dim();
  const ops::Rows q = take(width), k = take(width), v = take(width), z = take(width), o = take(width);
  const ops::LinearOut inputs[] = {d.q.to(q), d.k.to(k), d.v.to(v), w.z.to(z)};
  backend_->linear(inputs, {h_.data(), config_.hidden_size}, rows_);
  const ops::Groups groups{heads, dim, dim};
  if (half > 0) {
    backend_->rotary(q, rows_, groups, half, {cos_.data(), half}, {sin_.data(), half});
    backend_->rotary(k, rows_, groups, half, {cos_.data(), half}, {sin_.data(), half});
  }
  for (std::size_t s = 0; s < segments.size(); ++s) {
    ops::AttentionSegment& segment = attention_segments_[s];
    segment.cache = {segments[s].draft_pages, state.draft};
    segment.window = draft_memory_.window;
    segment.sinks = draft_memory_.sinks;
    segment.own_keys = {k[segment.first_row], k.stride};
    segment.own_values = {v[segment.first_row], v.stride};
  }
  backend_->attention({.q = q,
                       .q_head_stride = dim,
                       .out = o,
                       .heads = heads,
                       .kv = draft_shape(),
                       .scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim))),
                       .segments = attention_segments_});
  backend_->gated_rms_norm(o, z, o, rows_, groups, w.norm.data(), static_cast<float>(config_.rms_norm_eps));
  const ops::LinearOut out[] = {w.out.to({x_.data(), config_.hidden_size}, /*accumulate=*/true)};
  backend_->linear(out, o, rows_);
}

void HybridModel::draft_attention_layer(std::span<const models::DraftSegment> segments,
                                        const AttentionWeights& w, const DrafterLayer& d,
                                        const LayerState& state) {
  const AttentionRows rows = attention_inputs(w, d.q, d.k, d.v);
  for (std::size_t s = 0; s < segments.size(); ++s) {
    ops::AttentionSegment& segment = attention_segments_[s];
    segment.cache = {segments[s].pages, state.kv};
    segment.window = segment.sinks = 0;
    segment.own_keys = {rows.k[segment.first_row], rows.k.stride};
    segment.own_values = {rows.v[segment.first_row], rows.v.stride};
  }
  attention_output(w, rows);
}

}  // namespace ponder::hybrid
