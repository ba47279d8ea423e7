// A weight matrix as the CPU kernels read it: row-major codes, in place where the file's bytes allow it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/aligned_buffer.hpp"
#include "ops/weight.hpp"

namespace ponder::cpu {

class CpuWeight final : public ops::Weight {
 public:
  // Throws as Backend::make_weight.
  CpuWeight(const ops::WeightData& data, ops::WeightType type);

  std::size_t bytes() const noexcept override;
  std::size_t owned_bytes() const noexcept override;

  std::int64_t row_bytes() const noexcept { return cols() * ops::weight_type_bits(type()) / 8; }
  const std::byte* row(std::int64_t r) const noexcept { return codes_ + r * row_bytes(); }
  // Scale of row r, or null when this type has none.
  const float* scale(std::int64_t r) const noexcept { return scales_.empty() ? nullptr : scales_.data() + r; }

 private:
  void convert(const ops::WeightData& data);
  void store_row(std::int64_t r, std::span<float> values);

  const std::byte* codes_ = nullptr;
  AlignedBuffer<std::byte> owned_;
  AlignedBuffer<float> scales_;
  std::shared_ptr<const void> owner_;
};

// The matrix as this backend's own kind; throws Error(internal) for a weight of another backend.
const CpuWeight& own(const ops::Weight& weight);

}  // namespace ponder::cpu
