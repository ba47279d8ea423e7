// A weight matrix as the CPU kernels read it: row-major codes, in place where the file's bytes allow it;
// quantised types in blocks of 16 rows (ops/packed_layout.hpp), in place where a file holds them so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/aligned_buffer.hpp"
#include "base/thread_pool.hpp"
#include "ops/packed_layout.hpp"
#include "ops/weight.hpp"

namespace ponder::cpu {

class CpuWeight final : public ops::Weight {
 public:
  // Throws as Backend::make_weight. The pool shares the work of rounding.
  CpuWeight(const ops::WeightData& data, ops::WeightType type, ThreadPool& pool);
  // Random codes and scales, values of variance about 1 / cols.
  CpuWeight(std::int64_t rows, std::int64_t cols, ops::WeightType type, std::uint64_t seed, ThreadPool& pool);

  std::size_t bytes() const noexcept override;
  std::size_t owned_bytes() const noexcept override;
  std::span<const std::byte> packed() const noexcept override;
  ops::QuantizationError error() const noexcept override { return error_; }

  // ---- row-major types
  std::int64_t row_bytes() const noexcept;
  const std::byte* row(std::int64_t r) const noexcept { return codes_ + r * row_bytes(); }
  // Scale of row r, or null when this type has none.
  const float* scale(std::int64_t r) const noexcept { return scales_.empty() ? nullptr : scales_.data() + r; }

  // ---- quantised types
  const ops::PackedLayout* layout() const noexcept { return layout_ ? &*layout_ : nullptr; }
  const std::byte* block_of_row(std::int64_t r) const noexcept {
    return codes_ + static_cast<std::size_t>(r / ops::kBlockRows) * layout_->block_bytes;
  }

 private:
  void convert(const ops::WeightData& data);
  void store_row(std::int64_t r, std::span<float> values);
  void use_packed(const ops::WeightData& data);
  void quantize(const ops::WeightData& data, ThreadPool& pool);
  // Uses the bytes in place, or a copy of them when they have no owner or lie unaligned.
  void adopt(const std::byte* data, std::size_t size, std::size_t alignment,
             const std::shared_ptr<const void>& owner);

  std::optional<ops::PackedLayout> layout_;
  const std::byte* codes_ = nullptr;
  AlignedBuffer<std::byte> owned_;
  AlignedBuffer<float> scales_;
  std::shared_ptr<const void> owner_;
  ops::QuantizationError error_;
};

// The matrix as this backend's own kind; throws Error(internal) for a weight of another backend.
const CpuWeight& own(const ops::Weight& weight);

}  // namespace ponder::cpu
