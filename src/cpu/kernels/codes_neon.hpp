// Dot products of bytes for 64-bit Arm: see codes_scalar.hpp for what each operation means. With the dot
// product instructions where the including file is compiled for them.
#pragma once

#include "cpu/kernels/vec_neon.hpp"

namespace ponder::cpu {
namespace {

constexpr int kPackedTile = 8;
constexpr int kPackedSide = 1;
constexpr int kTwoChains = 2;

struct Codes4 {
  uint8x16_t v;
};
struct Sums {
  int32x4_t v;
};

PONDER_INLINE Codes4 load_codes(const uint8_t* p) {
  return {vld1q_u8(p)};
}
PONDER_INLINE Codes4 low_nibbles(Codes4 a) {
  return {vandq_u8(a.v, vdupq_n_u8(0x0F))};
}
PONDER_INLINE Codes4 high_nibbles(Codes4 a) {
  return {vshrq_n_u8(a.v, 4)};
}
PONDER_INLINE Sums start_sums(int32_t x) {
  return {vdupq_n_s32(x)};
}
PONDER_INLINE Sums add_sums(Sums a, Sums b) {
  return {vaddq_s32(a.v, b.v)};
}
PONDER_INLINE int8x16_t four_inputs(const int8_t* x) {
  int32_t word;
  __builtin_memcpy(&word, x, sizeof(word));
  return vreinterpretq_s8_s32(vdupq_n_s32(word));
}
// Sums of four neighbouring products of signed bytes.
PONDER_INLINE int32x4_t dot_signed(int32x4_t acc, int8x16_t w, int8x16_t x) {
#if defined(__ARM_FEATURE_DOTPROD)
  return vdotq_s32(acc, w, x);
#else
  const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x));
  const int16x8_t high = vmull_high_s8(w, x);
  return vaddq_s32(acc, vpaddq_s32(vpaddlq_s16(low), vpaddlq_s16(high)));
#endif
}
PONDER_INLINE Sums dot_nibbles(Sums acc, Codes4 w, const int8_t* x) {
  return {dot_signed(acc.v, vreinterpretq_s8_u8(w.v), four_inputs(x))};
}
// Bytes above 127 as signed bytes and 128 times the inputs.
PONDER_INLINE Sums dot_bytes(Sums acc, Codes4 w, const int8_t* x) {
  const int8x16_t in = four_inputs(x);
  const int32x4_t sum = dot_signed(acc.v, vreinterpretq_s8_u8(veorq_u8(w.v, vdupq_n_u8(0x80))), in);
  const int32x4_t inputs = dot_signed(vdupq_n_s32(0), vdupq_n_s8(1), in);
  return {vaddq_s32(sum, vshlq_n_s32(inputs, 7))};
}
PONDER_INLINE Vec to_floats(Sums a) {
  return {vcvtq_f32_s32(a.v)};
}
PONDER_INLINE Vec code_floats(Codes4 w, int b) {
  const uint32x4_t shifted = vshlq_u32(vreinterpretq_u32_u8(w.v), vdupq_n_s32(-8 * b));
  return {vcvtq_f32_u32(vandq_u32(shifted, vdupq_n_u32(0xFF)))};
}
PONDER_INLINE Vec gather_rungs(const float* ladder, const uint8_t* codes) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = ladder[(codes[i] & 31) * 16 + i];
  return load(lanes);
}
PONDER_INLINE int32_t store_int8(int8_t* out, Vec x) {
  const int32x4_t i = vcvtnq_s32_f32(x.v);
  const int16x4_t words = vqmovn_s32(i);
  const int8x8_t bytes = vqmovn_s16(vcombine_s16(words, words));
  const int32_t four = vget_lane_s32(vreinterpret_s32_s8(bytes), 0);
  __builtin_memcpy(out, &four, sizeof(four));
  return vaddvq_s32(i);
}

}  // namespace
}  // namespace ponder::cpu
