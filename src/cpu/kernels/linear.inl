// Products of weight rows and input rows. Each (weight row, input row) pair has one vector accumulator whose
// lanes run along the inputs, so its bits do not depend on the tile it is computed in. Two ways, same bits:
//   linear        few rows: codes are expanded in registers as they stream by
//   linear_panel  many rows: a panel of weights is expanded to floats in scratch, then served to all input
//   rows;
//                 between column blocks the accumulators rest in scratch

constexpr int kDotRows = 4;      // weight rows in a tile
constexpr int kCachedTiles = 3;  // tiles of a panel that fit the first-level cache beside some input rows

PONDER_INLINE void put(const LinearBlock& b, int64_t o, int r, float sum, float factor) {
  float v = sum * factor;
  if (b.scale != nullptr) v *= b.scale[o];
  if (b.bias != nullptr) v += b.bias[o];
  float* y = b.y + r * b.y_stride + o;
  *y = b.accumulate ? *y + v : v;
}

template <class Codes, int R, int C>
void dot_tile(const LinearBlock& b, int64_t o, int r) {
  using Code = typename Codes::Code;
  const Code* w[R];
  const float* x[C];
  Vec acc[R][C];
  PONDER_UNROLL for (int i = 0; i < R; ++i) w[i] = static_cast<const Code*>(b.w) + (o + i) * b.cols;
  PONDER_UNROLL for (int j = 0; j < C; ++j) x[j] = b.x + (r + j) * b.x_stride;
  PONDER_UNROLL for (int i = 0; i < R; ++i) {
    PONDER_UNROLL for (int j = 0; j < C; ++j) acc[i][j] = splat(0.0F);
  }
  const int64_t next_tile = kDotRows * b.cols * static_cast<int64_t>(sizeof(Code));
  int64_t k = 0;
  for (; k + kLanes <= b.cols; k += kLanes) {
    Vec in[C];
    PONDER_UNROLL for (int j = 0; j < C; ++j) in[j] = load(x[j] + k);
    PONDER_UNROLL for (int i = 0; i < R; ++i) {
      prefetch(w[i] + k, next_tile);
      const Vec value = Codes::read(w[i] + k);
      PONDER_UNROLL for (int j = 0; j < C; ++j) acc[i][j] = fma(value, in[j], acc[i][j]);
    }
  }
  if (k < b.cols) {
    const auto left = static_cast<int>(b.cols - k);
    Vec in[C];
    PONDER_UNROLL for (int j = 0; j < C; ++j) in[j] = load_first(x[j] + k, left);
    PONDER_UNROLL for (int i = 0; i < R; ++i) {
      const Vec value = read_first<Codes>(w[i] + k, left);
      PONDER_UNROLL for (int j = 0; j < C; ++j) acc[i][j] = fma(value, in[j], acc[i][j]);
    }
  }
  PONDER_UNROLL for (int i = 0; i < R; ++i) {
    PONDER_UNROLL for (int j = 0; j < C; ++j) put(b, o + i, r + j, sum_lanes(acc[i][j]), Codes::factor);
  }
}

template <class Codes, int C>
void dot_rows(const LinearBlock& b, int r) {
  int64_t o = 0;
  for (; o + kDotRows <= b.w_rows; o += kDotRows) dot_tile<Codes, kDotRows, C>(b, o, r);
  for (; o < b.w_rows; ++o) dot_tile<Codes, 1, C>(b, o, r);
}

// Input rows of the next tile: as equal as tiles of at most kDotInputs can be.
PONDER_INLINE int tile_inputs(int left) {
  const int tiles = (left + kDotInputs - 1) / kDotInputs;
  return (left + tiles - 1) / tiles;
}

template <class Codes, int C = 1>
void dot_rows_of(const LinearBlock& b, int r, int count) {
  if constexpr (C < kDotInputs) {
    if (count > C) return dot_rows_of<Codes, C + 1>(b, r, count);
  }
  dot_rows<Codes, C>(b, r);
}

// Some weight rows and input rows as floats, both [rows][kPanelCols] with zeros behind the last column, and
// accumulators [weight tile][input row][weight row of the tile] of one vector each.
struct Panel {
  const float* w;
  const float* x;
  float* acc;
  int inputs;
  int cols;    // whole vectors
  bool fresh;  // nothing accumulated yet
};

template <int R, int C>
void panel_tile(const Panel& p, int tile, int r) {
  const float* w = p.w + int64_t{tile} * kDotRows * kPanelCols;
  const float* x = p.x + int64_t{r} * kPanelCols;
  float* at = p.acc + (int64_t{tile} * p.inputs + r) * kDotRows * kLanes;
  Vec acc[R][C];
  PONDER_UNROLL for (int j = 0; j < C; ++j) {
    PONDER_UNROLL for (int i = 0; i < R; ++i) {
      acc[i][j] = p.fresh ? splat(0.0F) : load(at + (j * kDotRows + i) * kLanes);
    }
  }
  for (int k = 0; k < p.cols; k += kLanes) {
    Vec in[C];
    PONDER_UNROLL for (int j = 0; j < C; ++j) in[j] = load(x + j * kPanelCols + k);
    PONDER_UNROLL for (int i = 0; i < R; ++i) {
      const Vec value = load(w + i * kPanelCols + k);
      PONDER_UNROLL for (int j = 0; j < C; ++j) acc[i][j] = fma(value, in[j], acc[i][j]);
    }
  }
  PONDER_UNROLL for (int j = 0; j < C; ++j) {
    PONDER_UNROLL for (int i = 0; i < R; ++i) store(at + (j * kDotRows + i) * kLanes, acc[i][j]);
  }
}

// Weight tiles [tile, end) with `count` input rows from r on.
template <int C = 1>
void panel_tiles(const Panel& p, int rows, int tile, int end, int r, int count) {
  if constexpr (C < kDotInputs) {
    if (count > C) return panel_tiles<C + 1>(p, rows, tile, end, r, count);
  }
  for (; tile < end && (tile + 1) * kDotRows <= rows; ++tile) panel_tile<kDotRows, C>(p, tile, r);
  if (tile >= end) return;
  const int left = rows - tile * kDotRows;
  if (left == 1) panel_tile<1, C>(p, tile, r);
  if (left == 2) panel_tile<2, C>(p, tile, r);
  if (left == 3) panel_tile<3, C>(p, tile, r);
}

// A few weight tiles stay in the first-level cache while the input rows pass by them.
void multiply_panel(const Panel& p, int rows) {
  const int tiles = (rows + kDotRows - 1) / kDotRows;
  for (int tile = 0; tile < tiles; tile += kCachedTiles) {
    const int end = tile + kCachedTiles < tiles ? tile + kCachedTiles : tiles;
    for (int r = 0; r < p.inputs;) {
      const int count = tile_inputs(p.inputs - r);
      panel_tiles(p, rows, tile, end, r, count);
      r += count;
    }
  }
}

template <class Codes>
void linear_rows_panel(const LinearBlock& b, int64_t o, int rows) {
  float* const expanded = b.scratch;
  Panel p{expanded, b.x, b.scratch + kPanelRows * kPanelCols, b.x_rows, 0, true};
  for (int64_t k = 0; k < b.cols; k += kPanelCols) {
    const int64_t cols = b.cols - k < kPanelCols ? b.cols - k : kPanelCols;
    for (int i = 0; i < rows; ++i) {
      const auto* codes = static_cast<const typename Codes::Code*>(b.w) + (o + i) * b.cols + k;
      expand<Codes>(codes, cols, expanded + i * kPanelCols);
    }
    p.cols = static_cast<int>((cols + kLanes - 1) / kLanes * kLanes);
    multiply_panel(p, rows);
    p.fresh = false;
    p.x += int64_t{b.x_rows} * kPanelCols;
  }
  for (int r = 0; r < b.x_rows; ++r) {
    for (int i = 0; i < rows; ++i) {
      const int64_t at = (int64_t{i / kDotRows} * b.x_rows + r) * kDotRows + i % kDotRows;
      put(b, o + i, r, sum_lanes(load(p.acc + at * kLanes)), Codes::factor);
    }
  }
}

template <class Codes>
void linear_panel(const LinearBlock& b) {
  for (int64_t o = 0; o < b.w_rows; o += kPanelRows) {
    const int64_t left = b.w_rows - o;
    linear_rows_panel<Codes>(b, o, static_cast<int>(left < kPanelRows ? left : kPanelRows));
  }
}

template <class Codes>
void linear(const LinearBlock& b) {
  for (int r = 0; r < b.x_rows;) {
    const int count = tile_inputs(b.x_rows - r);
    dot_rows_of<Codes>(b, r, count);
    r += count;
  }
}
