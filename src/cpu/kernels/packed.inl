// Products with quantised weights in blocks of 16 rows (ops/packed_layout.hpp). Lanes are weight rows: no sum
// runs across them. Two ways:
//   packed_dot    inputs rounded to int8 in groups of 32: sums of a group are exact integers, the groups are
//                 added up in order, one fused multiply-add each, so a row's bits do not depend on its tile
//   packed_float  inputs as they are: codes become floats, one chain of multiply-adds a group
//
// Signed inputs meet unsigned codes, as the dot product instructions want it: what the codes' zero (8 or 128)
// adds is taken out with the group's sum of inputs, where the integer sum starts.

constexpr int kBlockVectors = kPackedRows / kLanes;  // vectors that hold one code step of a block
constexpr int kSteps = kPackedGroup / 4;             // dot product steps of a group: four inputs each

// Eight steps of one group for the rows of one vector of a block.
struct CodeSteps {
  Codes4 step[kSteps];
};

struct Q8Packed {
  static constexpr int group_bytes = kPackedGroup * kPackedRows;
  static constexpr bool row_scales = true;
  static constexpr float zero = 128.0F;

  PONDER_INLINE static void read(const uint8_t* group, int vector, CodeSteps& out) {
    PONDER_UNROLL for (int c = 0; c < kSteps; ++c) {
      out.step[c] = load_codes(group + c * 4 * kPackedRows + vector * 4 * kLanes);
    }
  }
  PONDER_INLINE static Sums dot(Sums acc, Codes4 w, const int8_t* x) { return dot_bytes(acc, w, x); }
  // From -8 * sum to -128 * sum.
  PONDER_INLINE static int32_t start(int32_t correction) { return correction * 16; }
};

struct Q4Packed {
  static constexpr int group_bytes = kPackedGroup * kPackedRows / 2;
  static constexpr bool row_scales = false;
  static constexpr float zero = 8.0F;

  PONDER_INLINE static void read(const uint8_t* group, int vector, CodeSteps& out) {
    PONDER_UNROLL for (int c = 0; c < kSteps / 2; ++c) {
      const Codes4 both = load_codes(group + c * 4 * kPackedRows + vector * 4 * kLanes);
      out.step[c] = low_nibbles(both);
      out.step[c + kSteps / 2] = high_nibbles(both);
    }
  }
  PONDER_INLINE static Sums dot(Sums acc, Codes4 w, const int8_t* x) { return dot_nibbles(acc, w, x); }
  PONDER_INLINE static int32_t start(int32_t correction) { return correction; }
};

// Scales of a block, group by group. prepare() is called before the first of every kScaleGroups groups. They
// are a short stream of their own, which is asked for a block ahead.
constexpr int kScaleGroups = 16;

struct NoScales {
  NoScales(const uint8_t*, int64_t) {}
  PONDER_INLINE void prepare(int64_t, int, int) {}
  PONDER_INLINE void read_ahead(int64_t, int64_t) const {}
  PONDER_INLINE Vec at(int64_t, int) const { return splat(1.0F); }
};

struct HalfScales {
  const uint16_t* scales;
  HalfScales(const uint8_t* block, int64_t groups)
      : scales(reinterpret_cast<const uint16_t*>(block + groups * Q4Packed::group_bytes)) {}
  PONDER_INLINE void prepare(int64_t, int, int) {}
  PONDER_INLINE void read_ahead(int64_t group, int64_t bytes) const {
    prefetch(scales + group * kPackedRows, bytes);
  }
  PONDER_INLINE Vec at(int64_t group, int vector) const {
    return load_f16(scales + group * kPackedRows + vector * kLanes);
  }
};

// Rung c + 1 is rung c times 2^step: products in this order are part of the encoding. Looked up for some
// groups at a time, apart from the sums, which want all registers.
struct LadderScales {
  static constexpr int rungs = 32;
  const uint8_t* codes;
  int64_t groups;
  alignas(64) float ladder[rungs * kPackedRows];
  alignas(64) float scales[kScaleGroups * kPackedRows];
  LadderScales(const uint8_t* block, int64_t n) : codes(block + n * Q4Packed::group_bytes), groups(n) {
    const auto* first = reinterpret_cast<const float*>(codes + groups * kPackedRows);
    for (int v = 0; v < kBlockVectors; ++v) {
      Vec rung = load(first + v * kLanes);
      const Vec factor = load(first + kPackedRows + v * kLanes);
      for (int c = 0; c < rungs; ++c, rung = rung * factor)
        store(ladder + c * kPackedRows + v * kLanes, rung);
    }
  }
  __attribute__((noinline)) void prepare(int64_t group, int vector, int vectors) {
    const int64_t left = groups - group;
    const int64_t count = left < kScaleGroups ? left : kScaleGroups;
    for (int64_t g = 0; g < count; ++g) {
      for (int v = vector; v < vector + vectors; ++v) {
        const int64_t at = g * kPackedRows + v * kLanes;
        store(scales + at, gather_rungs(ladder + v * kLanes, codes + group * kPackedRows + at));
      }
    }
  }
  PONDER_INLINE void read_ahead(int64_t group, int64_t bytes) const {
    prefetch(codes + group * kPackedRows, bytes);
  }
  PONDER_INLINE Vec at(int64_t group, int vector) const {
    return load(scales + group % kScaleGroups * kPackedRows + vector * kLanes);
  }
};

// y[r][o ...] of the rows of one vector: rows past the last are not written.
PONDER_INLINE void put_lanes(const PackedProduct& p, int64_t o, int r, Vec sum) {
  const int64_t left = p.w_rows - o;
  if (left <= 0) return;
  float* y = p.y + r * p.y_stride + o;
  if (left >= kLanes) {
    if (p.bias != nullptr) sum = sum + load(p.bias + o);
    if (p.accumulate) sum = load(y) + sum;
    store(y, sum);
    return;
  }
  const auto n = static_cast<int>(left);
  if (p.bias != nullptr) sum = sum + load_first(p.bias + o, n);
  if (p.accumulate) sum = load_first(y, n) + sum;
  store_first(y, n, sum);
}

PONDER_INLINE void finish_lanes(const PackedProduct& p, const float* row_scales, int64_t o, int r, Vec sum) {
  put_lanes(p, o, r, row_scales == nullptr ? sum : sum * load(row_scales));
}

// Row scales of q8 stand behind the codes.
template <class Packed>
PONDER_INLINE const float* scales_of_rows(const uint8_t* block, int64_t groups, int vector) {
  if constexpr (!Packed::row_scales) return nullptr;
  return reinterpret_cast<const float*>(block + groups * Packed::group_bytes) + vector * kLanes;
}

// ---- int8 inputs
// ---------------------------------------------------------------------------------------------

// A tile of int8 inputs: for each group R rows of 32 codes, R scales, R corrections (-8 times the sum of
// codes).
constexpr int kInputBytes = kPackedGroup + 8;

template <class Packed, class Scales, int V, int R>
PONDER_INLINE void dot_block(const PackedProduct& p, const uint8_t* block, int64_t o, const int8_t* x,
                             int64_t x_group, int rows, int vector, int r) {
  Scales scales(block, p.groups);
  Vec acc[V][R];
  PONDER_UNROLL for (int v = 0; v < V; ++v) {
    PONDER_UNROLL16 for (int i = 0; i < R; ++i) acc[v][i] = splat(0.0F);
  }
  const uint8_t* w = block;
  for (int64_t g = 0; g < p.groups; ++g, w += Packed::group_bytes, x += x_group) {
    if (g % kScaleGroups == 0) scales.prepare(g, vector, V);
    prefetch(w, p.prefetch);
    prefetch(w, p.prefetch + 64);
    prefetch(w, p.prefetch + 128);
    prefetch(w, p.prefetch + 192);
    scales.read_ahead(g, p.block_bytes);
    const auto* factors = reinterpret_cast<const float*>(x + rows * kPackedGroup) + r;
    const auto* corrections = reinterpret_cast<const int32_t*>(x + rows * (kPackedGroup + 4)) + r;
    const int8_t* codes = as_base(x + r * kPackedGroup);
    PONDER_UNROLL for (int v = 0; v < V; ++v) {
      CodeSteps steps;
      Packed::read(w, vector + v, steps);
      const Vec scale = scales.at(g, vector + v);
      // Rows side by side: a chain of sums alone would wait for each of them. Few rows get two chains each.
      constexpr int side = R < kPackedSide ? R : kPackedSide;
      constexpr bool two = R <= kTwoChains;
      PONDER_UNROLL16 for (int first = 0; first < R; first += side) {
        Sums sum[side], other[side];
        PONDER_UNROLL for (int j = 0; j < side; ++j) {
          if (first + j >= R) continue;
          sum[j] = start_sums(Packed::start(corrections[first + j]));
          if (two) other[j] = start_sums(0);
        }
        PONDER_UNROLL for (int c = 0; c < kSteps; ++c) {
          PONDER_UNROLL for (int j = 0; j < side; ++j) {
            if (first + j >= R) continue;
            Sums& chain = two && c >= kSteps / 2 ? other[j] : sum[j];
            chain = Packed::dot(chain, steps.step[c], codes + (first + j) * kPackedGroup + c * 4);
          }
        }
        PONDER_UNROLL for (int j = 0; j < side; ++j) {
          if (first + j >= R) continue;
          if (two) sum[j] = add_sums(sum[j], other[j]);
          const Vec factor = splat(factors[first + j]);
          Vec& to = acc[v][first + j];
          to = fma(to_floats(sum[j]), Packed::row_scales ? factor : factor * scale, to);
        }
      }
    }
  }
  PONDER_UNROLL for (int v = 0; v < V; ++v) {
    const float* row_scales = scales_of_rows<Packed>(block, p.groups, vector + v);
    PONDER_UNROLL16 for (int i = 0; i < R; ++i) {
      finish_lanes(p, row_scales, o + (vector + v) * kLanes, r + i, acc[v][i]);
    }
  }
}

template <class Packed, class Scales, int R = 1>
void dot_rows_packed(const PackedProduct& p, const uint8_t* block, int64_t o, int rows, int r, int count) {
  if constexpr (R < kPackedTile) {
    if (count > R) return dot_rows_packed<Packed, Scales, R + 1>(p, block, o, rows, r, count);
  }
  const auto* x = static_cast<const int8_t*>(p.x);
  const int64_t x_group = int64_t{rows} * kInputBytes;
  constexpr int together = R * kBlockVectors <= kPackedTile ? kBlockVectors : 1;
  for (int v = 0; v < kBlockVectors; v += together) {
    dot_block<Packed, Scales, together, R>(p, block, o, x, x_group, rows, v, r);
  }
}

template <class Packed, class Scales>
void packed_dot(const PackedProduct& p) {
  const auto* w = static_cast<const uint8_t*>(p.w);
  for (int64_t o = 0; o < p.w_rows; o += kPackedRows, w += p.block_bytes) {
    for (int r = 0; r < p.x_rows; r += kPackedTile) {
      const int count = p.x_rows - r < kPackedTile ? p.x_rows - r : kPackedTile;
      dot_rows_packed<Packed, Scales>(p, w, o, p.x_rows, r, count);
    }
  }
}

// One row's groups [first, end) into a tile of `rows` rows, as its row r. A group with a value that is not
// finite gets a NaN for a scale; one of values so small that 127 / size overflows counts as zeros.
void quantize_input(const float* x, int64_t n, int64_t first, int64_t end, int rows, int r, int8_t* tile) {
  constexpr float levels = 127.0F;
  constexpr int vectors = kPackedGroup / kLanes;
  for (int64_t g = first; g < end; ++g) {
    int8_t* const out = tile + g * rows * kInputBytes;
    const float* from = x + g * kPackedGroup;
    const int64_t left = n - g * kPackedGroup;
    Vec value[vectors], most = splat(0.0F), odd = splat(0.0F);
    PONDER_UNROLL for (int v = 0; v < vectors; ++v) {
      const int64_t here = left - v * kLanes;
      value[v] = here >= kLanes ? load(from + v * kLanes)
                 : here > 0     ? load_first(from + v * kLanes, static_cast<int>(here))
                                : splat(0.0F);
      most = max(most, max(value[v], splat(0.0F) - value[v]));
      odd = odd + (value[v] - value[v]);
    }
    const float largest = max_lanes(most);
    const bool counts = largest >= kLeastInput;
    const float inverse = counts ? levels / largest : 0.0F;
    const float strange = sum_lanes(odd);  // NaN, or zero
    uint32_t sum = 0;                      // wraps: NaN and infinity give any code
    PONDER_UNROLL for (int v = 0; v < vectors; ++v) {
      sum +=
          static_cast<uint32_t>(store_int8(out + r * kPackedGroup + v * kLanes, value[v] * splat(inverse)));
    }
    const float factor = (counts ? largest * (1.0F / levels) : 0.0F) + strange;
    const int32_t correction = strange == 0.0F ? -8 * static_cast<int32_t>(sum) : 0;
    __builtin_memcpy(out + rows * kPackedGroup + r * 4, &factor, 4);
    __builtin_memcpy(out + rows * (kPackedGroup + 4) + r * 4, &correction, 4);
  }
}

// ---- inputs as they are
// --------------------------------------------------------------------------------------

constexpr int kFloatTile = 4;

template <class Packed, class Scales, int R>
void float_block(const PackedProduct& p, const uint8_t* block, int64_t o, int r) {
  Scales scales(block, p.groups);
  const auto* x = static_cast<const float*>(p.x) + r * p.x_stride;
  for (int v = 0; v < kBlockVectors; ++v) {
    Vec acc[R];
    PONDER_UNROLL for (int i = 0; i < R; ++i) acc[i] = splat(0.0F);
    for (int64_t g = 0; g < p.groups; ++g) {
      if (g % kScaleGroups == 0) scales.prepare(g, v, 1);
      CodeSteps steps;
      Packed::read(block + g * Packed::group_bytes, v, steps);
      Vec sum[R];
      PONDER_UNROLL for (int i = 0; i < R; ++i) sum[i] = splat(0.0F);
      for (int c = 0; c < kSteps; ++c) {
        PONDER_UNROLL for (int b = 0; b < 4; ++b) {
          const Vec value = code_floats(steps.step[c], b) - splat(Packed::zero);
          PONDER_UNROLL for (int i = 0; i < R; ++i) {
            sum[i] = fma(value, splat(x[i * p.x_stride + g * kPackedGroup + c * 4 + b]), sum[i]);
          }
        }
      }
      const Vec scale = scales.at(g, v);
      PONDER_UNROLL for (int i = 0; i < R; ++i) {
        acc[i] = Packed::row_scales ? acc[i] + sum[i] : fma(sum[i], scale, acc[i]);
      }
    }
    const float* row_scales = scales_of_rows<Packed>(block, p.groups, v);
    PONDER_UNROLL for (int i = 0; i < R; ++i) finish_lanes(p, row_scales, o + v * kLanes, r + i, acc[i]);
  }
}

template <class Packed, class Scales, int R = 1>
void float_rows(const PackedProduct& p, const uint8_t* block, int64_t o, int r, int count) {
  if constexpr (R < kFloatTile) {
    if (count > R) return float_rows<Packed, Scales, R + 1>(p, block, o, r, count);
  }
  float_block<Packed, Scales, R>(p, block, o, r);
}

template <class Packed, class Scales>
void packed_float(const PackedProduct& p) {
  const auto* w = static_cast<const uint8_t*>(p.w);
  for (int64_t o = 0; o < p.w_rows; o += kPackedRows, w += p.block_bytes) {
    for (int r = 0; r < p.x_rows; r += kFloatTile) {
      const int count = p.x_rows - r < kFloatTile ? p.x_rows - r : kFloatTile;
      float_rows<Packed, Scales>(p, w, o, r, count);
    }
  }
}
