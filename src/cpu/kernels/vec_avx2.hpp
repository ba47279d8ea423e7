// A vector of eight floats for AVX2 with FMA and F16C. See vec_scalar.hpp for what each operation means.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include "cpu/kernels/compiler.hpp"

namespace ponder::cpu {
namespace {

struct Vec {
  __m256 v;
};

constexpr int kLanes = 8;
constexpr int kDotInputs = 3;
constexpr int kGemmVectors = 2;

PONDER_INLINE Vec splat(float x) {
  return {_mm256_set1_ps(x)};
}
PONDER_INLINE Vec load(const float* p) {
  return {_mm256_loadu_ps(p)};
}
PONDER_INLINE void store(float* p, Vec a) {
  _mm256_storeu_ps(p, a.v);
}

PONDER_INLINE __m256i lane_numbers() {
  return _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
}
PONDER_INLINE __m256i first(int n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), lane_numbers());
}
PONDER_INLINE Vec load_first(const float* p, int n) {
  return {_mm256_maskload_ps(p, first(n))};
}
PONDER_INLINE void store_first(float* p, int n, Vec a) {
  _mm256_maskstore_ps(p, first(n), a.v);
}

PONDER_INLINE Vec operator+(Vec a, Vec b) {
  return {_mm256_add_ps(a.v, b.v)};
}
PONDER_INLINE Vec operator-(Vec a, Vec b) {
  return {_mm256_sub_ps(a.v, b.v)};
}
PONDER_INLINE Vec operator*(Vec a, Vec b) {
  return {_mm256_mul_ps(a.v, b.v)};
}
PONDER_INLINE Vec operator/(Vec a, Vec b) {
  return {_mm256_div_ps(a.v, b.v)};
}
PONDER_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return {_mm256_fmadd_ps(a.v, b.v, c.v)};
}
PONDER_INLINE Vec max(Vec a, Vec b) {
  return {_mm256_max_ps(a.v, b.v)};
}
PONDER_INLINE Vec min(Vec a, Vec b) {
  return {_mm256_min_ps(a.v, b.v)};
}
PONDER_INLINE Vec if_less(Vec x, Vec y, Vec a, Vec b) {
  return {_mm256_blendv_ps(b.v, a.v, _mm256_cmp_ps(x.v, y.v, _CMP_LT_OQ))};
}
PONDER_INLINE Vec keep_range(Vec x, int lo, int hi, Vec other) {
  const __m256i below = first(lo);
  return {_mm256_blendv_ps(other.v, x.v, _mm256_castsi256_ps(_mm256_andnot_si256(below, first(hi))))};
}

PONDER_INLINE Vec pow2(Vec n) {
  const __m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(e, 23))};
}

PONDER_INLINE float sum_lanes(Vec a) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
PONDER_INLINE float max_lanes(Vec a) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

PONDER_INLINE Vec load_bf16(const uint16_t* p) {
  const __m128i codes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(codes), 16))};
}
PONDER_INLINE Vec load_f16(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
PONDER_INLINE Vec load_e4m3(const uint8_t* p) {
  const __m128i s = _mm_cvtepi8_epi16(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  const __m128i next = _mm_add_epi16(s, _mm_set1_epi16(1));
  const __m128i fixed = _mm_xor_si128(s, _mm_and_si128(next, _mm_set1_epi16(0x80)));
  return {_mm256_cvtph_ps(_mm_slli_epi16(fixed, 7))};
}
PONDER_INLINE Vec load_i8(const int8_t* p) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p))))};
}
PONDER_INLINE Vec round_bf16(Vec x) {
  const __m256i u = _mm256_castps_si256(x.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(u, 16), _mm256_set1_epi32(1));
  const __m256i up = _mm256_add_epi32(u, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i quiet = _mm256_or_si256(u, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x.v, x.v, _CMP_UNORD_Q));
  const __m256i r = _mm256_blendv_epi8(up, quiet, nan);
  return {_mm256_castsi256_ps(_mm256_and_si256(r, _mm256_set1_epi32(static_cast<int>(0xffff0000U))))};
}

}  // namespace
}  // namespace ponder::cpu
