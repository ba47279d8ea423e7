// Dot products of bytes for AVX-512: see codes_scalar.hpp for what each operation means. With VNNI where the
// including file is compiled for it.
#pragma once

#include "cpu/kernels/vec_avx512.hpp"

namespace ponder::cpu {
namespace {

constexpr int kPackedTile = 16;
constexpr int kPackedSide = 4;
constexpr int kTwoChains = 2;

struct Codes4 {
  __m512i v;
};
struct Sums {
  __m512i v;
};

PONDER_INLINE Codes4 load_codes(const uint8_t* p) {
  return {_mm512_loadu_si512(p)};
}
PONDER_INLINE Codes4 low_nibbles(Codes4 a) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi8(0x0F))};
}
PONDER_INLINE Codes4 high_nibbles(Codes4 a) {
  return {_mm512_and_si512(_mm512_srli_epi16(a.v, 4), _mm512_set1_epi8(0x0F))};
}
PONDER_INLINE Sums start_sums(int32_t x) {
  return {_mm512_set1_epi32(x)};
}
PONDER_INLINE Sums add_sums(Sums a, Sums b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
PONDER_INLINE __m512i four_inputs(const int8_t* x) {
  int32_t word;
  __builtin_memcpy(&word, x, sizeof(word));
  return _mm512_set1_epi32(word);
}
#if defined(__AVX512VNNI__)
PONDER_INLINE Sums dot_bytes(Sums acc, Codes4 w, const int8_t* x) {
  // Compilers load the four inputs apart, one more instruction for each product and a register.
  typedef int32_t __attribute__((may_alias, aligned(1))) Word;
  asm("vpdpbusd %2%{1to16%}, %1, %0" : "+v"(acc.v) : "v"(w.v), "m"(*reinterpret_cast<const Word*>(x)));
  return acc;
}
PONDER_INLINE Sums dot_nibbles(Sums acc, Codes4 w, const int8_t* x) {
  return dot_bytes(acc, w, x);
}
#else
// vpmaddubsw would saturate on codes above 128: even and odd bytes apart, as 16-bit products.
PONDER_INLINE Sums dot_bytes(Sums acc, Codes4 w, const int8_t* x) {
  const __m512i in = four_inputs(x);
  const __m512i even = _mm512_madd_epi16(_mm512_and_si512(w.v, _mm512_set1_epi16(0xFF)),
                                         _mm512_srai_epi16(_mm512_slli_epi16(in, 8), 8));
  const __m512i odd = _mm512_madd_epi16(_mm512_srli_epi16(w.v, 8), _mm512_srai_epi16(in, 8));
  return {_mm512_add_epi32(acc.v, _mm512_add_epi32(even, odd))};
}
PONDER_INLINE Sums dot_nibbles(Sums acc, Codes4 w, const int8_t* x) {
  const __m512i pairs = _mm512_maddubs_epi16(w.v, four_inputs(x));
  return {_mm512_add_epi32(acc.v, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)))};
}
#endif
PONDER_INLINE Vec to_floats(Sums a) {
  return {_mm512_cvtepi32_ps(a.v)};
}
PONDER_INLINE Vec code_floats(Codes4 w, int b) {
  const __m512i byte =
      _mm512_and_si512(_mm512_srl_epi32(w.v, _mm_cvtsi32_si128(8 * b)), _mm512_set1_epi32(0xFF));
  return {_mm512_cvtepi32_ps(byte)};
}
PONDER_INLINE Vec gather_rungs(const float* ladder, const uint8_t* codes) {
  const __m512i rung = _mm512_and_si512(
      _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes))), _mm512_set1_epi32(31));
  const __m512i lane = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  return {_mm512_i32gather_ps(_mm512_add_epi32(_mm512_slli_epi32(rung, 4), lane), ladder, 4)};
}
PONDER_INLINE int32_t store_int8(int8_t* out, Vec x) {
  const __m512i i = _mm512_cvtps_epi32(x.v);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm512_cvtsepi32_epi8(i));
  // Not _mm512_reduce_add_epi32: GCC's ends in signed additions, and the codes of NaN and infinity overflow.
  const __m256i eight = _mm256_add_epi32(_mm512_castsi512_si256(i), _mm512_extracti64x4_epi64(i, 1));
  const __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  const __m128i two = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
  return _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32(two, 0xB1)));
}

}  // namespace
}  // namespace ponder::cpu
