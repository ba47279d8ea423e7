// The CPU backend's insides; users take backend.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "base/thread_pool.hpp"
#include "base/work_split.hpp"
#include "cpu/backend.hpp"
#include "cpu/kernels/table.hpp"
#include "cpu/weight.hpp"
#include "ops/backend.hpp"

namespace ponder::cpu {

// An id and its logit.
struct Candidate {
  std::int32_t id;
  float score;
};

class CpuBackend final : public ops::Backend {
 public:
  CpuBackend(InstructionSet isa, const KernelTable& kernels, const CpuBackendOptions& options);

  std::string describe() const override;
  ops::ActivationType activation_type() const override { return activations_; }

  ops::WeightPtr make_weight(const ops::WeightData& data, ops::WeightType type) override;
  std::size_t kv_page_bytes(const ops::KvShape& shape) const override;

  void embed(const ops::Weight& table, std::span<const std::int32_t> ids, ops::Rows out) override;
  void rms_norm(ops::ConstRows x, ops::Rows y, int rows, ops::Groups groups, const float* weight,
                float eps) override;
  void gated_rms_norm(ops::ConstRows x, ops::ConstRows z, ops::Rows y, int rows, ops::Groups groups,
                      const float* weight, float eps) override;
  void linear(std::span<const ops::LinearOut> outs, ops::ConstRows x, int rows) override;
  void silu_mul(ops::Rows gate, ops::ConstRows up, int rows, int cols) override;
  void sigmoid_mul(ops::Rows x, ops::ConstRows gate, int rows, ops::Groups gate_groups) override;
  void rotary_table(std::span<const std::int64_t> positions, int dim, double theta, ops::Rows cos,
                    ops::Rows sin) override;
  void rotary(ops::Rows x, int rows, ops::Groups groups, int half, ops::ConstRows cos,
              ops::ConstRows sin) override;

  void kv_append(const ops::KvShape& shape, ops::KvPages cache, std::int64_t position, int first_row,
                 int rows, ops::ConstRows keys, ops::ConstRows values) override;
  void attention(const ops::AttentionArgs& args) override;
  void causal_conv(const ops::ConvArgs& args) override;
  void delta_rule(const ops::DeltaArgs& args) override;
  void delta_matrix(const ops::DeltaShape& shape, const float* state, std::int64_t position,
                    float* out) override;

  void masked_argmax(ops::ConstRows x, int rows, const ops::Weight& head, std::int64_t limit,
                     const std::uint64_t* banned, std::int32_t* ids) override;

 private:
  // One matrix of a linear call and the tasks it is cut into: blocks of weight rows, for each the blocks of
  // input rows.
  struct LinearPlan {
    WorkSplit split;
    int first_task = 0;
  };

  // Working memory of one worker, at least `floats`; the same buffer until a larger one is asked for. Grow it
  // for all workers before a region, never in one.
  void reserve(std::size_t floats);
  float* scratch(int worker) { return scratch_[static_cast<std::size_t>(worker)].data(); }

  // Runs body(row) for all rows, in parallel when there is enough to do.
  void for_rows(int rows, std::int64_t floats_per_row, FunctionRef<void(int row)> body);

  // The input of a product as it takes part in it: the caller's rows, or copies, rounded or packed for
  // linear_panel (row r of a block of kPanelInputs rows then starts at its place in the first column block).
  struct ProductInput {
    ops::ConstRows x;
    std::int64_t cols;
    int rows;
    bool packed;
    int blocks() const { return (rows + kPanelInputs - 1) / kPanelInputs; }
  };
  ProductInput product_input(ops::ConstRows x, int rows, std::int64_t cols);
  // Weight rows `range` times the block-th kPanelInputs rows; `out` names where results go.
  void multiply(const CpuWeight& w, RowRange range, const ProductInput& input, int block, LinearBlock out,
                int worker);

  const KernelTable& kernels_;
  InstructionSet isa_;
  std::shared_ptr<ThreadPool> pool_;
  ops::ActivationType activations_;
  std::string thread_reason_;

  std::vector<AlignedBuffer<float>> scratch_;  // one a worker
  AlignedBuffer<float> input_;                 // product_input's copies
  AlignedBuffer<Candidate> candidates_;        // [workers][rows] of masked_argmax
  std::vector<LinearPlan> plans_;
  std::vector<int> first_tasks_;  // of each segment
};

}  // namespace ponder::cpu
