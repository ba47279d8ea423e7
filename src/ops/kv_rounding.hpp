// What a key/value cache of type q8 keeps of a vector. A position's codes depend on that position alone, so
// appending, forking and writing over rows stay exact.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "ops/state.hpp"

namespace ponder::ops {

// The scale of one group: max |x| / 127. A group with an infinity or a NaN is NaN as a whole.
inline float q8_scale(const float* x, int n) {
  float top = 0;
  bool finite = true;
  for (int i = 0; i < n; ++i) {
    finite = finite && std::isfinite(x[i]);
    top = std::max(top, std::fabs(x[i]));
  }
  return finite ? top / 127.0F : std::numeric_limits<float>::quiet_NaN();
}

// The nearest whole number to x / scale, ties to even.
inline std::int8_t q8_code(float x, float scale) {
  if (!(scale > 0.0F)) return 0;
  return static_cast<std::int8_t>(std::clamp(std::nearbyint(x / scale), -127.0F, 127.0F));
}

}  // namespace ponder::ops
