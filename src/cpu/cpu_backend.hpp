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
#include "cpu/attention_plan.hpp"
#include "cpu/backend.hpp"
#include "cpu/kernels/table.hpp"
#include "cpu/linear_input.hpp"
#include "cpu/weight.hpp"
#include "ops/backend.hpp"

namespace ponder::cpu {

// What a worker's product kernels need of its scratch.
inline constexpr std::size_t kProductScratchFloats =
    kLinearScratchFloats > kBf16ScratchFloats ? kLinearScratchFloats : kBf16ScratchFloats;

// An id and its logit.
struct Candidate {
  std::int32_t id;
  float score;
};

class CpuBackend final : public ops::Backend {
 public:
  CpuBackend(InstructionSet isa, const CpuFeatures& features, const CpuBackendOptions& options);

  std::string describe() const override;
  ops::ActivationType activation_type() const override { return activations_; }

  ops::WeightPtr make_weight(const ops::WeightData& data, ops::WeightType type) override;
  ops::WeightPtr make_random_weight(std::int64_t rows, std::int64_t cols, ops::WeightType type,
                                    std::uint64_t seed) override;
  std::size_t kv_page_bytes(const ops::KvShape& shape) const override;

  void embed(const ops::Weight& table, std::span<const std::int32_t> ids, ops::Rows out) override;
  void rms_norm(ops::ConstRows x, ops::Rows y, int rows, ops::Groups groups, const float* weight,
                float eps) override;
  void gated_rms_norm(ops::ConstRows x, ops::ConstRows z, ops::Rows y, int rows, ops::Groups groups,
                      const float* weight, float eps) override;
  void linear(std::span<const ops::LinearOut> outs, ops::ConstRows x, int rows) override;
  void gated_linear(const ops::Weight& gate, const ops::Weight& up, ops::ConstRows x, int rows,
                    ops::Rows y) override;
  void silu_mul(ops::Rows gate, ops::ConstRows up, int rows, int cols) override;
  void sigmoid_mul(ops::Rows x, ops::ConstRows gate, int rows, ops::Groups gate_groups) override;
  void rotary_table(std::span<const std::int64_t> positions, int dim, double theta, ops::Rows cos,
                    ops::Rows sin) override;
  void rotary(ops::Rows x, int rows, ops::Groups groups, int half, ops::ConstRows cos,
              ops::ConstRows sin) override;

  using Backend::kv_append;
  void kv_append(const ops::KvShape& shape, std::span<const ops::KvAppend> segments, ops::ConstRows keys,
                 ops::ConstRows values) override;
  void attention(const ops::AttentionArgs& args) override;
  void causal_conv(const ops::ConvArgs& args) override;
  void delta_rule(const ops::DeltaArgs& args) override;
  void delta_settle(const ops::DeltaShape& shape, float* state, std::int64_t position, int accepted) override;
  void delta_matrix(const ops::DeltaShape& shape, const float* state, std::int64_t position,
                    float* out) override;

  void masked_argmax(ops::ConstRows x, int rows, const ops::Weight& head, std::int64_t limit,
                     const std::uint64_t* banned, std::int32_t* ids) override;

 private:
  // One matrix of a linear call and the tasks it is cut into: blocks of weight rows, for each the blocks of
  // input rows.
  struct LinearPlan {
    const CpuWeight* weight;
    const LinearInput* input;
    WorkSplit split;
    int first_task = 0;
  };

  // Working memory of one worker, at least `floats`; the same buffer until a larger one is asked for. Grow it
  // for all workers before a region, never in one.
  void reserve(std::size_t floats);
  float* scratch(int worker) { return scratch_[static_cast<std::size_t>(worker)].data(); }

  // Runs body(row) for all rows, in parallel when there is enough to do.
  void for_rows(int rows, std::int64_t floats_per_row, FunctionRef<void(int row)> body);

  void join_parts(const ops::AttentionArgs& args);

  // Where a task's part of a product goes.
  struct ProductOut {
    ops::Rows y;
    const float* bias;
    bool accumulate;
  };
  void multiply(const CpuWeight& w, RowRange range, const LinearInput& input, int block,
                const ProductOut& out, int worker);
  void multiply_packed(const CpuWeight& w, RowRange range, const LinearInput& input, int block,
                       const ProductOut& out) const;

  const KernelTable& kernels_;
  const PackedKernels& packed_kernels_;
  const Bf16Kernels* bf16_kernels_;
  InstructionSet isa_;
  std::shared_ptr<ThreadPool> pool_;
  ops::ActivationType activations_;
  std::string thread_reason_;

  std::vector<AlignedBuffer<float>> scratch_;  // one a worker
  LinearInputs inputs_;
  AlignedBuffer<float> raised_;          // gated_linear's second product where the types differ
  AlignedBuffer<Candidate> candidates_;  // [workers][rows] of masked_argmax
  std::vector<LinearPlan> plans_;
  AttentionPlan attention_plan_;
  // A segment of a convolution, and the first of some rows of it.
  struct ConvTask {
    const ops::ConvSegment* segment;
    std::int64_t row;
  };
  std::vector<ConvTask> conv_tasks_;
};

}  // namespace ponder::cpu
