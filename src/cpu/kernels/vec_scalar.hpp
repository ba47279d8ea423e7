// A vector of four floats in the compiler's own vector extension: whatever the baseline has (SSE2 on x86-64,
// plain loops elsewhere). No fused multiply-add: the baseline would call a slow library function for it.
//
// The same operations exist in every vec_*.hpp:
//   load_first/store_first   the first n lanes, 0 <= n <= kLanes; other lanes are 0 / untouched memory
//   max, min                 the second operand where the two are unordered
//   if_less(x, y, a, b)      x < y ? a : b
//   keep_range(x, lo, hi, o) lanes lo <= i < hi of x, o elsewhere; lo and hi may lie outside the vector
//   pow2(n)                  2^n for integral n in [-126, 127]
//   sum_lanes, max_lanes     halves folded together until one lane is left
//   load_e4m3                values times 2^-8 (see below)
//   round_bf16               to nearest even bfloat16, NaN stays NaN
//
// E4M3 codes become half-precision bits by shifting: the same fields under another exponent bias, hence the
// 2^-8, subnormals included, and no subnormal float ever arises. s is the code sign-extended to 16 bits;
// adding one carries into bit 7 only from the NaN codes, so  (s ^ ((s + 1) & 0x80)) << 7  clears the sign's
// copy in bit 14 of ordinary codes and leaves a half-precision NaN of a NaN.
#pragma once

#include <stdint.h>

#include "cpu/kernels/compiler.hpp"

namespace ponder::cpu {
namespace {

using Floats = float __attribute__((vector_size(16)));
using Words = uint32_t __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(16)));

struct Vec {
  Floats v;
};

constexpr int kLanes = 4;
constexpr int kDotInputs = 2;
constexpr int kGemmVectors = 2;

PONDER_INLINE Words bits(Floats a) {
  return reinterpret_cast<Words>(a);
}
PONDER_INLINE Floats floats(Words a) {
  return reinterpret_cast<Floats>(a);
}
PONDER_INLINE Words words(uint32_t x) {
  return Words{x, x, x, x};
}
PONDER_INLINE Words choose(Ints mask, Words a, Words b) {
  const Words m = reinterpret_cast<Words>(mask);
  return (a & m) | (b & ~m);
}

PONDER_INLINE Vec splat(float x) {
  return {Floats{x, x, x, x}};
}
PONDER_INLINE Vec load(const float* p) {
  Floats v;
  __builtin_memcpy(&v, p, sizeof(v));
  return {v};
}
PONDER_INLINE void store(float* p, Vec a) {
  __builtin_memcpy(p, &a.v, sizeof(a.v));
}
PONDER_INLINE Vec load_first(const float* p, int n) {
  return {Floats{n > 0 ? p[0] : 0.0F, n > 1 ? p[1] : 0.0F, n > 2 ? p[2] : 0.0F, n > 3 ? p[3] : 0.0F}};
}
PONDER_INLINE void store_first(float* p, int n, Vec a) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}

PONDER_INLINE Vec operator+(Vec a, Vec b) {
  return {a.v + b.v};
}
PONDER_INLINE Vec operator-(Vec a, Vec b) {
  return {a.v - b.v};
}
PONDER_INLINE Vec operator*(Vec a, Vec b) {
  return {a.v * b.v};
}
PONDER_INLINE Vec operator/(Vec a, Vec b) {
  return {a.v / b.v};
}
PONDER_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return {a.v * b.v + c.v};
}
PONDER_INLINE Vec if_less(Vec x, Vec y, Vec a, Vec b) {
  return {floats(choose(x.v < y.v, bits(a.v), bits(b.v)))};
}
PONDER_INLINE Vec max(Vec a, Vec b) {
  return if_less(b, a, a, b);
}
PONDER_INLINE Vec min(Vec a, Vec b) {
  return if_less(a, b, a, b);
}
PONDER_INLINE Vec keep_range(Vec x, int lo, int hi, Vec other) {
  const Ints i = {0, 1, 2, 3};
  const Ints l = {lo, lo, lo, lo}, h = {hi, hi, hi, hi};
  return {floats(choose((i >= l) & (i < h), bits(x.v), bits(other.v)))};
}

PONDER_INLINE Vec pow2(Vec n) {
  const Vec shifted = n + splat(12582912.0F);  // 1.5 * 2^23: the integer sits in the low bits
  return {floats((bits(shifted.v) - words(0x4B400000U) + words(127)) << 23U)};
}

PONDER_INLINE float sum_lanes(Vec a) {
  return (a.v[0] + a.v[2]) + (a.v[1] + a.v[3]);
}
PONDER_INLINE float max_lanes(Vec a) {
  const float even = a.v[0] > a.v[2] ? a.v[0] : a.v[2];
  const float odd = a.v[1] > a.v[3] ? a.v[1] : a.v[3];
  return even > odd ? even : odd;
}

// Half-precision bits in the low half of each word.
PONDER_INLINE Vec from_f16(Words h) {
  const Words size = (h & words(0x7FFF)) << 13U;
  const Words sign = (h & words(0x8000)) << 16U;
  const Words normal = size + words(112U << 23U);
  const Words least = words(113U << 23U);  // 2^-14: gives a subnormal's mantissa its place, then is taken off
  const Words tiny = bits(floats(size + least) - floats(least));
  const Words endless = size + words(224U << 23U);
  const Words small =
      choose(reinterpret_cast<Ints>(size) < reinterpret_cast<Ints>(words(1U << 23U)), tiny, normal);
  return {floats(sign | choose(reinterpret_cast<Ints>(size) < reinterpret_cast<Ints>(words(31U << 23U)),
                               small, endless))};
}
PONDER_INLINE Vec load_bf16(const uint16_t* p) {
  return {floats(Words{p[0], p[1], p[2], p[3]} << 16U)};
}
PONDER_INLINE Vec load_f16(const uint16_t* p) {
  return from_f16(Words{p[0], p[1], p[2], p[3]});
}
PONDER_INLINE Vec load_e4m3(const uint8_t* p) {
  const Words code = {p[0], p[1], p[2], p[3]};
  const Words sign = code & words(0x80);
  const Words size = code & words(0x7F);
  const Words nan = ((size + words(1)) & words(0x80)) << 7U;
  return from_f16((sign << 8U) | (size << 7U) | nan);
}
PONDER_INLINE Vec load_i8(const int8_t* p) {
  return {Floats{static_cast<float>(p[0]), static_cast<float>(p[1]), static_cast<float>(p[2]),
                 static_cast<float>(p[3])}};
}
PONDER_INLINE Vec round_bf16(Vec x) {
  const Words u = bits(x.v);
  const Ints size = reinterpret_cast<Ints>(u & words(0x7FFFFFFF));
  const Words up = u + words(0x7FFF) + ((u >> 16U) & words(1));
  return {floats(choose(size > reinterpret_cast<Ints>(words(0x7F800000)), u | words(0x400000), up) &
                 words(0xFFFF0000U))};
}

}  // namespace
}  // namespace ponder::cpu
