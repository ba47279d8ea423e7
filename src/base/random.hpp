// A small seeded generator for random models, sampling and tests: the same numbers on every platform.
//
// SplitMix64 (Steele, Lea, Flood 2014): a counter in steps of the golden ratio, mixed by a 64-bit finaliser.
// Being a counter it can skip ahead at once, so parts of a large tensor may be filled in any order. Not for
// secrets.
#pragma once

#include <cstdint>
#include <optional>

namespace ponder {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next_u64() {
    state_ += kStep;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }

  // As if next_u64() had been called `count` times; drops a pending second half of normal().
  void skip(std::uint64_t count) {
    state_ += kStep * count;
    spare_normal_.reset();
  }

  // In [0, 1): the top 53 bits, so every value is a multiple of 2^-53.
  double uniform() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }

  // Whole number in [0, bound), without bias; `bound` must not be 0.
  std::uint64_t below(std::uint64_t bound);

  // Standard normal, by the polar method. Its logarithm is computed here from +, * and / alone, because the
  // C library's differs in the last bit from platform to platform.
  double normal();

 private:
  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u;

  std::uint64_t state_;
  std::optional<double> spare_normal_;  // the polar method yields two at a time
};

}  // namespace ponder
