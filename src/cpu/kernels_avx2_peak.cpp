#include <immintrin.h>

#include "cpu/peak_kernels.hpp"

namespace ponder::cpu {
namespace {

constexpr int kSums = 12;  // of sixteen registers
constexpr int kTurns = 4;  // of each sum in a round

uint64_t read(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  __m256i sums[8];
  PONDER_PEAK_UNROLL
  for (__m256i& sum : sums) sum = _mm256_setzero_si256();
  for (const char* end = p + bytes; p < end; p += kPeakReadBlock) {
    PONDER_PEAK_UNROLL
    for (int i = 0; i < 32; ++i) {
      sums[i % 8] =
          _mm256_xor_si256(sums[i % 8], _mm256_load_si256(reinterpret_cast<const __m256i*>(p + 32 * i)));
    }
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < 8; ++i) sums[0] = _mm256_xor_si256(sums[0], sums[i]);
  alignas(32) uint64_t words[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(words), sums[0]);
  return words[0] ^ words[1] ^ words[2] ^ words[3];
}

void f32(int64_t rounds, float* sink) {
  __m256 sums[kSums], a = _mm256_set1_ps(0.5F);
  const __m256 b = _mm256_set1_ps(0.25F);
  PONDER_PEAK_UNROLL
  for (__m256& sum : sums) {
    sum = _mm256_setzero_ps();
    PONDER_PEAK_CHANGED(sum, "x");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    for (int turn = 0; turn < kTurns; ++turn) {
      PONDER_PEAK_CHANGED(a, "x");
      PONDER_PEAK_UNROLL
      for (__m256& sum : sums) sum = _mm256_fmadd_ps(a, b, sum);
    }
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] = _mm256_add_ps(sums[0], sums[i]);
  _mm256_storeu_ps(sink, sums[0]);
}

void store(__m256i (&sums)[kSums], float* sink) {
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] = _mm256_add_epi32(sums[0], sums[i]);
  _mm256_storeu_ps(sink, _mm256_cvtepi32_ps(sums[0]));
}

// Products of bytes to sums of pairs in 16 bits, to sums of pairs in 32, to the sum: three instructions.
void int8(int64_t rounds, float* sink) {
  __m256i sums[kSums], a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(-5), ones = _mm256_set1_epi16(1);
  PONDER_PEAK_UNROLL
  for (__m256i& sum : sums) {
    sum = _mm256_setzero_si256();
    PONDER_PEAK_CHANGED(sum, "x");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    PONDER_PEAK_UNROLL
    for (__m256i& sum : sums) {
      PONDER_PEAK_CHANGED(a, "x");
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(a, b), ones));
    }
  }
  store(sums, sink);
}

__attribute__((target("avxvnni"))) void int8_dot(int64_t rounds, float* sink) {
  __m256i sums[kSums], a = _mm256_set1_epi8(3);
  const __m256i b = _mm256_set1_epi8(-5);
  PONDER_PEAK_UNROLL
  for (__m256i& sum : sums) {
    sum = _mm256_setzero_si256();
    PONDER_PEAK_CHANGED(sum, "x");
  }
  for (int64_t r = 0; r < rounds; ++r) {
    for (int turn = 0; turn < kTurns; ++turn) {
      PONDER_PEAK_CHANGED(a, "x");
      PONDER_PEAK_UNROLL
      for (__m256i& sum : sums) sum = _mm256_dpbusd_avx_epi32(sum, a, b);
    }
  }
  store(sums, sink);
}

}  // namespace

const PeakKernels kAvx2Peaks = {
    read,
    {f32, int64_t{2} * 8 * kSums* kTurns, "vfmadd ymm"},
    {int8, int64_t{2} * 32 * kSums, "vpmaddubsw, vpmaddwd, vpaddd ymm"},
    {int8_dot, int64_t{2} * 32 * kSums* kTurns, "vpdpbusd ymm"},
    {nullptr, 0, ""},
};

}  // namespace ponder::cpu
