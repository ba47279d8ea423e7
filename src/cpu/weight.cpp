#include "cpu/weight.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checked_math.hpp"
#include "base/error.hpp"
#include "base/float_types.hpp"

namespace ponder::cpu {
namespace {

using ops::WeightData;
using ops::WeightType;

DType dtype_of(WeightType type) {
  switch (type) {
    case WeightType::f32:
      return DType::f32;
    case WeightType::bf16:
      return DType::bf16;
    case WeightType::f16:
      return DType::f16;
    case WeightType::f8_e4m3:
      return DType::f8_e4m3;
  }
  fail(ErrorKind::internal, "weight type {} does not exist", static_cast<int>(type));
}

void check(const WeightData& data) {
  ops::natural_weight_type(data.dtype);  // refuses what is no float type of ours
  if (data.rows < 0 || data.cols < 0) {
    fail(ErrorKind::internal, "weight matrix of {} x {}: a size is negative", data.rows, data.cols);
  }
  const auto elements =
      checked_mul(static_cast<std::uint64_t>(data.rows), static_cast<std::uint64_t>(data.cols));
  if (!elements || *elements > PTRDIFF_MAX / sizeof(float)) {
    fail(ErrorKind::too_large, "weight matrix of {} x {} does not fit in memory", data.rows, data.cols);
  }
  if (data.data == nullptr && *elements != 0) {
    fail(ErrorKind::internal, "weight matrix of {} x {} without data", data.rows, data.cols);
  }
  const bool coded = data.dtype == DType::f8_e4m3;
  if (coded != (data.row_scale != nullptr) && data.rows != 0) {
    fail(ErrorKind::unsupported, "weight matrix of type {} {} row scales: only f8_e4m3 has them, and always",
         dtype_name(data.dtype), coded ? "without" : "with");
  }
}

}  // namespace

CpuWeight::CpuWeight(const WeightData& data, WeightType type) : Weight(data.rows, data.cols, type) {
  check(data);
  if (type == WeightType::f8_e4m3) scales_ = AlignedBuffer<float>(static_cast<std::size_t>(rows()));
  const std::size_t size = static_cast<std::size_t>(rows()) * static_cast<std::size_t>(row_bytes());
  if (data.dtype != dtype_of(type)) {
    owned_ = AlignedBuffer<std::byte>(size, Fill::none, HugePages::yes);
    convert(data);
    codes_ = owned_.data();
    return;
  }
  if (data.dtype == DType::f8_e4m3) std::copy_n(data.row_scale, rows(), scales_.data());
  const auto alignment = static_cast<std::uintptr_t>(ops::weight_type_bits(type) / 8);
  if (data.owner != nullptr && reinterpret_cast<std::uintptr_t>(data.data) % alignment == 0) {
    codes_ = data.data;
    owner_ = data.owner;
    return;
  }
  owned_ = AlignedBuffer<std::byte>(size, Fill::none, HugePages::yes);
  std::copy_n(data.data, size, owned_.data());
  codes_ = owned_.data();
}

std::size_t CpuWeight::bytes() const noexcept {
  return static_cast<std::size_t>(rows()) * static_cast<std::size_t>(row_bytes()) + scales_.bytes();
}

std::size_t CpuWeight::owned_bytes() const noexcept {
  return owned_.bytes() + scales_.bytes();
}

void CpuWeight::convert(const WeightData& data) {
  const auto width = static_cast<std::size_t>(cols());
  const std::size_t source_bytes = width * dtype_info(data.dtype).block_bytes;
  AlignedBuffer<float> values(width, Fill::none);
  for (std::int64_t r = 0; r < rows(); ++r) {
    to_floats(data.dtype, {data.data + static_cast<std::size_t>(r) * source_bytes, source_bytes},
              values.span());
    if (data.row_scale != nullptr) {
      for (float& v : values) v *= data.row_scale[r];
    }
    store_row(r, values.span());
  }
}

// Rounds one row of values to the wanted codes. For f8, as the writers of fp8 checkpoints do it:
// scale = max(absmax, 1e-12) / 448.
void CpuWeight::store_row(std::int64_t r, std::span<float> values) {
  const DType target = dtype_of(type());
  const float limit = type() == WeightType::bf16  ? bf16_to_float(0x7F7F)
                      : type() == WeightType::f16 ? f16_to_float(0x7BFF)
                                                  : INFINITY;
  float largest = 1e-12F;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const float size = std::fabs(values[i]);
    if (type() == WeightType::f8_e4m3 && !std::isfinite(size)) {
      fail(ErrorKind::unsupported, "weight {} at [{}, {}] cannot be quantised to f8_e4m3", values[i], r, i);
    }
    largest = std::max(largest, size);
  }
  if (type() == WeightType::f8_e4m3) {
    const float scale = largest * (1.0F / e4m3_max);
    for (float& v : values) v /= scale;
    scales_[static_cast<std::size_t>(r)] = scale;
  }
  std::byte* const out = owned_.data() + r * row_bytes();
  from_floats(target, values, {out, static_cast<std::size_t>(row_bytes())});
  if (largest <= limit) return;
  for (std::size_t i = 0; i < values.size(); ++i) {  // some value may have become infinite
    float back = 0;
    const std::size_t width = static_cast<std::size_t>(ops::weight_type_bits(type())) / 8;
    to_floats(target, {out + i * width, width}, {&back, 1});
    if (std::isinf(back) && !std::isinf(values[i])) {
      fail(ErrorKind::unsupported, "weight {} at [{}, {}] is past the range of {}", values[i], r, i,
           ops::weight_type_name(type()));
    }
  }
}

const CpuWeight& own(const ops::Weight& weight) {
  const auto* mine = dynamic_cast<const CpuWeight*>(&weight);
  if (mine == nullptr) fail(ErrorKind::internal, "cpu backend: a weight of another backend was passed");
  return *mine;
}

}  // namespace ponder::cpu
