// Small matrix products with broadcast rows: lanes run along the columns, every element is one chain of fused
// multiply-adds over i, so its bits depend on its row of A and column of B alone.

constexpr int kGemmRows = 6;
constexpr int kGemmAhead = 16;  // rows of B fetched ahead: they are short, hardware starts anew in each

// Stream: the first tile over a strip of B, which may come from memory.
template <int R, int N, bool Stream>
void gemm_tile(const Gemm& g, int r, int n, int last) {  // `last`: columns in the last vector
  Vec acc[R][N];
  PONDER_UNROLL for (int i = 0; i < R; ++i) {
    const float* init = g.init == nullptr ? nullptr : g.init + (r + i) * g.init_row + n;
    PONDER_UNROLL for (int j = 0; j < N; ++j) {
      acc[i][j] = init == nullptr ? splat(0.0F)
                  : j == N - 1    ? load_first(init + j * kLanes, last)
                                  : load(init + j * kLanes);
    }
    if (g.init != nullptr && g.scale != nullptr) {
      const Vec scale = splat(g.scale[(r + i) * g.scale_step]);
      PONDER_UNROLL for (int j = 0; j < N; ++j) acc[i][j] = acc[i][j] * scale;
    }
  }
  const float* a = g.a + r * g.a_row;
  const float* b = g.b + n;
  constexpr int64_t vector_bytes = kLanes * static_cast<int64_t>(sizeof(float));
  const int64_t row_bytes = g.b_row * static_cast<int64_t>(sizeof(float));
  const void* next = g.next != nullptr ? g.next : b;
  const int64_t next_step = g.next != nullptr ? g.next_step : row_bytes;
  int64_t at = g.next != nullptr ? 0 : kGemmAhead * row_bytes;
  for (int k = 0; k < g.depth; ++k, a += g.a_step, b += g.b_row, at += next_step) {
    Vec row[N];
    if constexpr (Stream) {
      PONDER_UNROLL for (int j = 0; j < N; ++j) prefetch(next, at + j * vector_bytes);
    }
    PONDER_UNROLL for (int j = 0; j < N; ++j) row[j] =
        j == N - 1 && last < kLanes ? load_first(b + j * kLanes, last) : load(b + j * kLanes);
    PONDER_UNROLL for (int i = 0; i < R; ++i) {
      const Vec value = splat(a[i * g.a_row]);
      PONDER_UNROLL for (int j = 0; j < N; ++j) acc[i][j] = fma(value, row[j], acc[i][j]);
    }
  }
  PONDER_UNROLL for (int i = 0; i < R; ++i) {
    float* c = g.c + (r + i) * g.c_row + n;
    PONDER_UNROLL for (int j = 0; j < N - 1; ++j) store(c + j * kLanes, acc[i][j]);
    store_first(c + (N - 1) * kLanes, last, acc[i][N - 1]);
  }
}

template <int N, bool Stream, int R = kGemmRows>
PONDER_INLINE void gemm_rows(const Gemm& g, int r, int n, int last, int count) {
  if constexpr (R > 1) {
    if (count < R) return gemm_rows<N, Stream, R - 1>(g, r, n, last, count);
  }
  gemm_tile<R, N, Stream>(g, r, n, last);
}

template <int N>
void gemm_columns(const Gemm& g, int n, int last) {
  for (int r = 0; r < g.rows;) {
    const int left = g.rows - r;
    const int tiles = (left + kGemmRows - 1) / kGemmRows;
    const int count = (left + tiles - 1) / tiles;
    if (r == 0 && N >= kGemmVectors) {
      gemm_rows<N, (N >= kGemmVectors)>(g, r, n, last, count);
    } else {
      gemm_rows<N, false>(g, r, n, last, count);
    }
    r += count;
  }
}

void gemm(const Gemm& g) {
  int n = 0;
  if (g.rows <= 2) {  // registers for whole rows of B: they come as one stream
    constexpr int wide = 2 * kGemmVectors;
    for (; n + wide * kLanes <= g.cols; n += wide * kLanes) gemm_rows<wide, true, 2>(g, 0, n, kLanes, g.rows);
  }
  for (; n + kGemmVectors * kLanes <= g.cols; n += kGemmVectors * kLanes)
    gemm_columns<kGemmVectors>(g, n, kLanes);
  for (; n + 2 * kLanes <= g.cols; n += 2 * kLanes) gemm_columns<2>(g, n, kLanes);
  for (; n < g.cols; n += kLanes) gemm_columns<1>(g, n, g.cols - n < kLanes ? g.cols - n : kLanes);
}
