// The hybrid backbone: residual blocks of gated delta nets and gated attention (decision models, Qwen3.5
// family).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "models/hybrid/config.hpp"
#include "models/hybrid/weights.hpp"
#include "models/model.hpp"

namespace ponder::hybrid {

// Where each layer keeps its part of a sequence's state.
struct LayerState {
  std::size_t conv = 0;   // floats into the recurrent block: [kernel - 1][conv_dim] inputs, oldest first
  std::size_t delta = 0;  // floats into the recurrent block: ops::DeltaStateLayout
  std::size_t kv = 0;     // bytes into a page
};

class HybridModel final : public models::Model {
 public:
  // `backend` runs every operation and must be the one the weights were made with (or one of its kind).
  HybridModel(Config config, Weights weights, std::shared_ptr<ops::Backend> backend, int max_rows);

  const models::StateLayout& state_layout() const override { return layout_; }
  int hidden_size() const override { return config_.hidden_size; }
  int vocab_size() const override { return config_.vocab_size; }
  int max_rows() const override { return max_rows_; }
  ops::ConstRows forward(std::span<const models::Segment> segments,
                         const models::LayerObserver* observer) override;
  void logits(ops::ConstRows hidden, int rows, ops::Rows out) override;
  void argmax(ops::ConstRows hidden, int rows, std::int64_t limit, const std::uint64_t* banned,
              std::int32_t* ids) override;

  const Config& config() const noexcept { return config_; }
  const Weights& weights() const noexcept { return weights_; }
  const LayerState& layer_state(int layer) const { return layer_states_[static_cast<std::size_t>(layer)]; }
  ops::Backend& backend() noexcept { return *backend_; }
  // Bytes of the work space this model allocated for its steps.
  std::size_t workspace_bytes() const noexcept;

 private:
  void plan_state();
  void start_step(std::span<const models::Segment> segments);
  void delta_layer(std::span<const models::Segment> segments, const DeltaWeights& w, const LayerState& state);
  void attention_layer(std::span<const models::Segment> segments, const AttentionWeights& w,
                       const LayerState& state);
  void mlp(const LayerWeights& w);
  ops::Rows take(std::int64_t cols);

  Config config_;
  Weights weights_;
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
};

}  // namespace ponder::hybrid
