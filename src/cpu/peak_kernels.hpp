// Loops that do nothing but read, or nothing but one kind of arithmetic in registers: what one instruction
// set can reach at all. As with kernels/table.hpp, only plain structs here.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "cpu/kernels/compiler.hpp"

// Before a loop over accumulators that must stay in registers.
#if defined(__clang__)
#define PONDER_PEAK_UNROLL _Pragma("clang loop unroll(full)")
#else
#define PONDER_PEAK_UNROLL _Pragma("GCC unroll 32")
#endif
// The compiler must believe that `v` changed: a product of constants would leave the loop, and sums that
// start alike would become one.
#define PONDER_PEAK_CHANGED(v, constraint) asm volatile("" : "+" constraint(v))

namespace ponder::cpu {

// Bytes that `read` takes at a time; what it reads is a whole number of them, aligned to 64.
constexpr size_t kPeakReadBlock = 1024;

// One kind of arithmetic: products of 0.5 and 0.25, or of 3 and -5, added up. A multiplication and an
// addition count as two operations.
struct PeakLoop {
  // Null: this instruction set has none. The sum of all products, in up to 16 parts; sink takes 16 floats.
  void (*run)(int64_t rounds, float* sink);
  int64_t operations;  // of one round
  const char* instruction;
};

struct PeakKernels {
  uint64_t (*read)(const void* data, size_t bytes);  // XOR of all words
  PeakLoop f32;
  PeakLoop int8;      // what every machine of this set has
  PeakLoop int8_dot;  // with the dot product of bytes, an extra
  PeakLoop bf16_dot;  // with the dot product of bfloat16, an extra
};

extern const PeakKernels kScalarPeaks;
extern const PeakKernels kAvx2Peaks;
extern const PeakKernels kAvx512Peaks;
extern const PeakKernels kNeonPeaks;

}  // namespace ponder::cpu
