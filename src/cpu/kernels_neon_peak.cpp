#include <arm_neon.h>

#include "cpu/peak_kernels.hpp"

namespace ponder::cpu {
namespace {

constexpr int kSums = 16;
constexpr int kTurns = 4;  // of each sum in a round

uint64_t read(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  uint64x2_t sums[8];
  PONDER_PEAK_UNROLL
  for (uint64x2_t& sum : sums) sum = vdupq_n_u64(0);
  for (const char* end = p + bytes; p < end; p += 256) {
    PONDER_PEAK_UNROLL
    for (int i = 0; i < 16; ++i) {
      sums[i % 8] = veorq_u64(sums[i % 8], vld1q_u64(reinterpret_cast<const uint64_t*>(p + 16 * i)));
    }
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < 8; ++i) sums[0] = veorq_u64(sums[0], sums[i]);
  return vgetq_lane_u64(sums[0], 0) ^ vgetq_lane_u64(sums[0], 1);
}

void f32(int64_t rounds, float* sink) {
  float32x4_t sums[kSums], a = vdupq_n_f32(0.5F);
  const float32x4_t b = vdupq_n_f32(0.25F);
  PONDER_PEAK_UNROLL
  for (float32x4_t& sum : sums) {
    sum = vdupq_n_f32(0);
    PONDER_PEAK_CHANGED(sum, "w");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    for (int turn = 0; turn < kTurns; ++turn) {
      PONDER_PEAK_CHANGED(a, "w");
      PONDER_PEAK_UNROLL
      for (float32x4_t& sum : sums) sum = vfmaq_f32(sum, a, b);
    }
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] = vaddq_f32(sums[0], sums[i]);
  vst1q_f32(sink, sums[0]);
}

void store(int32x4_t (&sums)[kSums], float* sink) {
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] = vaddq_s32(sums[0], sums[i]);
  vst1q_f32(sink, vcvtq_f32_s32(sums[0]));
}

// Two products of eight bytes in 16 bits, added in pairs to 32.
void int8(int64_t rounds, float* sink) {
  int32x4_t sums[kSums];
  int8x8_t a = vdup_n_s8(3);
  const int8x8_t b = vdup_n_s8(-5);
  PONDER_PEAK_UNROLL
  for (int32x4_t& sum : sums) {
    sum = vdupq_n_s32(0);
    PONDER_PEAK_CHANGED(sum, "w");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    PONDER_PEAK_UNROLL
    for (int32x4_t& sum : sums) {
      PONDER_PEAK_CHANGED(a, "w");
      sum = vpadalq_s16(sum, vmlal_s8(vmull_s8(a, b), a, b));
    }
  }
  store(sums, sink);
}

void int8_dot(int64_t rounds, float* sink) {
  int32x4_t sums[kSums];
  int8x16_t a = vdupq_n_s8(3);
  const int8x16_t b = vdupq_n_s8(-5);
  PONDER_PEAK_UNROLL
  for (int32x4_t& sum : sums) {
    sum = vdupq_n_s32(0);
    PONDER_PEAK_CHANGED(sum, "w");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    for (int turn = 0; turn < kTurns; ++turn) {
      PONDER_PEAK_CHANGED(a, "w");
      PONDER_PEAK_UNROLL
      for (int32x4_t& sum : sums) sum = vdotq_s32(sum, a, b);
    }
  }
  store(sums, sink);
}

}  // namespace

const PeakKernels kNeonPeaks = {
    read,
    {f32, int64_t{2} * 4 * kSums* kTurns, "fmla 4s"},
    {int8, int64_t{2} * 16 * kSums, "smull, smlal, sadalp"},
    {int8_dot, int64_t{2} * 16 * kSums* kTurns, "sdot 4s"},
    {nullptr, 0, ""},
};

}  // namespace ponder::cpu
