// Operations on single rows.

// f(i, vector operation) for every vector of a row of n floats: f(i, kLanes), last with what is left.
template <class F>
PONDER_INLINE void for_vectors(int64_t n, F f) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, kLanes);
  if (i < n) f(i, static_cast<int>(n - i));
}
PONDER_INLINE Vec get(const float* p, int n) {
  return n == kLanes ? load(p) : load_first(p, n);
}
PONDER_INLINE void set(float* p, int n, Vec v) {
  if (n == kLanes) return store(p, v);
  store_first(p, n, v);
}

void round_bf16_row(const float* x, int64_t n, float* out) {
  for_vectors(n, [=](int64_t i, int k) { set(out + i, k, round_bf16(get(x + i, k))); });
}

void rms_norm(const float* x, int n, const float* weight, float eps, float* y) {
  const float mean = sum_squares(x, n) / static_cast<float>(n);
  const Vec factor = splat(1.0F / __builtin_sqrtf(mean + eps));
  for_vectors(n, [=](int64_t i, int k) { set(y + i, k, get(x + i, k) * factor * get(weight + i, k)); });
}

void gated_rms_norm(const float* x, const float* z, int n, const float* weight, float eps, float* y) {
  const float mean = sum_squares(x, n) / static_cast<float>(n);
  const Vec factor = splat(1.0F / __builtin_sqrtf(mean + eps));
  for_vectors(n, [=](int64_t i, int k) {
    set(y + i, k, get(x + i, k) * factor * get(weight + i, k) * silu(get(z + i, k)));
  });
}

void l2_norm(const float* x, int n, float eps, float factor, float* y) {
  const Vec by = splat(factor / __builtin_sqrtf(sum_squares(x, n) + eps));
  for_vectors(n, [=](int64_t i, int k) { set(y + i, k, get(x + i, k) * by); });
}

void silu_mul(float* gate, const float* up, int64_t n) {
  for_vectors(n, [=](int64_t i, int k) { set(gate + i, k, silu(get(gate + i, k)) * get(up + i, k)); });
}

void sigmoid_mul(float* x, const float* gate, int64_t n) {
  for_vectors(n, [=](int64_t i, int k) { set(x + i, k, get(x + i, k) * sigmoid(get(gate + i, k))); });
}

void rotate(float* x, int half, const float* cos, const float* sin) {
  for_vectors(half, [=](int64_t i, int k) {
    const Vec a = get(x + i, k), b = get(x + half + i, k);
    const Vec c = get(cos + i, k), s = get(sin + i, k);
    set(x + i, k, a * c - b * s);
    set(x + half + i, k, b * c + a * s);
  });
}

void scale_row(const float* x, float factor, int64_t n, float* y) {
  const Vec by = splat(factor);
  for_vectors(n, [=](int64_t i, int k) { set(y + i, k, get(x + i, k) * by); });
}

void combine(float a, const float* x, float b, const float* y, int64_t n, float* out) {
  const Vec va = splat(a), vb = splat(b);
  for_vectors(n, [=](int64_t i, int k) { set(out + i, k, fma(vb, get(y + i, k), va * get(x + i, k))); });
}

float softmax(float* s, int lo, int hi, float* max_io, float* sum_io) {
  const Vec none = splat(-__builtin_inff());
  const int from = lo / kLanes * kLanes;
  Vec top = none;
  for (int i = from; i < hi; i += kLanes) top = max(keep_range(load(s + i), lo - i, hi - i, none), top);
  const float before = *max_io, block = max_lanes(top);
  const float now = block > before ? block : before;
  Vec total = splat(0.0F);
  for (int i = from; i < hi; i += kLanes) {
    // Excluded lanes become exactly 0, also where `now` is not finite.
    const Vec p = keep_range(exp(load(s + i) - splat(now)), lo - i, hi - i, splat(0.0F));
    total = total + p;
    store(s + i, p);
  }
  float faded[kLanes];
  store(faded, exp(splat(before - now)));
  *max_io = now;
  *sum_io = *sum_io * faded[0] + sum_lanes(total);
  return faded[0];
}

// Taps > 0: a kernel of so many, known to the compiler.
template <int Taps>
void conv_silu_of(const ConvBlock& b) {
  constexpr int most = Taps > 0 ? Taps : kMostConvTaps;
  const int taps = Taps > 0 ? Taps : b.kernel, past = taps - 1;
  for (int t = 0; t < b.rows; ++t) {
    const float* in[most];
    for (int j = 0; j < taps; ++j) {
      const int at = t + j - past;  // row of x; negative ones are the state's
      in[j] = at < 0 ? b.state + (at + past) * b.state_stride : b.x + at * b.x_stride;
    }
    float* y = b.y + t * b.y_stride;
    const int64_t next_row = b.x_stride * static_cast<int64_t>(sizeof(float));
    for_vectors(b.channels, [&](int64_t c, int k) {
      prefetch(in[past] + c, next_row);
      Vec sum = splat(0.0F);
      for (int j = 0; j < taps; ++j) {
        sum = fma(get(b.weight + j * b.weight_stride + c, k), get(in[j] + c, k), sum);
      }
      set(y + c, k, silu(sum));
    });
  }
}

void conv_silu(const ConvBlock& b) {
  if (b.kernel == 4) return conv_silu_of<4>(b);
  conv_silu_of<0>(b);
}

void expand_q8(const Q8Tile& tile) {
  const int8_t* codes = tile.codes;
  float* out = tile.out;
  for (int r = 0; r < tile.rows; ++r, codes += tile.code_stride, out += tile.stride) {
    const Vec by_row = splat(tile.row_scale != nullptr ? tile.row_scale[r] : 0.0F);
    for_vectors(tile.cols, [&](int64_t c, int k) {
      const Vec scale = tile.row_scale != nullptr ? by_row : get(tile.column_scale + c, k);
      if (k == kLanes) return store(out + c, load_i8(codes + c) * scale);
      int8_t last[kLanes] = {};
      for (int i = 0; i < k; ++i) last[i] = codes[c + i];
      set(out + c, k, load_i8(last) * scale);
    });
  }
}
