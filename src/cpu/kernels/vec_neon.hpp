// A vector of four floats for AArch64's Advanced SIMD. See vec_scalar.hpp for what each operation means.
#pragma once

#include <arm_neon.h>
#include <stdint.h>

#include "cpu/kernels/compiler.hpp"

namespace ponder::cpu {
namespace {

struct Vec {
  float32x4_t v;
};

constexpr int kLanes = 4;
constexpr int kDotInputs = 5;
constexpr int kGemmVectors = 3;

PONDER_INLINE Vec splat(float x) {
  return {vdupq_n_f32(x)};
}
PONDER_INLINE Vec load(const float* p) {
  return {vld1q_f32(p)};
}
PONDER_INLINE void store(float* p, Vec a) {
  vst1q_f32(p, a.v);
}
PONDER_INLINE Vec load_first(const float* p, int n) {
  float lanes[kLanes] = {};
  for (int i = 0; i < n; ++i) lanes[i] = p[i];
  return load(lanes);
}
PONDER_INLINE void store_first(float* p, int n, Vec a) {
  float lanes[kLanes];
  store(lanes, a);
  for (int i = 0; i < n; ++i) p[i] = lanes[i];
}

PONDER_INLINE Vec operator+(Vec a, Vec b) {
  return {vaddq_f32(a.v, b.v)};
}
PONDER_INLINE Vec operator-(Vec a, Vec b) {
  return {vsubq_f32(a.v, b.v)};
}
PONDER_INLINE Vec operator*(Vec a, Vec b) {
  return {vmulq_f32(a.v, b.v)};
}
PONDER_INLINE Vec operator/(Vec a, Vec b) {
  return {vdivq_f32(a.v, b.v)};
}
PONDER_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return {vfmaq_f32(c.v, a.v, b.v)};
}
PONDER_INLINE Vec if_less(Vec x, Vec y, Vec a, Vec b) {
  return {vbslq_f32(vcltq_f32(x.v, y.v), a.v, b.v)};
}
PONDER_INLINE Vec max(Vec a, Vec b) {
  return if_less(b, a, a, b);
}
PONDER_INLINE Vec min(Vec a, Vec b) {
  return if_less(a, b, a, b);
}
PONDER_INLINE Vec keep_range(Vec x, int lo, int hi, Vec other) {
  const int32_t numbers[kLanes] = {0, 1, 2, 3};
  const int32x4_t i = vld1q_s32(numbers);
  const uint32x4_t keep = vandq_u32(vcgeq_s32(i, vdupq_n_s32(lo)), vcltq_s32(i, vdupq_n_s32(hi)));
  return {vbslq_f32(keep, x.v, other.v)};
}

PONDER_INLINE Vec pow2(Vec n) {
  const int32x4_t e = vaddq_s32(vcvtnq_s32_f32(n.v), vdupq_n_s32(127));
  return {vreinterpretq_f32_s32(vshlq_n_s32(e, 23))};
}

PONDER_INLINE float sum_lanes(Vec a) {
  const float32x2_t two = vadd_f32(vget_low_f32(a.v), vget_high_f32(a.v));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
PONDER_INLINE float max_lanes(Vec a) {
  return vmaxvq_f32(a.v);
}

PONDER_INLINE Vec load_bf16(const uint16_t* p) {
  return {vreinterpretq_f32_u32(vshll_n_u16(vld1_u16(p), 16))};
}
PONDER_INLINE Vec load_f16(const uint16_t* p) {
  return {vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p)))};
}
PONDER_INLINE Vec load_e4m3(const uint8_t* p) {
  uint32_t word;
  __builtin_memcpy(&word, p, sizeof(word));
  const int8x8_t codes = vreinterpret_s8_u32(vdup_n_u32(word));
  const uint16x4_t s = vreinterpret_u16_s16(vget_low_s16(vmovl_s8(codes)));
  const uint16x4_t nan = vand_u16(vadd_u16(s, vdup_n_u16(1)), vdup_n_u16(0x80));
  return {vcvt_f32_f16(vreinterpret_f16_u16(vshl_n_u16(veor_u16(s, nan), 7)))};
}
PONDER_INLINE Vec load_i8(const int8_t* p) {
  int32_t four = 0;
  __builtin_memcpy(&four, p, sizeof(four));
  const int8x8_t codes = vreinterpret_s8_s32(vdup_n_s32(four));
  return {vcvtq_f32_s32(vmovl_s16(vget_low_s16(vmovl_s8(codes))))};
}
PONDER_INLINE Vec round_bf16(Vec x) {
  const uint32x4_t u = vreinterpretq_u32_f32(x.v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(u, 16), vdupq_n_u32(1));
  const uint32x4_t up = vaddq_u32(u, vaddq_u32(odd, vdupq_n_u32(0x7fff)));
  const uint32x4_t quiet = vorrq_u32(u, vdupq_n_u32(0x400000));
  const uint32x4_t r = vbslq_u32(vceqq_f32(x.v, x.v), up, quiet);
  return {vreinterpretq_f32_u32(vandq_u32(r, vdupq_n_u32(0xffff0000U)))};
}

}  // namespace
}  // namespace ponder::cpu
