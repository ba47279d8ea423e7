// Weight matrices of the reference: decoded to float, then rounded to what the wanted type can hold.
#include <algorithm>
#include <new>
#include <stdexcept>

#include "base/checked_math.hpp"
#include "base/error.hpp"
#include "base/float_types.hpp"
#include "ops/packed_layout.hpp"
#include "ops/reference.hpp"

namespace ponder::ops {
namespace {

// Elements of the matrix, or an error: a matrix has a shape, data, and f8 codes have scales.
std::size_t checked_elements(const WeightData& data) {
  if (data.packed) {  // PackedLayout has checked the sizes
    const std::int64_t count = data.rows * data.cols;
    if (data.data == nullptr && count != 0) {
      fail(ErrorKind::internal, "weight matrix of {} x {} without data", data.rows, data.cols);
    }
    return static_cast<std::size_t>(count);
  }
  natural_weight_type(data.dtype);  // refuses what is no float type of ours
  const bool coded = data.dtype == DType::f8_e4m3;
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
  if (coded != (data.row_scale != nullptr) && data.rows != 0) {
    fail(ErrorKind::unsupported, "weight matrix of type {} {} row scales: only f8_e4m3 has them, and always",
         dtype_name(data.dtype), coded ? "without" : "with");
  }
  return *elements;
}

float rounded(float value, WeightType type) {
  switch (type) {
    case WeightType::bf16:
      return bf16_to_float(float_to_bf16(value));
    case WeightType::f16:
      return f16_to_float(float_to_f16(value));
    default:
      return value;
  }
}

}  // namespace

ReferenceWeight::ReferenceWeight(const WeightData& data, WeightType type)
    : Weight(data.rows, data.cols, type) {
  std::optional<PackedLayout> layout;
  if (data.packed) {
    if (*data.packed != type) {
      fail(ErrorKind::unsupported, "a matrix packed as {} cannot be held as {}",
           weight_type_name(*data.packed), weight_type_name(type));
    }
    layout.emplace(type, rows(), cols());
  }
  const std::size_t elements = checked_elements(data);
  try {
    values_.resize(elements);
    if (type == WeightType::f8_e4m3) scales_.resize(static_cast<std::size_t>(rows()));
  } catch (const std::bad_alloc&) {
    fail(ErrorKind::no_memory, "no memory for a weight matrix of {} x {}", rows(), cols());
  } catch (const std::length_error&) {
    fail(ErrorKind::no_memory, "no memory for a weight matrix of {} x {}", rows(), cols());
  }
  const bool keep_codes = data.dtype == DType::f8_e4m3 && type == WeightType::f8_e4m3;
  QuantizedRow quantized;
  for (std::int64_t r = 0; r < rows(); ++r) {
    const std::span<float> values(mutable_row(r), static_cast<std::size_t>(cols()));
    if (layout) {
      layout->read_values(data.data, r, values.data());
      continue;
    }
    decode_row(data, r);
    if (keep_codes) {
      scales_[static_cast<std::size_t>(r)] = data.row_scale[r];
      continue;
    }
    if (data.dtype == DType::f8_e4m3) {
      for (std::int64_t i = 0; i < cols(); ++i) mutable_row(r)[i] *= data.row_scale[r];
    }
    if (is_quantized(type)) {
      quantize_row(type, values, r, quantized, error_);
      dequantize_row(type, quantized, values);
    } else if (type == WeightType::f8_e4m3) {
      quantize_e4m3_row(r);
    } else {
      round_row(r);
    }
  }
}

std::size_t ReferenceWeight::bytes() const noexcept {
  return (values_.size() + scales_.size()) * sizeof(float);
}

std::size_t ReferenceWeight::owned_bytes() const noexcept {
  return bytes();
}

void ReferenceWeight::decode_row(const WeightData& data, std::int64_t r) {
  const auto width = static_cast<std::size_t>(cols());
  const std::size_t row_bytes = width * dtype_info(data.dtype).block_bytes;
  to_floats(data.dtype, {data.data + static_cast<std::size_t>(r) * row_bytes, row_bytes},
            {mutable_row(r), width});
}

void ReferenceWeight::round_row(std::int64_t r) {
  for (std::int64_t i = 0; i < cols(); ++i) {
    float& value = mutable_row(r)[i];
    const float next = rounded(value, type());
    if (std::isinf(next) && !std::isinf(value)) {
      fail(ErrorKind::unsupported, "weight {} at [{}, {}] is past the range of {}", value, r, i,
           weight_type_name(type()));
    }
    value = next;
  }
}

// As the writers of fp8 checkpoints do it: scale = max(absmax, 1e-12) / 448 in float32, by the reciprocal.
void ReferenceWeight::quantize_e4m3_row(std::int64_t r) {
  float largest = 1e-12F;
  for (std::int64_t i = 0; i < cols(); ++i) {
    const float size = std::fabs(mutable_row(r)[i]);
    if (!std::isfinite(size)) {
      fail(ErrorKind::unsupported, "weight {} at [{}, {}] cannot be quantised to f8_e4m3", mutable_row(r)[i],
           r, i);
    }
    largest = std::max(largest, size);
  }
  const float scale = largest * (1.0F / e4m3_max);
  for (std::int64_t i = 0; i < cols(); ++i) {
    mutable_row(r)[i] = e4m3_to_float(float_to_e4m3(mutable_row(r)[i] / scale));
  }
  scales_[static_cast<std::size_t>(r)] = scale;
}

}  // namespace ponder::ops
