// Dot products of bytes for AVX2: see codes_scalar.hpp for what each operation means. With VNNI where the
// including file is compiled for it.
#pragma once

#include "cpu/kernels/vec_avx2.hpp"

namespace ponder::cpu {
namespace {

constexpr int kPackedTile = 4;
constexpr int kPackedSide = 1;
constexpr int kTwoChains = 2;

struct Codes4 {
  __m256i v;
};
struct Sums {
  __m256i v;
};

PONDER_INLINE Codes4 load_codes(const uint8_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))};
}
PONDER_INLINE Codes4 low_nibbles(Codes4 a) {
  return {_mm256_and_si256(a.v, _mm256_set1_epi8(0x0F))};
}
PONDER_INLINE Codes4 high_nibbles(Codes4 a) {
  return {_mm256_and_si256(_mm256_srli_epi16(a.v, 4), _mm256_set1_epi8(0x0F))};
}
PONDER_INLINE Sums start_sums(int32_t x) {
  return {_mm256_set1_epi32(x)};
}
PONDER_INLINE Sums add_sums(Sums a, Sums b) {
  return {_mm256_add_epi32(a.v, b.v)};
}
PONDER_INLINE __m256i four_inputs(const int8_t* x) {
  int32_t word;
  __builtin_memcpy(&word, x, sizeof(word));
  return _mm256_set1_epi32(word);
}
#if defined(__AVXVNNI__)
PONDER_INLINE Sums dot_bytes(Sums acc, Codes4 w, const int8_t* x) {
  return {_mm256_dpbusd_avx_epi32(acc.v, w.v, four_inputs(x))};
}
PONDER_INLINE Sums dot_nibbles(Sums acc, Codes4 w, const int8_t* x) {
  return dot_bytes(acc, w, x);
}
#else
// vpmaddubsw would saturate on codes above 128: even and odd bytes apart, as 16-bit products.
PONDER_INLINE Sums dot_bytes(Sums acc, Codes4 w, const int8_t* x) {
  const __m256i in = four_inputs(x);
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(w.v, _mm256_set1_epi16(0xFF)),
                                         _mm256_srai_epi16(_mm256_slli_epi16(in, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(w.v, 8), _mm256_srai_epi16(in, 8));
  return {_mm256_add_epi32(acc.v, _mm256_add_epi32(even, odd))};
}
PONDER_INLINE Sums dot_nibbles(Sums acc, Codes4 w, const int8_t* x) {
  const __m256i pairs = _mm256_maddubs_epi16(w.v, four_inputs(x));
  return {_mm256_add_epi32(acc.v, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))};
}
#endif
PONDER_INLINE Vec to_floats(Sums a) {
  return {_mm256_cvtepi32_ps(a.v)};
}
PONDER_INLINE Vec code_floats(Codes4 w, int b) {
  const __m256i byte =
      _mm256_and_si256(_mm256_srl_epi32(w.v, _mm_cvtsi32_si128(8 * b)), _mm256_set1_epi32(0xFF));
  return {_mm256_cvtepi32_ps(byte)};
}
PONDER_INLINE Vec gather_rungs(const float* ladder, const uint8_t* codes) {
  const __m256i rung = _mm256_and_si256(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(codes))), _mm256_set1_epi32(31));
  return {_mm256_i32gather_ps(ladder, _mm256_add_epi32(_mm256_slli_epi32(rung, 4), lane_numbers()), 4)};
}
PONDER_INLINE int32_t store_int8(int8_t* out, Vec x) {
  const __m256i i = _mm256_cvtps_epi32(x.v);
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(out), _mm_packs_epi16(words, words));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(i), _mm256_extracti128_si256(i, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

}  // namespace
}  // namespace ponder::cpu
