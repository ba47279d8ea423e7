// A backend around another that counts what each operation is asked for and how long it takes.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ops/backend.hpp"

namespace ponder::ops {

enum class Op : std::uint8_t {
  embed,
  rms_norm,
  gated_rms_norm,
  linear,
  gated_linear,
  silu_mul,
  sigmoid_mul,
  rotary_table,
  rotary,
  kv_append,
  attention,
  causal_conv,
  delta_rule,
  delta_settle,
  masked_argmax,
};

std::string_view op_name(Op op);

// Calls of one kind. Products are one kind when their matrices have the same shapes and type.
struct OpRecord {
  static constexpr std::size_t kMostMatrices = 4;

  Op op = Op::embed;
  // Of products: inputs, and outputs of each matrix (those past the last place are added up there).
  std::int64_t inputs = 0;
  std::array<std::int64_t, kMostMatrices> outputs{};
  WeightType type = WeightType::f32;  // of the first matrix; of embed's table, too

  std::uint64_t calls = 0;
  std::uint64_t rows = 0;
  // Bytes that have to cross the memory bus whatever the backend does, each once a call: weights read, keys
  // and values and recurrent states read and written. Activations are not counted.
  std::uint64_t weight_bytes = 0;
  std::uint64_t kv_bytes = 0;
  std::uint64_t state_bytes = 0;
  // Multiply-adds of the products: matrices, attention, convolution, and three of Dk Dv a row and value head
  // of the delta rule as its equations stand.
  std::uint64_t multiply_adds = 0;
  double seconds = 0;

  std::uint64_t bytes() const { return weight_bytes + kv_bytes + state_bytes; }
  // "linear 2560 -> 8192+4096+32+32 bf16"
  std::string label() const;
};

// Records only between record(true) and record(false); else it hands every call on and does nothing more.
class ProfiledBackend final : public Backend {
 public:
  explicit ProfiledBackend(std::shared_ptr<Backend> inner) : inner_(std::move(inner)) {}

  void record(bool on) { recording_ = on; }
  // What was recorded since the last call, in the order of first occurrence.
  std::vector<OpRecord> take();

  std::string describe() const override { return inner_->describe(); }
  ActivationType activation_type() const override { return inner_->activation_type(); }
  WeightPtr make_weight(const WeightData& data, WeightType type) override {
    return inner_->make_weight(data, type);
  }
  WeightPtr make_random_weight(std::int64_t rows, std::int64_t cols, WeightType type,
                               std::uint64_t seed) override {
    return inner_->make_random_weight(rows, cols, type, seed);
  }
  std::size_t kv_page_bytes(const KvShape& shape) const override { return inner_->kv_page_bytes(shape); }

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
  void delta_matrix(const DeltaShape& shape, const float* state, std::int64_t position, float* out) override {
    inner_->delta_matrix(shape, state, position, out);
  }
  void masked_argmax(ConstRows x, int rows, const Weight& head, std::int64_t limit,
                     const std::uint64_t* banned, std::int32_t* ids) override;

 private:
  // Runs the call, timed, and adds `cost` (its key fields say of which kind it is) to the records.
  template <class Run>
  void timed(const OpRecord& cost, Run&& run);

  std::shared_ptr<Backend> inner_;
  bool recording_ = false;
  std::vector<OpRecord> records_;
};

}  // namespace ponder::ops
