// The scalar reference backend: every operation of backend.hpp in its plainest form. Sums are double and a
// result is rounded once to float, so that what another backend differs by is its own rounding.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ops/backend.hpp"

namespace ponder::ops {

inline double sigmoid(double x) {
  return 1.0 / (1.0 + std::exp(-x));
}
inline double silu(double x) {
  return x * sigmoid(x);
}
inline double softplus(double x) {
  return std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x)));
}

// A matrix decoded to float. An f8 matrix holds its code values, and its scales apart: a product sums the
// codes and is scaled once. Of the quantised types it holds the values.
class ReferenceWeight final : public Weight {
 public:
  // Decodes and, where the source is finer than the target, rounds. Throws as Backend::make_weight.
  ReferenceWeight(const WeightData& data, WeightType type);

  std::size_t bytes() const noexcept override;
  std::size_t owned_bytes() const noexcept override;
  QuantizationError error() const noexcept override { return error_; }

  const float* row(std::int64_t r) const { return values_.data() + r * cols(); }
  float scale(std::int64_t r) const { return scales_.empty() ? 1.0F : scales_[static_cast<std::size_t>(r)]; }

 private:
  void decode_row(const WeightData& data, std::int64_t r);
  void round_row(std::int64_t r);
  void quantize_e4m3_row(std::int64_t r);
  float* mutable_row(std::int64_t r) { return values_.data() + r * cols(); }

  std::vector<float> values_;  // [rows][cols]
  std::vector<float> scales_;  // [rows] for f8_e4m3, else empty
  QuantizationError error_;
};

class ReferenceBackend final : public Backend {
 public:
  explicit ReferenceBackend(ActivationType activations) : activations_(activations) {}

  std::string describe() const override;
  ActivationType activation_type() const override { return activations_; }

  WeightPtr make_weight(const WeightData& data, WeightType type) override;
  WeightPtr make_random_weight(std::int64_t rows, std::int64_t cols, WeightType type,
                               std::uint64_t seed) override;
  std::size_t kv_page_bytes(const KvShape& shape) const override;

  void embed(const Weight& table, std::span<const std::int32_t> ids, Rows out) override;
  void rms_norm(ConstRows x, Rows y, int rows, Groups groups, const float* weight, float eps) override;
  void gated_rms_norm(ConstRows x, ConstRows z, Rows y, int rows, Groups groups, const float* weight,
                      float eps) override;
  void linear(std::span<const LinearOut> outs, ConstRows x, int rows) override;
  void gated_linear(const Weight& gate, const Weight& up, ConstRows x, int rows, Rows y) override;
  void silu_mul(Rows gate, ConstRows up, int rows, int cols) override;
  void sigmoid_mul(Rows x, ConstRows gate, int rows, Groups gate_groups) override;
  void rotary_table(std::span<const std::int64_t> positions, int dim, double theta, Rows cos,
                    Rows sin) override;
  void rotary(Rows x, int rows, Groups groups, int half, ConstRows cos, ConstRows sin) override;

  using Backend::kv_append;
  void kv_append(const KvShape& shape, std::span<const KvAppend> segments, ConstRows keys,
                 ConstRows values) override;
  void attention(const AttentionArgs& args) override;
  void causal_conv(const ConvArgs& args) override;
  void delta_rule(const DeltaArgs& args) override;
  void delta_settle(const DeltaShape& shape, float* state, std::int64_t position, int accepted) override;
  void delta_matrix(const DeltaShape& shape, const float* state, std::int64_t position, float* out) override;

  void masked_argmax(ConstRows x, int rows, const Weight& head, std::int64_t limit,
                     const std::uint64_t* banned, std::int32_t* ids) override;

 private:
  // A linear layer's input as it takes part in the product.
  std::vector<float> rounded_input(const float* x, const Weight& weight) const;

  ActivationType activations_;
};

}  // namespace ponder::ops
