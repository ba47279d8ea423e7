#include <immintrin.h>

#include "cpu/peak_kernels.hpp"

namespace ponder::cpu {
namespace {

constexpr int kSums = 16;  // independent, to hide a latency of up to eight cycles at two instructions a cycle
constexpr int kTurns = 4;  // of each sum in a round

uint64_t read(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  __m512i sums[8];
  PONDER_PEAK_UNROLL
  for (__m512i& sum : sums) sum = _mm512_setzero_si512();
  for (const char* end = p + bytes; p < end; p += kPeakReadBlock) {
    PONDER_PEAK_UNROLL
    for (int i = 0; i < 16; ++i) sums[i % 8] = _mm512_xor_si512(sums[i % 8], _mm512_load_si512(p + 64 * i));
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < 8; ++i) sums[0] = _mm512_xor_si512(sums[0], sums[i]);
  alignas(64) uint64_t words[8];
  _mm512_store_si512(words, sums[0]);
  return words[0] ^ words[1] ^ words[2] ^ words[3] ^ words[4] ^ words[5] ^ words[6] ^ words[7];
}

void f32(int64_t rounds, float* sink) {
  __m512 sums[kSums], a = _mm512_set1_ps(0.5F), b = _mm512_set1_ps(0.25F);
  PONDER_PEAK_UNROLL
  for (__m512& sum : sums) {
    sum = _mm512_setzero_ps();
    PONDER_PEAK_CHANGED(sum, "v");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    for (int turn = 0; turn < kTurns; ++turn) {
      PONDER_PEAK_CHANGED(a, "v");
      PONDER_PEAK_UNROLL
      for (__m512& sum : sums) sum = _mm512_fmadd_ps(a, b, sum);
    }
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  _mm512_storeu_ps(sink, sums[0]);
}

void store(__m512i (&sums)[kSums], float* sink) {
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_epi32(sums[0], sums[i]);
  _mm512_storeu_ps(sink, _mm512_cvtepi32_ps(sums[0]));
}

// Products of bytes to sums of pairs in 16 bits, to sums of pairs in 32, to the sum: three instructions.
void int8(int64_t rounds, float* sink) {
  __m512i sums[kSums], a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(-5), ones = _mm512_set1_epi16(1);
  PONDER_PEAK_UNROLL
  for (__m512i& sum : sums) {
    sum = _mm512_setzero_si512();
    PONDER_PEAK_CHANGED(sum, "v");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    PONDER_PEAK_UNROLL
    for (__m512i& sum : sums) {
      PONDER_PEAK_CHANGED(a, "v");
      sum = _mm512_add_epi32(sum, _mm512_madd_epi16(_mm512_maddubs_epi16(a, b), ones));
    }
  }
  store(sums, sink);
}

__attribute__((target("avx512vnni"))) void int8_dot(int64_t rounds, float* sink) {
  __m512i sums[kSums], a = _mm512_set1_epi8(3);
  const __m512i b = _mm512_set1_epi8(-5);
  PONDER_PEAK_UNROLL
  for (__m512i& sum : sums) {
    sum = _mm512_setzero_si512();
    PONDER_PEAK_CHANGED(sum, "v");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    for (int turn = 0; turn < kTurns; ++turn) {
      PONDER_PEAK_CHANGED(a, "v");
      PONDER_PEAK_UNROLL
      for (__m512i& sum : sums) sum = _mm512_dpbusd_epi32(sum, a, b);
    }
  }
  store(sums, sink);
}

__attribute__((target("avx512bf16"))) void bf16_dot(int64_t rounds, float* sink) {
  __m512 sums[kSums];
  __m512i a = _mm512_set1_epi16(0x3F00);        // 0.5
  const __m512i b = _mm512_set1_epi16(0x3E80);  // 0.25
  PONDER_PEAK_UNROLL
  for (__m512& sum : sums) {
    sum = _mm512_setzero_ps();
    PONDER_PEAK_CHANGED(sum, "v");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    for (int turn = 0; turn < kTurns; ++turn) {
      PONDER_PEAK_CHANGED(a, "v");
      PONDER_PEAK_UNROLL
      for (__m512& sum : sums) sum = _mm512_dpbf16_ps(sum, (__m512bh)a, (__m512bh)b);
    }
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] = _mm512_add_ps(sums[0], sums[i]);
  _mm512_storeu_ps(sink, sums[0]);
}

}  // namespace

const PeakKernels kAvx512Peaks = {
    read,
    {f32, int64_t{2} * 16 * kSums* kTurns, "vfmadd zmm"},
    {int8, int64_t{2} * 64 * kSums, "vpmaddubsw, vpmaddwd, vpaddd zmm"},
    {int8_dot, int64_t{2} * 64 * kSums* kTurns, "vpdpbusd zmm"},
    {bf16_dot, int64_t{2} * 32 * kSums* kTurns, "vdpbf16ps zmm"},
};

}  // namespace ponder::cpu
