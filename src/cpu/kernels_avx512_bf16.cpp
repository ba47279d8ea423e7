// Products of bfloat16 weights and inputs for AVX-512 with BF16: lanes run along the inputs, two of them a
// lane; each (weight row, input row) pair has one vector accumulator and its lanes are added in a fixed tree,
// whatever the tile. A few weight rows stay in the first-level cache, in pieces of kPieceCols, while input
// rows pass by.
#include "cpu/kernels/table.hpp"
#include "cpu/kernels/vec_avx512.hpp"

namespace ponder::cpu {
namespace {

#include "cpu/kernels/prefetch.inl"

constexpr int kPair = 32;             // inputs of one instruction
constexpr int kTileInputs = 6;        // input rows of a tile
constexpr int64_t kPieceCols = 2560;  // four weight rows of this many columns leave room for input rows

PONDER_INLINE __m512bh pairs(__m512i v) {
  __m512bh out;
  __builtin_memcpy(&out, &v, sizeof(out));
  return out;
}
PONDER_INLINE __m512i load_pairs(const uint16_t* p) {
  return _mm512_loadu_si512(p);
}
PONDER_INLINE __m512i load_pairs(const uint16_t* p, int64_t left) {
  return _mm512_maskz_loadu_epi16((1U << left) - 1U, p);
}

struct Piece {
  int64_t begin, end;  // columns
  bool first, last;
};

PONDER_INLINE void put(const Bf16Product& b, int64_t o, int r, float sum) {
  if (b.bias != nullptr) sum += b.bias[o];
  float* y = b.y + r * b.y_stride + o;
  *y = b.accumulate ? *y + sum : sum;
}

template <int R, int C>
void tile(const Bf16Product& b, const Piece& piece, int64_t o, int r) {
  const uint16_t* w = b.w + o * b.cols;
  const uint16_t* x = b.x + r * b.x_stride;
  float* const rest = b.scratch + int64_t{r} * kBf16Rows * kLanes;
  __m512 acc[R][C];
  PONDER_UNROLL for (int i = 0; i < R; ++i) {
    PONDER_UNROLL for (int j = 0; j < C; ++j) {
      acc[i][j] = piece.first ? _mm512_setzero_ps() : _mm512_loadu_ps(rest + (j * kBf16Rows + i) * kLanes);
    }
  }
  int64_t k = piece.begin;
  for (; k + kPair <= piece.end; k += kPair) {
    __m512i in[C];
    PONDER_UNROLL for (int j = 0; j < C; ++j) in[j] = load_pairs(x + j * b.x_stride + k);
    PONDER_UNROLL for (int i = 0; i < R; ++i) {
      if (C <= 2) prefetch(w + i * b.cols + k, 2 * kBf16Rows * b.cols);
      const __m512i value = load_pairs(w + i * b.cols + k);
      PONDER_UNROLL for (int j = 0; j < C; ++j) {
        acc[i][j] = _mm512_dpbf16_ps(acc[i][j], pairs(value), pairs(in[j]));
      }
    }
  }
  if (k < piece.end) {
    __m512i in[C];
    PONDER_UNROLL for (int j = 0; j < C; ++j) in[j] = load_pairs(x + j * b.x_stride + k);
    PONDER_UNROLL for (int i = 0; i < R; ++i) {
      const __m512i value = load_pairs(w + i * b.cols + k, piece.end - k);
      PONDER_UNROLL for (int j = 0; j < C; ++j) {
        acc[i][j] = _mm512_dpbf16_ps(acc[i][j], pairs(value), pairs(in[j]));
      }
    }
  }
  PONDER_UNROLL for (int i = 0; i < R; ++i) {
    PONDER_UNROLL for (int j = 0; j < C; ++j) {
      if (piece.last) {
        put(b, o + i, r + j, sum_lanes({acc[i][j]}));
      } else {
        _mm512_storeu_ps(rest + (j * kBf16Rows + i) * kLanes, acc[i][j]);
      }
    }
  }
}

template <int R, int C = 1>
void tile_of(const Bf16Product& b, const Piece& piece, int64_t o, int r, int count) {
  if constexpr (C < kTileInputs) {
    if (count > C) return tile_of<R, C + 1>(b, piece, o, r, count);
  }
  tile<R, C>(b, piece, o, r);
}

// As equal as tiles of at most kTileInputs can be.
PONDER_INLINE int tile_inputs(int left) {
  const int tiles = (left + kTileInputs - 1) / kTileInputs;
  return (left + tiles - 1) / tiles;
}

void product(const Bf16Product& b) {
  for (int64_t o = 0; o < b.w_rows; o += kBf16Rows) {
    const int64_t left = b.w_rows - o;
    for (int64_t k = 0; k == 0 || k < b.cols; k += kPieceCols) {
      const Piece piece{k, k + kPieceCols < b.cols ? k + kPieceCols : b.cols, k == 0,
                        k + kPieceCols >= b.cols};
      for (int r = 0; r < b.x_rows;) {
        const int count = tile_inputs(b.x_rows - r);
        if (left >= kBf16Rows) tile_of<kBf16Rows>(b, piece, o, r, count);
        if (left == 3) tile_of<3>(b, piece, o, r, count);
        if (left == 2) tile_of<2>(b, piece, o, r, count);
        if (left == 1) tile_of<1>(b, piece, o, r, count);
        r += count;
      }
    }
  }
}

void round_inputs(const float* x, int64_t n, int64_t padded, uint16_t* out) {
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const __m256i words =
        _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(round_bf16(load(x + i)).v), 16));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + i), words);
  }
  if (i < n) {
    const Vec last = round_bf16(load_first(x + i, static_cast<int>(n - i)));
    const __m256i words = _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_castps_si512(last.v), 16));
    _mm256_mask_storeu_epi16(out + i, first(static_cast<int>(n - i)), words);
    i = n;
  }
  for (; i < padded; ++i) out[i] = 0;
}

}  // namespace

const Bf16Kernels kAvx512Bf16 = {product, round_inputs};

}  // namespace ponder::cpu
