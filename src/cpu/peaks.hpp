// The machine's own limits, measured: how fast it reads memory and multiplies at all, with the threads and
// the instruction set that models run on. What anything else reaches is a share of these.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/aligned_buffer.hpp"
#include "base/thread_pool.hpp"
#include "cpu/cpu_features.hpp"
#include "cpu/peak_kernels.hpp"

namespace ponder::cpu {

// All threads together. A multiplication and an addition are two operations.
struct Peaks {
  double read_bytes = 0;  // bytes a second out of a buffer that no cache holds
  double int8_ops = 0;    // operations a second, operands in registers
  double bf16_ops = 0;    // that of f32 where there is no dot product of bfloat16
  double f32_ops = 0;
};

// The better of two rounds, figure by figure.
Peaks better(const Peaks& a, const Peaks& b);

class PeakMeter {
 public:
  // Throws Error(unsupported) for an instruction set that is not there, Error(no_memory).
  PeakMeter(InstructionSet isa, std::shared_ptr<ThreadPool> pool);

  // One round: the best of several runs of a few milliseconds for each figure. Some tenths of a second.
  Peaks measure();

  // The instructions the figures are of.
  const char* int8_instruction() const noexcept { return int8_->instruction; }
  const char* bf16_instruction() const noexcept { return bf16_->instruction; }
  const char* f32_instruction() const noexcept { return kernels_.f32.instruction; }

  // Memory a meter takes.
  static std::uint64_t buffer_bytes();

 private:
  double measure_reading();
  double measure_loop(const PeakLoop& loop);

  const PeakKernels& kernels_;
  const PeakLoop* int8_;
  const PeakLoop* bf16_;
  std::shared_ptr<ThreadPool> pool_;
  AlignedBuffer<std::byte> buffer_;
};

}  // namespace ponder::cpu
