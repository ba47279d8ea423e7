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
};

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
  int rows, kernel;
  int64_t channels;
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
};

extern const KernelTable kScalarKernels;
extern const KernelTable kAvx2Kernels;
extern const KernelTable kAvx512Kernels;
extern const KernelTable kNeonKernels;

}  // namespace ponder::cpu
