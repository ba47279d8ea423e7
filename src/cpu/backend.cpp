#include "cpu/backend.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cpu/cpu_backend.hpp"
#include "cpu/kernel_choice.hpp"

namespace ponder::cpu {

std::unique_ptr<ops::Backend> make_cpu_backend(const CpuBackendOptions& options) {
  const CpuFeatures features = options.features.value_or(detect_cpu_features());
  const InstructionSet isa = options.isa.value_or(best(features));
  require_instruction_set(isa, features);
  return std::make_unique<CpuBackend>(isa, features, options);
}

CpuBackend::CpuBackend(InstructionSet isa, const CpuFeatures& features, const CpuBackendOptions& options)
    : kernels_(kernels_for(isa)),
      packed_kernels_(packed_kernels_for(isa, features)),
      bf16_kernels_(bf16_kernels_for(isa, features)),
      isa_(isa),
      pool_(options.pool != nullptr ? options.pool : std::make_shared<ThreadPool>(1)),
      activations_(options.activations),
      thread_reason_(options.thread_reason),
      scratch_(static_cast<std::size_t>(pool_->size())),
      inputs_(kernels_, packed_kernels_, bf16_kernels_, activations_) {}

std::string CpuBackend::describe() const {
  std::string line =
      fmt::format("cpu {}, {} thread{}", name(isa_), pool_->size(), pool_->size() == 1 ? "" : "s");
  if (!thread_reason_.empty()) line += fmt::format(" ({})", thread_reason_);
  if (activations_ == ops::ActivationType::bf16) line += ", bf16 inputs to products";
  if (activations_ == ops::ActivationType::native) line += ", inputs to products rounded to suit the weights";
  return line;
}

ops::WeightPtr CpuBackend::make_weight(const ops::WeightData& data, ops::WeightType type) {
  return std::make_shared<CpuWeight>(data, type, *pool_);
}

ops::WeightPtr CpuBackend::make_random_weight(std::int64_t rows, std::int64_t cols, ops::WeightType type,
                                              std::uint64_t seed) {
  return std::make_shared<CpuWeight>(rows, cols, type, seed, *pool_);
}

void CpuBackend::reserve(std::size_t floats) {
  for (AlignedBuffer<float>& buffer : scratch_) {
    if (buffer.size() < floats) buffer = AlignedBuffer<float>(floats, Fill::none, HugePages::yes);
  }
}

void CpuBackend::for_rows(int rows, std::int64_t floats_per_row, FunctionRef<void(int row)> body) {
  constexpr std::int64_t bytes_per_task = 64 * 1024;  // some microseconds: what waking a thread is worth
  const WorkSplit split =
      split_by_bytes(rows, floats_per_row * std::int64_t{sizeof(float)}, 1, bytes_per_task);
  const auto work = [&](int task, int) {
    const RowRange range = split.range(task);
    for (std::int64_t r = range.begin; r < range.end; ++r) body(static_cast<int>(r));
  };
  if (split.tasks <= 1) {
    if (split.tasks == 1) work(0, 0);
    return;
  }
  pool_->run(split.tasks, work);
}

}  // namespace ponder::cpu
