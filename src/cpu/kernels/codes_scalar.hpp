// Dot products of bytes in plain C++. The same operations exist in every codes_*.hpp:
//   Codes4         four codes (unsigned bytes) of each lane's weight row
//   Sums           a 32-bit integer a lane
//   dot_bytes      acc + sum of four products of a lane's codes with x[0..3], exact; dot_nibbles: codes <= 15
//   code_floats    byte b of each lane
//   gather_rungs   ladder[(codes[lane] % 32) * 16 + lane]
//   store_int8     rounds to the nearest int8 (ties to even) and returns the codes' sum; sizes are at most
//   127
// kPackedTile is how many input rows share one pass over the weights, kPackedSide how many of them are summed
// side by side, kTwoChains up to how many rows each has two chains of sums.
#pragma once

#include "cpu/kernels/vec_scalar.hpp"

namespace ponder::cpu {
namespace {

constexpr int kPackedTile = 4;
constexpr int kPackedSide = 1;
constexpr int kTwoChains = 0;

struct Codes4 {
  uint8_t b[4 * kLanes];
};
struct Sums {
  Ints v;
};

PONDER_INLINE Codes4 load_codes(const uint8_t* p) {
  Codes4 out;
  __builtin_memcpy(out.b, p, sizeof(out.b));
  return out;
}
PONDER_INLINE Codes4 low_nibbles(Codes4 a) {
  for (uint8_t& b : a.b) b &= 0x0F;
  return a;
}
PONDER_INLINE Codes4 high_nibbles(Codes4 a) {
  for (uint8_t& b : a.b) b >>= 4;
  return a;
}
PONDER_INLINE Sums start_sums(int32_t x) {
  return {Ints{x, x, x, x}};
}
PONDER_INLINE Sums add_sums(Sums a, Sums b) {
  return {a.v + b.v};
}
PONDER_INLINE Sums dot_bytes(Sums acc, Codes4 w, const int8_t* x) {
  for (int i = 0; i < kLanes; ++i) {
    acc.v[i] += w.b[4 * i] * x[0] + w.b[4 * i + 1] * x[1] + w.b[4 * i + 2] * x[2] + w.b[4 * i + 3] * x[3];
  }
  return acc;
}
PONDER_INLINE Sums dot_nibbles(Sums acc, Codes4 w, const int8_t* x) {
  return dot_bytes(acc, w, x);
}
PONDER_INLINE Vec to_floats(Sums a) {
  return {__builtin_convertvector(a.v, Floats)};
}
PONDER_INLINE Vec code_floats(Codes4 w, int b) {
  return to_floats({Ints{w.b[b], w.b[4 + b], w.b[8 + b], w.b[12 + b]}});
}
PONDER_INLINE Vec gather_rungs(const float* ladder, const uint8_t* codes) {
  float lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) lanes[i] = ladder[(codes[i] & 31) * 16 + i];
  return load(lanes);
}
PONDER_INLINE int32_t store_int8(int8_t* out, Vec x) {
  const Vec shifted = x + splat(12582912.0F);  // 1.5 * 2^23: the integer sits in the low bits
  const Words i = bits(shifted.v) - words(0x4B400000U);
  int32_t sum = 0;
  for (int l = 0; l < kLanes; ++l) {
    out[l] = static_cast<int8_t>(i[l]);
    sum += out[l];
  }
  return sum;
}

}  // namespace
}  // namespace ponder::cpu
