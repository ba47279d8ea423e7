// The baseline of the architecture, whatever the compiler makes of vectors of 16 bytes there.
#include <string.h>

#include "cpu/peak_kernels.hpp"

namespace ponder::cpu {
namespace {

typedef float Floats __attribute__((vector_size(16)));
typedef int32_t Ints __attribute__((vector_size(16)));
typedef uint64_t Words __attribute__((vector_size(16)));

constexpr int kSums = 8;

// An empty instruction that seems to change its operand, in whatever register file vectors live.
#if defined(__x86_64__)
#define PONDER_BASE_CHANGED(v) PONDER_PEAK_CHANGED(v, "x")
#elif defined(__aarch64__)
#define PONDER_BASE_CHANGED(v) PONDER_PEAK_CHANGED(v, "w")
#else
#define PONDER_BASE_CHANGED(v) PONDER_PEAK_CHANGED(v, "m")
#endif

uint64_t read(const void* data, size_t bytes) {
  const char* p = static_cast<const char*>(data);
  Words sums[4] = {};
  for (const char* end = p + bytes; p < end; p += 64) {
    PONDER_PEAK_UNROLL
    for (int i = 0; i < 4; ++i) {
      Words word;
      memcpy(&word, p + 16 * i, sizeof(word));
      sums[i] ^= word;
    }
  }
  const Words all = sums[0] ^ sums[1] ^ sums[2] ^ sums[3];
  return all[0] ^ all[1];
}

void f32(int64_t rounds, float* sink) {
  Floats sums[kSums] = {};
  PONDER_PEAK_UNROLL
  for (Floats& sum : sums) PONDER_BASE_CHANGED(sum);
  Floats a = {0.5F, 0.5F, 0.5F, 0.5F};
  const Floats b = {0.25F, 0.25F, 0.25F, 0.25F};
  for (int64_t r = 0; r < rounds; ++r) {
    PONDER_PEAK_UNROLL
    for (Floats& sum : sums) {
      PONDER_BASE_CHANGED(a);
      sum += a * b;
    }
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] += sums[i];
  memcpy(sink, sums, sizeof(Floats));
}

#if defined(__SSE2__)
typedef short Shorts __attribute__((vector_size(16)));

// Pairs of 16-bit products are the widest integer multiply-add without SSSE3.
void int8(int64_t rounds, float* sink) {
  Ints sums[kSums] = {};
  PONDER_PEAK_UNROLL
  for (Ints& sum : sums) PONDER_BASE_CHANGED(sum);
  Shorts a = {3, 3, 3, 3, 3, 3, 3, 3};
  const Shorts b = {-5, -5, -5, -5, -5, -5, -5, -5};
  for (int64_t r = 0; r < rounds; ++r) {
    PONDER_PEAK_UNROLL
    for (Ints& sum : sums) {
      PONDER_BASE_CHANGED(a);
      sum += (Ints)__builtin_ia32_pmaddwd128(a, b);
    }
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] += sums[i];
  for (int i = 0; i < 4; ++i) sink[i] = static_cast<float>(sums[0][i]);
}
constexpr PeakLoop kInt8 = {int8, int64_t{2} * 8 * kSums, "pmaddwd, paddd xmm"};
#else
void int8(int64_t rounds, float* sink) {
  Ints sums[kSums] = {};
  PONDER_PEAK_UNROLL
  for (Ints& sum : sums) PONDER_BASE_CHANGED(sum);
  Ints a = {3, 3, 3, 3};
  const Ints b = {-5, -5, -5, -5};
  for (int64_t r = 0; r < rounds; ++r) {
    PONDER_PEAK_UNROLL
    for (Ints& sum : sums) {
      PONDER_BASE_CHANGED(a);
      sum += a * b;
    }
  }
  PONDER_PEAK_UNROLL
  for (int i = 1; i < kSums; ++i) sums[0] += sums[i];
  for (int i = 0; i < 4; ++i) sink[i] = static_cast<float>(sums[0][i]);
}
constexpr PeakLoop kInt8 = {int8, int64_t{2} * 4 * kSums, "32-bit multiply, add"};
#endif

}  // namespace

const PeakKernels kScalarPeaks = {
    read,
    {f32, int64_t{2} * 4 * kSums, "multiply, add in 128 bits"},
    kInt8,
    {nullptr, 0, ""},
    {nullptr, 0, ""},
};

}  // namespace ponder::cpu
