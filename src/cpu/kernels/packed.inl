// Products with quantised weights in blocks of 16 rows (ops/packed_layout.hpp). Lanes are weight rows: no sum
// runs across them. Two ways:
//   packed_dot    inputs rounded to int8 in groups: sums of a group are exact integers, the groups are added
//                 up in order, one fused multiply-add each, so a row's bits do not depend on its tile
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
  static constexpr int input_group = input_group_of(0);
  static constexpr int group_bytes = kPackedGroup * kPackedRows;
  static constexpr bool row_scales = true;
  static constexpr int zero = 128;

  PONDER_INLINE static Codes4 read_step(const uint8_t* group, int vector, int c) {
    return load_codes(group + c * 4 * kPackedRows + vector * 4 * kLanes);
  }
  PONDER_INLINE static void read(const uint8_t* group, int vector, CodeSteps& out) {
    PONDER_UNROLL for (int c = 0; c < kSteps; ++c) out.step[c] = read_step(group, vector, c);
  }
};

struct Q4Packed {
  static constexpr int input_group = input_group_of(1);
  static constexpr int group_bytes = kPackedGroup * kPackedRows / 2;
  static constexpr bool row_scales = false;
  static constexpr int zero = 8;

  PONDER_INLINE static void read(const uint8_t* group, int vector, CodeSteps& out) {
    PONDER_UNROLL for (int c = 0; c < kSteps / 2; ++c) {
      const Codes4 both = load_codes(group + c * 4 * kPackedRows + vector * 4 * kLanes);
      out.step[c] = low_nibbles(both);
      out.step[c + kSteps / 2] = high_nibbles(both);
    }
  }
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

// Row scales of q8 stand behind the codes.
template <class Packed>
PONDER_INLINE Vec scales_of_rows(const uint8_t* block, int64_t groups, int vector) {
  if constexpr (!Packed::row_scales) return splat(1.0F);
  return load(reinterpret_cast<const float*>(block + groups * Packed::group_bytes) + vector * kLanes);
}

// ---- int8 inputs
// ---------------------------------------------------------------------------------------------

// A tile of int8 inputs, as quantize_input makes it: for each group of `size` inputs R rows of codes, R
// scales, R corrections (minus the codes' zero times the sum of the row's codes).
struct InputGroup {
  const int8_t* codes;  // of row r; rows lie `size` apart
  const float* factors;
  const int32_t* corrections;

  PONDER_INLINE InputGroup(const int8_t* x, int size, int rows, int r)
      : codes(as_base(x + r * size)),
        factors(reinterpret_cast<const float*>(x + rows * size) + r),
        corrections(reinterpret_cast<const int32_t*>(x + rows * (size + 4)) + r) {}
};

// Rows [r, r + R) of a tile with V vectors of a block whose weights have a scale a group.
template <class Packed, class Scales, int V, int R>
PONDER_INLINE void dot_block(const PackedProduct& p, const uint8_t* block, int64_t o, const int8_t* x,
                             int rows, int vector, int r) {
  Scales scales(block, p.groups);
  Vec acc[V][R];
  PONDER_UNROLL for (int v = 0; v < V; ++v) {
    PONDER_UNROLL16 for (int i = 0; i < R; ++i) acc[v][i] = splat(0.0F);
  }
  const int64_t x_group = int64_t{rows} * (Packed::input_group + kInputExtra);
  const uint8_t* w = block;
  for (int64_t g = 0; g < p.groups; ++g, w += Packed::group_bytes, x += x_group) {
    if (g % kScaleGroups == 0) scales.prepare(g, vector, V);
    prefetch_block(w, Packed::group_bytes, p.prefetch);
    scales.read_ahead(g, p.block_bytes);
    const InputGroup in(x, Packed::input_group, rows, r);
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
          sum[j] = start_sums(in.corrections[first + j]);
          if (two) other[j] = start_sums(0);
        }
        PONDER_UNROLL for (int c = 0; c < kSteps; ++c) {
          PONDER_UNROLL for (int j = 0; j < side; ++j) {
            if (first + j >= R) continue;
            Sums& chain = two && c >= kSteps / 2 ? other[j] : sum[j];
            chain = dot_nibbles(chain, steps.step[c], in.codes + (first + j) * Packed::input_group + c * 4);
          }
        }
        PONDER_UNROLL for (int j = 0; j < side; ++j) {
          if (first + j >= R) continue;
          if (two) sum[j] = add_sums(sum[j], other[j]);
          Vec& to = acc[v][first + j];
          to = fma(to_floats(sum[j]), splat(in.factors[first + j]) * scale, to);
        }
      }
    }
  }
  PONDER_UNROLL for (int v = 0; v < V; ++v) {
    PONDER_UNROLL16 for (int i = 0; i < R; ++i) put_lanes(p, o + (vector + v) * kLanes, r + i, acc[v][i]);
  }
}

// The same of a block whose weights have a scale a row, so that a group of inputs may be wider: its integer
// sums take the registers, and what they add up to rests in memory.
template <class Packed, int V, int R>
PONDER_INLINE void dot_block_of_rows(const PackedProduct& p, const uint8_t* block, int64_t o, const int8_t* x,
                                     int rows, int vector, int r) {
  constexpr int size = Packed::input_group, steps = size / kPackedGroup;
  constexpr bool two = R <= kTwoChains;
  alignas(64) float total[V * R * kLanes];
  PONDER_UNROLL16 for (int i = 0; i < V * R; ++i) store(total + i * kLanes, splat(0.0F));
  const int64_t x_group = int64_t{rows} * (size + kInputExtra);
  const uint8_t* w = block;
  for (int64_t g = 0; g < p.groups; g += steps, x += x_group) {
    const InputGroup in(x, size, rows, r);
    Sums sum[V][R], other[V][R];
    PONDER_UNROLL for (int v = 0; v < V; ++v) {
      PONDER_UNROLL16 for (int i = 0; i < R; ++i) {
        sum[v][i] = start_sums(in.corrections[i]);
        if (two) other[v][i] = start_sums(0);
      }
    }
    const int64_t here = p.groups - g < steps ? p.groups - g : steps;
    const int8_t* codes = in.codes;
    for (int64_t s = 0; s < here; ++s, w += Packed::group_bytes, codes += kPackedGroup) {
      prefetch_block(w, Packed::group_bytes, p.prefetch);
      PONDER_UNROLL for (int c = 0; c < kSteps; ++c) {
        Codes4 step[V];
        PONDER_UNROLL for (int v = 0; v < V; ++v) step[v] = Packed::read_step(w, vector + v, c);
        PONDER_UNROLL16 for (int i = 0; i < R; ++i) {
          PONDER_UNROLL for (int v = 0; v < V; ++v) {
            Sums& chain = two && c >= kSteps / 2 ? other[v][i] : sum[v][i];
            chain = dot_bytes(chain, step[v], codes + i * size + c * 4);
          }
        }
      }
    }
    PONDER_UNROLL for (int v = 0; v < V; ++v) {
      PONDER_UNROLL16 for (int i = 0; i < R; ++i) {
        if (two) sum[v][i] = add_sums(sum[v][i], other[v][i]);
        float* const to = total + (v * R + i) * kLanes;
        store(to, fma(to_floats(sum[v][i]), splat(in.factors[i]), load(to)));
      }
    }
  }
  PONDER_UNROLL for (int v = 0; v < V; ++v) {
    const Vec scale = scales_of_rows<Packed>(block, p.groups, vector + v);
    PONDER_UNROLL16 for (int i = 0; i < R; ++i) {
      put_lanes(p, o + (vector + v) * kLanes, r + i, load(total + (v * R + i) * kLanes) * scale);
    }
  }
}

template <class Packed, class Scales, int R = 1>
void dot_rows_packed(const PackedProduct& p, const uint8_t* block, int64_t o, int rows, int r, int count) {
  if constexpr (R < kPackedTile) {
    if (count > R) return dot_rows_packed<Packed, Scales, R + 1>(p, block, o, rows, r, count);
  }
  const auto* x = static_cast<const int8_t*>(p.x);
  // Vectors side by side while their sums fit the registers: twice as many where totals rest in memory.
  constexpr int most = Packed::row_scales ? 2 * kPackedTile : kPackedTile;
  constexpr int together = R * kBlockVectors <= most ? kBlockVectors : 1;
  for (int v = 0; v < kBlockVectors; v += together) {
    if constexpr (Packed::row_scales) {
      dot_block_of_rows<Packed, together, R>(p, block, o, x, rows, v, r);
    } else {
      dot_block<Packed, Scales, together, R>(p, block, o, x, rows, v, r);
    }
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

// One row's groups [first, end), each of Packed::input_group inputs, into a tile of `rows` rows, as its row
// r. A group with a value that is not finite gets a NaN for a scale; one of values so small that 127 / size
// overflows counts as zeros.
template <class Packed>
void quantize_input(const float* x, int64_t n, int64_t first, int64_t end, int rows, int r, int8_t* tile) {
  constexpr float levels = 127.0F;
  constexpr int size = Packed::input_group, vectors = size / kLanes;
  for (int64_t g = first; g < end; ++g) {
    int8_t* const out = tile + g * rows * (size + kInputExtra);
    const float* from = x + g * size;
    const int64_t left = n - g * size;
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
      sum += static_cast<uint32_t>(store_int8(out + r * size + v * kLanes, value[v] * splat(inverse)));
    }
    const float factor = (counts ? largest * (1.0F / levels) : 0.0F) + strange;
    const int32_t correction = strange == 0.0F ? -Packed::zero * static_cast<int32_t>(sum) : 0;
    __builtin_memcpy(out + rows * size + r * 4, &factor, 4);
    __builtin_memcpy(out + rows * (size + 4) + r * 4, &correction, 4);
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
          const Vec value = code_floats(steps.step[c], b) - splat(static_cast<float>(Packed::zero));
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
    const Vec scale = scales_of_rows<Packed>(block, p.groups, v);
    PONDER_UNROLL for (int i = 0; i < R; ++i) {
      put_lanes(p, o + v * kLanes, r + i, Packed::row_scales ? acc[i] * scale : acc[i]);
    }
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
