// The parts of the delta rule (src/cpu/delta.cpp) that are no plain products.

// log(1 + t) for 0 <= t <= 1 as 2 artanh(t / (2 + t)): its series in s^2 <= 1/9 up to s^16 leaves 1e-8.
PONDER_INLINE Vec log1p_unit(Vec t) {
  const Vec s = t / (splat(2.0F) + t);
  const Vec square = s * s;
  Vec p = splat(2.0F / 17.0F);
  p = fma(p, square, splat(2.0F / 15.0F));
  p = fma(p, square, splat(2.0F / 13.0F));
  p = fma(p, square, splat(2.0F / 11.0F));
  p = fma(p, square, splat(2.0F / 9.0F));
  p = fma(p, square, splat(2.0F / 7.0F));
  p = fma(p, square, splat(2.0F / 5.0F));
  p = fma(p, square, splat(2.0F / 3.0F));
  return fma(p * square, s, splat(2.0F) * s);
}

void delta_gates(float* a, float* b, float rate, float bias, int n) {
  const Vec zero = splat(0.0F);
  for_vectors(n, [=](int64_t i, int k) {
    const Vec x = get(a + i, k) + splat(bias);
    const Vec softplus = max(zero, x) + log1p_unit(exp(min(x, zero - x)));
    set(a + i, k, exp(splat(-rate) * softplus));
    set(b + i, k, sigmoid(get(b + i, k)));
  });
}

void delta_factors(const DeltaFactors& f) {
  for (int i = 0; i < f.count; ++i) {
    const int t = f.slot + i;
    *f.carry = t == 0 ? f.e[i] : *f.carry * f.e[i];
    f.faded[i] = *f.carry;
    f.minus_beta_faded[i] = -f.beta[i] * *f.carry;
    const Vec e = splat(f.e[i]), minus_beta = splat(-f.beta[i]), one = splat(1.0F);
    const float* keys = f.dots + int64_t{i} * f.chunk;
    const float* queries = f.dots + int64_t{f.count + i} * f.chunk;
    float* u = f.factors + int64_t{i} * f.chunk;
    float* o = f.factors + int64_t{f.count + i} * f.chunk;
    for (int s = 0; s <= t; s += kLanes) {  // the row in slot t enters unfaded
      const Vec decay = keep_range(load(f.decay + s) * e, 0, t - s, one);
      store(f.decay + s, decay);
      store(u + s, minus_beta * decay * load(keys + s));
      store(o + s, decay * load(queries + s));
    }
  }
}

// Rows of one tile and the vectors of their columns: u rows before the tile stream by, those of the tile
// itself (Solve: being computed) follow in a triangle. For every row s ascends.
template <int R, int N, bool Solve>
void lower_tile(const LowerProduct& g, int r, int n, int last) {
  Vec acc[R][N];
  PONDER_UNROLL for (int i = 0; i < R; ++i) {
    const float* x = g.x + (r + i) * g.x_row + n;
    const float* y = Solve ? g.y + (r + i) * g.y_row + n : nullptr;
    const Vec by_x = splat(g.x_scale[r + i]), by_y = splat(Solve ? g.y_scale[r + i] : 0.0F);
    PONDER_UNROLL for (int j = 0; j < N; ++j) {
      const int k = j == N - 1 ? last : kLanes;
      acc[i][j] = by_x * get(x + j * kLanes, k);
      if constexpr (Solve) acc[i][j] = fma(by_y, get(y + j * kLanes, k), acc[i][j]);
    }
  }
  const int first = g.slot + r;
  const float* factor = g.factor + r * g.factor_row;
  const float* u = g.u + n;
  for (int s = 0; s < first; ++s, u += g.u_row) {
    Vec row[N];
    PONDER_UNROLL for (int j = 0; j < N; ++j) row[j] = get(u + j * kLanes, j == N - 1 ? last : kLanes);
    PONDER_UNROLL for (int i = 0; i < R; ++i) {
      const Vec value = splat(factor[i * g.factor_row + s]);
      PONDER_UNROLL for (int j = 0; j < N; ++j) acc[i][j] = fma(value, row[j], acc[i][j]);
    }
  }
  PONDER_UNROLL for (int s = 0; s < R; ++s, u += g.u_row) {
    Vec row[N];
    PONDER_UNROLL for (int j = 0; j < N; ++j) {
      row[j] = Solve ? acc[s][j] : get(u + j * kLanes, j == N - 1 ? last : kLanes);
    }
    PONDER_UNROLL for (int i = Solve ? s + 1 : s; i < R; ++i) {
      const Vec value = splat(factor[i * g.factor_row + first + s]);
      PONDER_UNROLL for (int j = 0; j < N; ++j) acc[i][j] = fma(value, row[j], acc[i][j]);
    }
  }
  PONDER_UNROLL for (int i = 0; i < R; ++i) {
    float* c = g.c + (r + i) * g.c_row + n;
    PONDER_UNROLL for (int j = 0; j < N; ++j) set(c + j * kLanes, j == N - 1 ? last : kLanes, acc[i][j]);
  }
}

constexpr int kLowerRows = 2 * kGemmVectors;

template <int N, bool Solve, int R = kLowerRows>
PONDER_INLINE void lower_rows(const LowerProduct& g, int r, int n, int last, int count) {
  if constexpr (R > 1) {
    if (count < R) return lower_rows<N, Solve, R - 1>(g, r, n, last, count);
  }
  lower_tile<R, N, Solve>(g, r, n, last);
}

template <bool Solve>
void lower_product_of(const LowerProduct& g) {
  constexpr int N = 2;
  int n = 0;
  for (; n + N * kLanes <= g.cols; n += N * kLanes) {
    for (int r = 0; r < g.count; r += kLowerRows) {
      lower_rows<N, Solve>(g, r, n, kLanes, g.count - r < kLowerRows ? g.count - r : kLowerRows);
    }
  }
  for (; n < g.cols; n += kLanes) {
    const int last = g.cols - n < kLanes ? g.cols - n : kLanes;
    for (int r = 0; r < g.count; r += kLowerRows) {
      lower_rows<1, Solve>(g, r, n, last, g.count - r < kLowerRows ? g.count - r : kLowerRows);
    }
  }
}

void lower_product(const LowerProduct& g) {
  if (g.y != nullptr) return lower_product_of<true>(g);
  lower_product_of<false>(g);
}
