// A vector of sixteen floats for AVX-512 (F, BW, DQ, VL). See vec_scalar.hpp for what each operation means.
#pragma once

#include <immintrin.h>
#include <stdint.h>

#include "cpu/kernels/compiler.hpp"

namespace ponder::cpu {
namespace {

struct Vec {
  __m512 v;
};

constexpr int kLanes = 16;
constexpr int kDotInputs = 6;    // input rows in a tile of dot products, four weight rows each
constexpr int kGemmVectors = 4;  // vectors of a gemm tile, six rows each

PONDER_INLINE Vec splat(float x) {
  return {_mm512_set1_ps(x)};
}
PONDER_INLINE Vec load(const float* p) {
  return {_mm512_loadu_ps(p)};
}
PONDER_INLINE void store(float* p, Vec a) {
  _mm512_storeu_ps(p, a.v);
}

PONDER_INLINE __mmask16 first(int n) {
  return static_cast<__mmask16>((1U << n) - 1U);
}
PONDER_INLINE Vec load_first(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(first(n), p)};
}
PONDER_INLINE void store_first(float* p, int n, Vec a) {
  _mm512_mask_storeu_ps(p, first(n), a.v);
}

PONDER_INLINE Vec operator+(Vec a, Vec b) {
  return {_mm512_add_ps(a.v, b.v)};
}
PONDER_INLINE Vec operator-(Vec a, Vec b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
PONDER_INLINE Vec operator*(Vec a, Vec b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
PONDER_INLINE Vec operator/(Vec a, Vec b) {
  return {_mm512_div_ps(a.v, b.v)};
}
PONDER_INLINE Vec fma(Vec a, Vec b, Vec c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
PONDER_INLINE Vec max(Vec a, Vec b) {
  return {_mm512_max_ps(a.v, b.v)};
}
PONDER_INLINE Vec min(Vec a, Vec b) {
  return {_mm512_min_ps(a.v, b.v)};
}
PONDER_INLINE Vec if_less(Vec x, Vec y, Vec a, Vec b) {
  return {_mm512_mask_blend_ps(_mm512_cmp_ps_mask(x.v, y.v, _CMP_LT_OQ), b.v, a.v)};
}
PONDER_INLINE Vec keep_range(Vec x, int lo, int hi, Vec other) {
  const auto below = lo > 0 ? first(lo < kLanes ? lo : kLanes) : __mmask16{0};
  const auto keep =
      static_cast<__mmask16>((hi > 0 ? first(hi < kLanes ? hi : kLanes) : 0U) & ~unsigned{below});
  return {_mm512_mask_blend_ps(keep, other.v, x.v)};
}

PONDER_INLINE Vec pow2(Vec n) {
  const __m512i e = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(e, 23))};
}

PONDER_INLINE float sum_lanes(Vec a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
PONDER_INLINE float max_lanes(Vec a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v), _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

PONDER_INLINE Vec load_bf16(const uint16_t* p) {
  const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(codes), 16))};
}
PONDER_INLINE Vec load_f16(const uint16_t* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
PONDER_INLINE Vec load_e4m3(const uint8_t* p) {
  const __m256i s = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  const __m256i next = _mm256_add_epi16(s, _mm256_set1_epi16(1));
  const __m256i fixed =
      _mm256_ternarylogic_epi32(s, next, _mm256_set1_epi16(0x80), 0x78);  // s ^ (next & 0x80)
  return {_mm512_cvtph_ps(_mm256_slli_epi16(fixed, 7))};
}
PONDER_INLINE Vec load_i8(const int8_t* p) {
  return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))))};
}
PONDER_INLINE Vec round_bf16(Vec x) {
  const __m512i u = _mm512_castps_si512(x.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(u, 16), _mm512_set1_epi32(1));
  const __m512i up = _mm512_add_epi32(u, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __m512i quiet = _mm512_or_si512(u, _mm512_set1_epi32(0x400000));
  const __m512i r = _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q), up, quiet);
  return {_mm512_castsi512_ps(_mm512_and_si512(r, _mm512_set1_epi32(static_cast<int>(0xffff0000U))))};
}

}  // namespace
}  // namespace ponder::cpu
