// Weight matrices as operations see them: opaque to models, laid out by the backend that made them.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.hpp"

namespace ponder::ops {

// How a matrix is held in memory.
//   f8_e4m3  exact code values, one float scale per output row
//   q8       int8 codes, one half-precision scale per output row: w = code * scale
//   q4       4-bit codes in groups of 32 inputs, one half-precision scale per group: w = (code - 8) * scale
//   q4tp     the same, a group's scale being a rung of its row's ladder: rung 0 = 2^lo, rung c + 1 = rung c *
//            2^step, lo and step in half precision, c of 5 bits (CMF's q4tp)
enum class WeightType : std::uint8_t { f32, bf16, f16, f8_e4m3, q8, q4, q4tp };

// Inputs that share a scale in q4 and q4tp.
inline constexpr int kQuantGroup = 32;

// Inputs of a product that share a scale when they are rounded to int8 for weights of a quantised type: a
// scale of its own for each row of weights lets integer sums run on for longer.
constexpr int int8_group(WeightType type) {
  return type == WeightType::q8 ? 4 * kQuantGroup : kQuantGroup;
}

// Whether a type is made by rounding to few levels, so that making it from floats loses something worth
// measuring.
constexpr bool is_quantized(WeightType type) {
  return type >= WeightType::q8;
}

std::string_view weight_type_name(WeightType type);
// Bits one weight costs in memory traffic; scales of groups count, those of rows do not.
double weight_type_bits(WeightType type);
// The type that holds `dtype` without loss; throws Error(unsupported) for integer types.
WeightType natural_weight_type(DType dtype);

// A row-major [rows, cols] matrix as a checkpoint stores it.
struct WeightData {
  DType dtype = DType::f32;
  std::int64_t rows = 0;            // output features (vocabulary entries for an embedding)
  std::int64_t cols = 0;            // input features
  const std::byte* data = nullptr;  // rows * cols elements, any alignment
  const float* row_scale =
      nullptr;  // [rows], for f8_e4m3 and only for it: value = code * row_scale[row]; copied
  std::shared_ptr<const void>
      owner;  // keeps `data` alive for weights used in place; without it data is copied
  // Set: `data` holds what Weight::packed() of a weight of this type and shape gave, dtype is ignored.
  std::optional<WeightType> packed = std::nullopt;
};

// What rounding cost: squares of the differences and of the values, summed over the matrix.
struct QuantizationError {
  double difference = 0, value = 0;
  double relative() const { return value == 0 ? 0 : std::sqrt(difference / value); }
};

// An immutable matrix, safe to read from several threads. Made by Backend::make_weight and only usable with
// backends of the same kind.
class Weight {
 public:
  virtual ~Weight() = default;
  Weight(const Weight&) = delete;
  Weight& operator=(const Weight&) = delete;

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t cols() const noexcept { return cols_; }
  WeightType type() const noexcept { return type_; }
  // Bytes one full product reads (codes and scales).
  virtual std::size_t bytes() const noexcept = 0;
  // Bytes this object allocated; 0 when the mapped file is used in place.
  virtual std::size_t owned_bytes() const noexcept = 0;
  // The bytes of a quantised type as the kernels read them, to be written to a file and mapped next time;
  // empty for other types. The layout is the same for every instruction set.
  virtual std::span<const std::byte> packed() const noexcept { return {}; }
  // Zero when nothing was rounded here.
  virtual QuantizationError error() const noexcept { return {}; }

 protected:
  Weight(std::int64_t rows, std::int64_t cols, WeightType type) : rows_(rows), cols_(cols), type_(type) {}

 private:
  std::int64_t rows_, cols_;
  WeightType type_;
};

using WeightPtr = std::shared_ptr<const Weight>;

}  // namespace ponder::ops
