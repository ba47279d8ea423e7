// What a key/value cache of type q8 keeps of a vector. A position's codes depend on that position alone, so
// appending, forking and writing over rows stay exact.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/state.hpp"

namespace ponder::ops {

// The scale of one group: max |x| / 127. A group with an infinity or a NaN is NaN as a whole.
inline float q8_scale(const float* x, int n) {
  // Magnitudes are in the order of their bits, infinity and NaN at the end; whole numbers run in lanes.
  std::int32_t top = 0;
  for (int i = 0; i < n; ++i) top = std::max(top, std::bit_cast<std::int32_t>(x[i]) & 0x7FFFFFFF);
  const auto magnitude = std::bit_cast<float>(top);
  return std::isfinite(magnitude) ? magnitude / 127.0F : std::numeric_limits<float>::quiet_NaN();
}

// The nearest whole number to x / scale, ties to even.
inline std::int8_t q8_code(float x, float scale) {
  if (!(scale > 0.0F)) return 0;
  constexpr float whole = 0x1.8p23F;  // sums with it have no place for a fraction
  return static_cast<std::int8_t>(std::clamp(x / scale, -127.0F, 127.0F) + whole - whole);
}

// The same for a group.
inline void q8_codes(const float* x, int n, float scale, std::int8_t* codes) {
  for (int i = 0; i < n; ++i) codes[i] = q8_code(x[i], scale);
}

}  // namespace ponder::ops
