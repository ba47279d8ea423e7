// Weight matrices as operations see them: opaque to models, laid out by the backend that made them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/dtype.hpp"

namespace ponder::ops {

// How a matrix is held in memory. f8_e4m3 keeps exact code values and one float scale per output row.
enum class WeightType : std::uint8_t { f32, bf16, f16, f8_e4m3 };

std::string_view weight_type_name(WeightType type);
// Bits one weight costs in memory traffic, row scales not counted.
int weight_type_bits(WeightType type);
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

 protected:
  Weight(std::int64_t rows, std::int64_t cols, WeightType type) : rows_(rows), cols_(cols), type_(type) {}

 private:
  std::int64_t rows_, cols_;
  WeightType type_;
};

using WeightPtr = std::shared_ptr<const Weight>;

}  // namespace ponder::ops
