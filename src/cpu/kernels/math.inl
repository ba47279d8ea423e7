// exp and what is made of it, to about one unit in the last place.

// e^x = 2^n e^r with n = round(x / ln 2): a polynomial for (e^r - 1 - r) / r^2 on |r| <= ln(2) / 2, fitted to
// the least relative error (0.05 units in the last place), then 2^n in two factors so that neither end of the
// range overflows on the way. Below 2^-126 the result is 0; NaN stays NaN.
PONDER_INLINE Vec exp(Vec x) {
  constexpr float magic = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer
  const Vec in = min(splat(89.0F), max(splat(-88.0F), x));
  const Vec n = (in * splat(1.44269504F) + splat(magic)) - splat(magic);
  const Vec r = fma(n, splat(2.12194440e-4F), fma(n, splat(-0.693359375F), in));  // ln 2 in two parts
  Vec p = splat(1.3814598788e-03F);
  p = fma(p, r, splat(8.3687165752e-03F));
  p = fma(p, r, splat(4.1668388993e-02F));
  p = fma(p, r, splat(1.6666521132e-01F));
  p = fma(p, r, splat(4.9999994040e-01F));
  p = fma(p, r * r, r) + splat(1.0F);
  const Vec half = (n * splat(0.5F) + splat(magic)) - splat(magic);
  return if_less(x, splat(-87.3365F), splat(0.0F), p * pow2(half) * pow2(n - half));
}

PONDER_INLINE Vec sigmoid(Vec x) {
  return splat(1.0F) / (splat(1.0F) + exp(splat(0.0F) - x));
}
PONDER_INLINE Vec silu(Vec x) {
  return x / (splat(1.0F) + exp(splat(0.0F) - x));
}

// x.x in a fixed order: four interleaved accumulators, then their lanes.
PONDER_INLINE float sum_squares(const float* x, int n) {
  Vec acc[4] = {splat(0.0F), splat(0.0F), splat(0.0F), splat(0.0F)};
  int i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    for (int j = 0; j < 4; ++j) {
      const Vec v = load(x + i + j * kLanes);
      acc[j] = fma(v, v, acc[j]);
    }
  }
  for (int j = 0; i < n; ++j, i += kLanes) {
    const Vec v = n - i < kLanes ? load_first(x + i, n - i) : load(x + i);
    acc[j] = fma(v, v, acc[j]);
  }
  return sum_lanes((acc[0] + acc[1]) + (acc[2] + acc[3]));
}
