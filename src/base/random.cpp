#include "base/random.hpp"

#include <cmath>

#include "base/error.hpp"

namespace ponder {
namespace {

// Natural logarithm of a positive normal double, to about one unit in the last place. With x = m 2^e and
// m in [sqrt(1/2), sqrt(2)): ln x = e ln 2 + 2 artanh((m - 1) / (m + 1)), the artanh by its power series.
double portable_log(double x) {
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // exact, m in [1/2, 1)
  if (m < 0.70710678118654752440) {
    m *= 2.0;
    --exponent;
  }
  const double z = (m - 1.0) / (m + 1.0);
  const double z2 = z * z;
  double series = 0.0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * z2;
  return exponent * 0.69314718055994530942 + 2.0 * (z + z * series);
}

}  // namespace

std::uint64_t Random::below(std::uint64_t bound) {
  if (bound == 0) fail(ErrorKind::internal, "random number below 0 asked for");
  // 2^64 mod bound: the first so many values would appear once too often.
  const std::uint64_t unfair = (0 - bound) % bound;
  std::uint64_t value = next_u64();
  while (value < unfair) value = next_u64();
  return value % bound;
}

double Random::normal() {
  if (spare_normal_) {
    const double value = *spare_normal_;
    spare_normal_.reset();
    return value;
  }
  for (;;) {
    const double u = 2.0 * uniform() - 1.0;
    const double v = 2.0 * uniform() - 1.0;
    const double s = u * u + v * v;
    if (s >= 1.0 || s == 0.0) continue;
    const double scale = std::sqrt(-2.0 * portable_log(s) / s);
    spare_normal_ = v * scale;
    return u * scale;
  }
}

}  // namespace ponder
