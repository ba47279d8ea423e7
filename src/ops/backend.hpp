// The vocabulary every model is written in: one interface, implemented by the scalar reference here and by
// the CPU backend (src/cpu).
//
// Conventions
// - Activations are float32 in row-major order: row r of a `Rows` starts at data + r * stride (in floats).
// - Inputs and outputs do not overlap unless an operation says "in place".
// - Arithmetic of a row depends on that row and its sequence alone: the same bits for one row or many, for
// any
//   number of threads, for any split of a sequence into calls.
// - A backend runs one operation at a time; use one backend per engine. Weights may be shared among backends
//   of the same kind.
// - Operations allocate nothing once warm. Shapes are checked by the models when they load; operations only
//   assert, except where a caller's numbers can be wrong at run time (token ids), which throw.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ops/state.hpp"
#include "ops/weight.hpp"

namespace ponder::ops {

struct Rows {
  float* data = nullptr;
  std::int64_t stride = 0;
  float* operator[](std::int64_t row) const { return data + row * stride; }
};

struct ConstRows {
  const float* data = nullptr;
  std::int64_t stride = 0;
  ConstRows() = default;
  ConstRows(const float* d, std::int64_t s) : data(d), stride(s) {}
  ConstRows(Rows r)
      : data(r.data), stride(r.stride) {}  // NOLINT(google-explicit-constructor): a view narrows
  const float* operator[](std::int64_t row) const { return data + row * stride; }
};

// What a linear layer's input is rounded to before the product. Sums are float32.
//   f32     not at all
//   bf16    to bfloat16
//   native  what suits the weight: int8 in groups of int8_group(type), scale = largest size / 127, for q8, q4
//           and q4tp; bfloat16 for bf16; not at all for f32, f16 and f8_e4m3
enum class ActivationType : std::uint8_t { f32, bf16, native };

// One matrix of a group that reads the same input: y = x W^T (+ bias) (+ y).
struct LinearOut {
  const Weight* weight = nullptr;  // [out, in]
  const float* bias = nullptr;     // [out] or null
  Rows y;                          // [rows, out]
  bool accumulate = false;         // add to what y holds (residual connections)
};

// A set of equally sized vectors inside rows: vector g of row r starts at data + r * stride + g *
// group_stride.
struct Groups {
  int count = 1;
  int dim = 0;
  std::int64_t stride = 0;  // floats between the starts of neighbouring groups
};

// Rows [first_row, first_row + rows) of the batch belong to one sequence. Row r (from 0) sees cache positions
//   [max(0, end_r - window), end_r) and [0, min(sinks, max(0, end_r - window))),
//   end_r = visible_end + r * visible_step,
// and besides them all own_rows rows of own_keys/own_values. A row that sees nothing gets zeros. An ordinary
// causal segment at position p has visible_end = p + 1, visible_step = 1; a block of mask rows has
// visible_step = 0 and brings its own rows.
struct AttentionSegment {
  int first_row = 0;
  int rows = 0;
  KvPages cache;
  std::int64_t visible_end = 0;
  int visible_step = 1;
  std::int64_t window = 0;  // 0: everything
  std::int64_t sinks = 0;   // only with a window
  // [own_rows][kv heads * dim], already rotated; with several value heads a key head own keys come for every
  // query head, [own_rows][heads * key_dim].
  ConstRows own_keys, own_values;
  int own_rows = 0;
};

struct AttentionArgs {
  ConstRows q;  // [rows][heads], rotated; head h starts at h * q_head_stride
  std::int64_t q_head_stride = 0;
  Rows out;  // [rows][heads * value_dim]
  // Query heads, a multiple of kv.values(); head h reads key head h / (heads / kv.heads) and value head
  // h / (heads / kv.values()).
  int heads = 0;
  KvShape kv;
  float scale = 1.0F;  // scores are scale * (q . k)
  std::span<const AttentionSegment> segments;
};

// Depthwise causal convolution over time, then SiLU:
//   y_t[c] = silu( sum_j weight[j][c] * x_{t - (kernel - 1) + j}[c] ).
struct ConvSegment {
  int first_row = 0;
  int rows = 0;
  // [kernel - 1][channels], the newest inputs before these rows, oldest first; updated. With `hold` they
  // stay, and the inputs of these rows (at most kHeldRows) are written behind them: [kernel - 1 +
  // rows][channels]; moving the rows that count to the front is up to the caller.
  float* state = nullptr;
  bool hold = false;
};

struct ConvArgs {
  ConstRows x;  // [rows][channels]
  Rows y;       // [rows][channels]
  const float* weight =
      nullptr;  // [kernel][channels] (transposed from the checkpoint's [channels, 1, kernel])
  int channels = 0;
  int kernel = 0;
  std::span<const ConvSegment> segments;
};

// Gated delta rule (Yang et al., "Gated Delta Networks", 2024) in chunk form, see DeltaStateLayout. Per value
// head: e = exp(-rate * softplus(a + dt_bias)), beta = sigmoid(b), k and q divided by sqrt(sum of squares +
// 1e-6), q also by sqrt(Dk); then S <- e S; S <- S + k (x) beta (v - S^T k); out = S^T q.
struct DeltaSegment {
  int first_row = 0;
  int rows = 0;
  std::int64_t position = 0;  // absolute position of the first row
  float* state = nullptr;     // DeltaStateLayout floats; moved on by `rows`
  bool hold = false;          // at most kHeldRows rows, not final before delta_settle
};

struct DeltaArgs {
  DeltaShape shape;
  ConstRows qkv;                   // [rows][Hk*Dk + Hk*Dk + Hv*Dv], after the convolution
  ConstRows a, b;                  // [rows][Hv] raw projections
  const float* rate = nullptr;     // [Hv], exp(A_log)
  const float* dt_bias = nullptr;  // [Hv]
  Rows out;                        // [rows][Hv*Dv]
  std::span<const DeltaSegment> segments;
};

class Backend {
 public:
  virtual ~Backend() = default;

  // One line for people: kind, instruction set, threads and why.
  virtual std::string describe() const = 0;

  // ---- memory --------------------------------------------------------------------------------------------
  // A matrix in the wanted type. Values that the type cannot hold are rounded to nearest even. The data is
  // used in place when layout, type and alignment allow it, else copied. Throws Error(unsupported) for
  // impossible conversions, Error(no_memory).
  virtual WeightPtr make_weight(const WeightData& data, WeightType type) = 0;
  // Random values of variance about 1 / cols, the same for a seed: something to measure with.
  virtual WeightPtr make_random_weight(std::int64_t rows, std::int64_t cols, WeightType type,
                                       std::uint64_t seed) = 0;
  // Bytes of one page of one layer.
  virtual std::size_t kv_page_bytes(const KvShape& shape) const = 0;

  // ---- rows ----------------------------------------------------------------------------------------------
  // out[i] = row ids[i] of the table. Throws Error(invalid_input) for an id outside the table.
  virtual void embed(const Weight& table, std::span<const std::int32_t> ids, Rows out) = 0;

  // y = x * rsqrt(mean(x^2) + eps) * weight per group; in place allowed (y.data == x.data, same strides).
  virtual void rms_norm(ConstRows x, Rows y, int rows, Groups groups, const float* weight, float eps) = 0;

  // y = rms_norm(x) * silu(z) per group; in place allowed for x.
  virtual void gated_rms_norm(ConstRows x, ConstRows z, Rows y, int rows, Groups groups, const float* weight,
                              float eps) = 0;

  // All matrices read the same input x [rows, in]. No output may overlap x.
  virtual void linear(std::span<const LinearOut> outs, ConstRows x, int rows) = 0;

  // y = silu(x gate^T) * (x up^T): the two products and the gate in one go, to the last bit what linear() and
  // silu_mul() give. Both matrices have the same shape.
  virtual void gated_linear(const Weight& gate, const Weight& up, ConstRows x, int rows, Rows y) = 0;

  // gate = silu(gate) * up, in place on gate; [rows, cols].
  virtual void silu_mul(Rows gate, ConstRows up, int rows, int cols) = 0;

  // x = x * sigmoid(gate) per group, in place on x. x's groups are dense (stride dim), gate's are as given.
  virtual void sigmoid_mul(Rows x, ConstRows gate, int rows, Groups gate_groups) = 0;

  // cos[r][j], sin[r][j] of positions[r] * theta^(-2j / dim) for j < ceil(dim / 2).
  virtual void rotary_table(std::span<const std::int64_t> positions, int dim, double theta, Rows cos,
                            Rows sin) = 0;

  // Turns the pairs (j, j + half) of each group, in place; entries from 2 * half on pass unchanged.
  virtual void rotary(Rows x, int rows, Groups groups, int half, ConstRows cos, ConstRows sin) = 0;

  // ---- sequences -----------------------------------------------------------------------------------------
  // Takes keys [kv heads * key_dim] and values [kv heads * value_dim] of each segment's batch rows into its
  // cache. No two segments write to the same page.
  virtual void kv_append(const KvShape& shape, std::span<const KvAppend> segments, ConstRows keys,
                         ConstRows values) = 0;
  void kv_append(const KvShape& shape, const KvAppend& segment, ConstRows keys, ConstRows values) {
    kv_append(shape, {&segment, 1}, keys, values);
  }

  virtual void attention(const AttentionArgs& args) = 0;
  virtual void causal_conv(const ConvArgs& args) = 0;
  virtual void delta_rule(const DeltaArgs& args) = 0;

  // After a call with `hold` for rows at `position` and on: makes the state as if only the first `accepted`
  // of them had been run, to the last bit; 0 <= accepted <= rows of that call.
  virtual void delta_settle(const DeltaShape& shape, float* state, std::int64_t position, int accepted) = 0;

  // S [Hv][Dk][Dv] of a state after `position` rows, for inspection.
  virtual void delta_matrix(const DeltaShape& shape, const float* state, std::int64_t position,
                            float* out) = 0;

  // ---- heads ---------------------------------------------------------------------------------------------
  // ids[r] = argmax over i < limit, i not banned, of x[r] . head[i]; the lowest id wins ties. banned is a bit
  // set over [0, limit) (bit i % 64 of word i / 64) or null. NaN never wins; a row whose every candidate is
  // NaN or banned gives -1. A row's logits are to the last bit what linear() would store.
  virtual void masked_argmax(ConstRows x, int rows, const Weight& head, std::int64_t limit,
                             const std::uint64_t* banned, std::int32_t* ids) = 0;

  virtual ActivationType activation_type() const = 0;
};

// The plain scalar implementation: double sums, one thread, no tricks. Slow; the yardstick of every other.
std::unique_ptr<Backend> make_reference_backend(ActivationType activations = ActivationType::f32);

}  // namespace ponder::ops
