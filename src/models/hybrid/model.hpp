// The hybrid backbone: residual blocks of gated delta nets and gated attention (decision models, Qwen3.5
// family).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "models/hybrid/config.hpp"
#include "models/hybrid/drafter.hpp"
#include "models/hybrid/weights.hpp"
#include "models/model.hpp"

namespace ponder::hybrid {

// Where each layer keeps its part of a sequence's state.
struct LayerState {
  // Floats into the recurrent block: [kernel - 1][conv_dim] inputs, oldest first, then room for kHeldRows
  // more.
  std::size_t conv = 0;
  std::size_t delta = 0;  // floats into the recurrent block: ops::DeltaStateLayout
  std::size_t kv = 0;     // bytes into a page
  std::size_t draft = 0;  // bytes into a page of the drafter's: keys and values of a delta layer
};

class HybridModel final : public models::Model {
 public:
  // `backend` runs every operation and must be the one the weights were made with (or one of its kind).
  HybridModel(Config config, Weights weights, std::shared_ptr<ops::Backend> backend, int max_rows);
  // With a drafter, which must be of this configuration.
  HybridModel(Config config, Weights weights, Drafter drafter, const DraftMemory& memory,
              std::shared_ptr<ops::Backend> backend, int max_rows);

  const models::StateLayout& state_layout() const override { return layout_; }
  int hidden_size() const override { return config_.hidden_size; }
  int vocab_size() const override { return config_.vocab_size; }
  int max_rows() const override { return max_rows_; }
  ops::ConstRows forward(std::span<const models::Segment> segments,
                         const models::LayerObserver* observer) override;
  void settle(const models::Segment& segment, int accepted) override;
  ops::ConstRows draft(std::span<const models::DraftSegment> segments) override;
  void logits(ops::ConstRows hidden, int rows, ops::Rows out) override;
  void argmax(ops::ConstRows hidden, int rows, std::int64_t limit, const std::uint64_t* banned,
              std::int32_t* ids) override;

  const Config& config() const noexcept { return config_; }
  const Weights& weights() const noexcept { return weights_; }
  const LayerState& layer_state(int layer) const { return layer_states_[static_cast<std::size_t>(layer)]; }
  ops::Backend& backend() noexcept { return *backend_; }
  bool has_drafter() const noexcept { return !drafter_.layers.empty(); }
  const Drafter& drafter() const noexcept { return drafter_; }
  // Bytes of the work space this model allocated for its steps.
  std::size_t workspace_bytes() const noexcept;

 private:
  void plan_state();
  ops::KvShape draft_shape() const;
  void start_step(std::span<const models::Segment> segments);
  void turn_positions();
  void remember_for_drafts(std::span<const models::Segment> segments, ops::ConstRows mixed,
                           const LayerState& state);
  void delta_layer(std::span<const models::Segment> segments, const DeltaWeights& w, const LayerState& state);
  void attention_layer(std::span<const models::Segment> segments, const AttentionWeights& w,
                       const LayerState& state);
  struct AttentionRows {
    ops::Rows q, k, v;  // [rows][H 2D], [rows][Hkv D] twice
  };
  AttentionRows attention_inputs(const AttentionWeights& w, const Linear& q, const Linear& k,
                                 const Linear& v);
  void attention_output(const AttentionWeights& w, const AttentionRows& rows);
  ops::Groups query_groups() const;
  int rotary_half() const { return (config_.rotary_dim() + 1) / 2; }
  void mlp(const LayerWeights& w);
  void draft_delta_layer(std::span<const models::DraftSegment> segments, const DeltaWeights& w,
                         const DrafterLayer& d, const LayerState& state);
  void draft_attention_layer(std::span<const models::DraftSegment> segments, const AttentionWeights& w,
                             const DrafterLayer& d, const LayerState& state);
  ops::Rows take(std::int64_t cols);

  Config config_;
  Weights weights_;
  Drafter drafter_;
  DraftMemory draft_memory_;
  std::shared_ptr<ops::Backend> backend_;
  int max_rows_;
  models::StateLayout layout_;
  std::vector<LayerState> layer_states_;

  // The present step.
  int rows_ = 0;
  std::size_t scratch_used_ = 0;
  AlignedBuffer<float> x_;          // [max_rows][hidden] residual stream
  AlignedBuffer<float> h_;          // [max_rows][hidden] normed input of the present block
  AlignedBuffer<float> scratch_;    // what one block needs besides, reused block after block
  AlignedBuffer<float> cos_, sin_;  // [max_rows][half]
  std::vector<std::int64_t> positions_;
  std::vector<ops::ConvSegment> conv_segments_;
  std::vector<ops::DeltaSegment> delta_segments_;
  std::vector<ops::AttentionSegment> attention_segments_;
  std::vector<ops::KvAppend> kv_appends_;
};

}  // namespace ponder::hybrid
