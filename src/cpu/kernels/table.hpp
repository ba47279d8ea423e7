// What one instruction set offers: plain functions over plain memory, gathered in a table.
//
// This header is all that kernel files and the backend share. It holds only plain structs: an inline function
// or a template of the standard library compiled here with AVX flags could become the copy that the linker
// keeps for the whole program.
//
// Every function's result depends on its own inputs alone: a row of a block gets the same bits in any block.
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace ponder::cpu {

// Sizes of a many-row product: weight rows and columns expanded to float at a time (half an L2 cache), and
// input rows that one expansion serves.
constexpr int kPanelRows = 64;
constexpr int kPanelCols = 512;
constexpr int kPanelInputs = 96;
constexpr int kMaxLanes = 16;
constexpr size_t kLinearScratchFloats =
    size_t{kPanelRows} * kPanelCols + size_t{kPanelRows} * kPanelInputs * kMaxLanes;

// y[r][o] = (x[r] . w[o]) * scale[o] + bias[o] (+ y[r][o]). Weight values are expanded to float exactly; a
// dot product keeps one accumulator per vector lane and adds the lanes in a fixed tree, whatever the tiling.
struct LinearBlock {
  const void* w;  // [w_rows][cols] codes
  int64_t w_rows;
  int64_t cols;
  const float* scale;  // [w_rows] or null
  // linear: [x_rows][cols] with stride x_stride. linear_panel: x_rows <= kPanelInputs rows cut into blocks of
  // columns, [column block][x_rows][kPanelCols], 64-byte aligned, zeros behind the last column.
  const float* x;
  int64_t x_stride;
  int x_rows;
  const float* bias;  // [w_rows] or null
  float* y;           // [x_rows][w_rows]
  int64_t y_stride;
  bool accumulate;
  float* scratch;  // linear_panel: kLinearScratchFloats, 64-byte aligned
};

// C[r][n] = scale[r] * init[r][n] + sum_i A[r][i] * B[i][n], i ascending, one fused multiply-add each.
struct Gemm {
  const float* a;  // A[r][i] = a[r * a_row + i * a_step]
  int64_t a_row, a_step;
  const float* b;  // B[i][n] = b[i * b_row + n]
  int64_t b_row;
  const float* init;  // may be c itself; null: start from zero
  int64_t init_row;
  const float* scale;  // null: 1; scale[r * scale_step]
  int64_t scale_step;
  float* c;
  int64_t c_row;
  int rows, cols, depth;
  const void*
      next;  // memory to fetch on the way, next_step bytes for each i; null: B itself, some rows ahead
  int64_t next_step;
};

constexpr int kMostConvTaps = 64;

// Depthwise convolution of `rows` rows over channels [0, channels) of strided memory, then SiLU.
struct ConvBlock {
  const float* state;  // [kernel - 1], stride state_stride: the inputs before x
  int64_t state_stride;
  const float* x;
  int64_t x_stride;
  const float* weight;  // [kernel], stride weight_stride
  int64_t weight_stride;
  float* y;
  int64_t y_stride;
  int rows, kernel;  // kernel <= kMostConvTaps
  int64_t channels;
};

// Per row of `count` rows in slots slot... of a chunk, with the decays e and the strengths beta of the rows:
// moves decay and carry on (ops/state.hpp), and notes for each row
//   faded = carry, minus_beta_faded = -beta carry,
//   factors[i][s] = -beta decay[s] dots[i][s],  factors[count + i][s] = decay[s] dots[count + i][s]
// for the s that row i may use (others come out as anything). chunk is a multiple of kMaxLanes.
struct DeltaFactors {
  const float *e, *beta;            // [count]
  const float* dots;                // [2 count][chunk]: keys, then queries, with the chunk's keys
  float *decay, *carry;             // [chunk], one
  float *faded, *minus_beta_faded;  // [count]
  float* factors;                   // [2 count][chunk]
  int slot, count, chunk;
};

// Rows i < count in slots t = slot + i of a chunk whose rows' u are given or, where y is not null, computed:
//   with y     c[i] = x_scale[i] x[i] + y_scale[i] y[i] + sum_{s < t} factor[i][s] u[s], which is u[t]
//   without    c[i] = x_scale[i] x[i] + sum_{s <= t} factor[i][s] u[s]
// s ascending, one fused multiply-add each.
struct LowerProduct {
  const float *x, *x_scale;
  int64_t x_row;
  const float *y, *y_scale;
  int64_t y_row;
  const float* factor;
  int64_t factor_row;
  const float* u;  // of slot 0
  int64_t u_row;
  float* c;
  int64_t c_row;
  int slot, count, cols;
};

// out[r][c] = codes[r][c] * (row_scale[r] or, where that is null, column_scale[c]).
struct Q8Tile {
  const int8_t* codes;
  const float *row_scale, *column_scale;
  float* out;
  int64_t code_stride, stride;  // of codes and of out
  int rows, cols;
};

constexpr int kWeightTypes = 4;  // in the order of ops::WeightType

struct KernelTable {
  int few_rows;  // up to this many input rows `linear` is the faster one

  void (*linear[kWeightTypes])(const LinearBlock& block);
  void (*linear_panel[kWeightTypes])(const LinearBlock& block);
  // out[i] = value of code i, times scale.
  void (*embed[kWeightTypes])(const void* codes, int64_t n, float scale, float* out);
  // Rounds to the nearest bfloat16 (ties to even), kept as float.
  void (*round_bf16)(const float* x, int64_t n, float* out);

  void (*gemm)(const Gemm& args);
  // One block of an online softmax over s[lo, hi): s <- exp(s - m), *max <- m, *sum <- *sum * c + sum(s),
  // with m the new largest score and c = exp(old m - m), which is returned. Start with *max = -inf, *sum = 0.
  float (*softmax)(float* s, int lo, int hi, float* max, float* sum);

  // Outputs may be the inputs themselves in all of these.
  void (*rms_norm)(const float* x, int n, const float* weight, float eps, float* y);
  void (*gated_rms_norm)(const float* x, const float* z, int n, const float* weight, float eps, float* y);
  void (*l2_norm)(const float* x, int n, float eps, float factor, float* y);  // x * factor / sqrt(x.x + eps)
  void (*silu_mul)(float* gate, const float* up, int64_t n);
  void (*sigmoid_mul)(float* x, const float* gate, int64_t n);
  void (*rotate)(float* x, int half, const float* cos, const float* sin);
  void (*scale)(const float* x, float factor, int64_t n, float* y);
  void (*combine)(float a, const float* x, float b, const float* y, int64_t n, float* out);  // a x + b y
  void (*conv_silu)(const ConvBlock& block);

  // a <- exp(-rate softplus(a + bias)), b <- sigmoid(b).
  void (*delta_gates)(float* a, float* b, float rate, float bias, int n);
  void (*delta_factors)(const DeltaFactors& args);
  void (*lower_product)(const LowerProduct& args);
  void (*expand_q8)(const Q8Tile& tile);
};

// ---- quantised weights
// ---------------------------------------------------------------------------------------

constexpr int kPackedRows = 16;           // ops::kBlockRows
constexpr int kPackedGroup = 32;          // ops::kQuantGroup
constexpr int kPackedTypes = 3;           // q8, q4, q4tp
constexpr int kInputTile = 16;            // rows of int8 inputs that lie together
constexpr int kInputExtra = 8;            // bytes beside the codes of a row's group: scale, correction
constexpr float kLeastInput = 0x1p-120F;  // groups of nothing larger count as zeros

// Inputs that share a scale when they are rounded to int8: ops::int8_group.
constexpr int input_group_of(int packed_type) {
  return packed_type == 0 ? 4 * kPackedGroup : kPackedGroup;
}

// y[r][o] = x[r] . w[o] + bias[o] (+ y[r][o]).
struct PackedProduct {
  const void* w;  // blocks of 16 weight rows, ops/packed_layout.hpp
  int64_t block_bytes;
  int64_t w_rows;  // the last block may hold fewer
  int64_t groups;  // of 32 inputs
  // dot: one tile of x_rows <= kInputTile rows as this type's quantize_input makes it. product: [x_rows] rows
  // of floats with stride x_stride, zeros up to a whole group.
  const void* x;
  int64_t x_stride;
  int x_rows;
  int64_t prefetch;   // bytes to read ahead
  const float* bias;  // [w_rows] or null
  float* y;           // [x_rows][w_rows]
  int64_t y_stride;
  bool accumulate;
};

struct PackedKernels {
  void (*dot[kPackedTypes])(const PackedProduct& product);      // int8 inputs
  void (*product[kPackedTypes])(const PackedProduct& product);  // float inputs
  // Groups [first, end) of an input row of n floats, each of input_group_of(type), to row r of a tile of
  // `rows` rows: for each group the rows' codes, their scales (float), their corrections (int32).
  void (*quantize_input[kPackedTypes])(const float* x, int64_t n, int64_t first, int64_t end, int rows, int r,
                                       int8_t* tile);
};

// ---- products of bfloat16 pairs
// ------------------------------------------------------------------------------

constexpr int kBf16Inputs = 96;  // input rows that share one pass over some weights

// y[r][o] = x[r] . w[o] + bias[o] (+ y[r][o]), two products at a time added to a float32 sum, as vdpbf16ps
// does.
struct Bf16Product {
  const uint16_t* w;  // [w_rows][cols]
  int64_t w_rows, cols;
  const uint16_t* x;  // [x_rows][x_stride], zeros from cols to a multiple of 32
  int64_t x_stride;
  int x_rows;         // at most kBf16Inputs
  const float* bias;  // [w_rows] or null
  float* y;           // [x_rows][w_rows]
  int64_t y_stride;
  bool accumulate;
  float* scratch;  // kBf16ScratchFloats
};
constexpr int kBf16Rows = 4;  // weight rows of a tile
constexpr size_t kBf16ScratchFloats = size_t{kBf16Rows} * kBf16Inputs * kMaxLanes;

struct Bf16Kernels {
  void (*product)(const Bf16Product& product);
  // Rounds to the nearest bfloat16 (ties to even; NaN stays NaN); zeros up to `padded`.
  void (*round)(const float* x, int64_t n, int64_t padded, uint16_t* out);
};
extern const Bf16Kernels kAvx512Bf16;

extern const PackedKernels kScalarPacked;
extern const PackedKernels kAvx2Packed;
extern const PackedKernels kAvx2VnniPacked;
extern const PackedKernels kAvx512Packed;
extern const PackedKernels kAvx512VnniPacked;
extern const PackedKernels kNeonPacked;
extern const PackedKernels kNeonDotPacked;

extern const KernelTable kScalarKernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
extern const KernelTable kNeonKernels;

}  // namespace ponder::cpu
