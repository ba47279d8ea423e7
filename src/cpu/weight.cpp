#include "cpu/weight.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/checked_math.hpp"
#include "base/error.hpp"
#include "base/float_types.hpp"
#include "base/random.hpp"
#include "base/work_split.hpp"

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
    default:
      break;
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

// ---- random matrices, for measuring
// --------------------------------------------------------------------------

// Spread of values of random e4m3 codes (two exponents around 1).
constexpr float kRandomCodeSpread = 1.5F;

void fill_random_bytes(std::uint64_t seed, std::uint64_t keep, std::uint64_t set, std::span<std::byte> out) {
  Random rng(seed);
  for (std::size_t i = 0; i < out.size(); i += sizeof(std::uint64_t)) {
    const std::uint64_t word = (rng.next_u64() & keep) | set;
    std::memcpy(out.data() + i, &word, std::min(sizeof word, out.size() - i));
  }
}

// Uniform in [-sqrt(3), sqrt(3)] times spread; f8: codes of sizes 1 to 2.
void fill_random_row(WeightType type, float spread, std::uint64_t seed, std::span<std::byte> out) {
  if (type == WeightType::f8_e4m3) {
    fill_random_bytes(seed, 0x8787878787878787U, 0x3838383838383838U, out);
    return;
  }
  const DType dtype = dtype_of(type);
  Random rng(seed);
  constexpr std::size_t chunk = 512;
  std::array<float, chunk> values{};
  const std::size_t width = dtype_info(dtype).block_bytes;
  for (std::size_t at = 0; at < out.size(); at += chunk * width) {
    const std::size_t n = std::min(chunk, (out.size() - at) / width);
    for (std::size_t i = 0; i < n; i += 2) {
      const std::uint64_t word = rng.next_u64();
      constexpr float unit = 1.7320508F / 2147483648.0F;
      values[i] = static_cast<float>(static_cast<std::int32_t>(word)) * unit * spread;
      if (i + 1 < n)
        values[i + 1] = static_cast<float>(static_cast<std::int32_t>(word >> 32U)) * unit * spread;
    }
    from_floats(dtype, {values.data(), n}, out.subspan(at, n * width));
  }
}

void fill_random_block(const ops::PackedLayout& layout, float spread, std::uint64_t seed, std::byte* block) {
  constexpr std::uint64_t all = ~std::uint64_t{0};
  fill_random_bytes(seed, all, 0, {block, layout.block_bytes});
  constexpr float q8_spread = 73.9F, q4_spread = 4.6F;  // of uniform codes
  ops::QuantizedRow scales;
  scales.scales.assign(static_cast<std::size_t>(layout.groups) + 1,  // q8 has one without any group
                       float_to_f16(spread / (layout.type == WeightType::q8 ? q8_spread : q4_spread)));
  scales.rungs.assign(static_cast<std::size_t>(layout.groups), 0);
  scales.lo = float_to_f16(std::log2(spread / q4_spread));
  for (int lane = 0; lane < ops::kBlockRows; ++lane)
    layout.write_scales({block, layout.block_bytes}, lane, scales);
}

}  // namespace

CpuWeight::CpuWeight(const WeightData& data, WeightType type, ThreadPool& pool)
    : Weight(data.rows, data.cols, type) {
  if (data.packed) {
    use_packed(data);
    return;
  }
  check(data);
  if (ops::is_quantized(type)) {
    quantize(data, pool);
    return;
  }
  if (type == WeightType::f8_e4m3) scales_ = AlignedBuffer<float>(static_cast<std::size_t>(rows()));
  const std::size_t size = static_cast<std::size_t>(rows()) * static_cast<std::size_t>(row_bytes());
  if (data.dtype != dtype_of(type)) {
    owned_ = AlignedBuffer<std::byte>(size, Fill::none, HugePages::yes);
    convert(data);
    codes_ = owned_.data();
    return;
  }
  if (data.dtype == DType::f8_e4m3) std::copy_n(data.row_scale, rows(), scales_.data());
  adopt(data.data, size, dtype_info(data.dtype).block_bytes, data.owner);
}

CpuWeight::CpuWeight(std::int64_t rows, std::int64_t cols, WeightType type, std::uint64_t seed,
                     ThreadPool& pool)
    : Weight(rows, cols, type) {
  if (rows < 0 || cols < 0) {
    fail(ErrorKind::internal, "weight matrix of {} x {}: a size is negative", rows, cols);
  }
  std::size_t size = 0;
  if (ops::is_quantized(type)) {
    layout_.emplace(type, rows, cols);
    size = layout_->bytes();
  } else {
    size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(row_bytes());
  }
  owned_ = AlignedBuffer<std::byte>(size, Fill::none, HugePages::yes);
  codes_ = owned_.data();
  const float spread = 1.0F / std::sqrt(static_cast<float>(std::max<std::int64_t>(cols, 1)));
  if (layout_) {
    pool.run(static_cast<int>(layout_->blocks), [&](int block, int) {
      fill_random_block(*layout_, spread, seed + static_cast<std::uint64_t>(block),
                        owned_.data() + static_cast<std::size_t>(block) * layout_->block_bytes);
    });
    return;
  }
  if (type == WeightType::f8_e4m3) {
    scales_ = AlignedBuffer<float>(static_cast<std::size_t>(rows));
    std::fill_n(scales_.data(), scales_.size(), spread / kRandomCodeSpread);
  }
  const WorkSplit split = split_by_bytes(rows, row_bytes(), 1, std::int64_t{1} << 20);
  pool.run(split.tasks, [&](int task, int) {
    const RowRange range = split.range(task);
    for (std::int64_t r = range.begin; r < range.end; ++r) {
      fill_random_row(type, spread, seed + static_cast<std::uint64_t>(r),
                      {owned_.data() + r * row_bytes(), static_cast<std::size_t>(row_bytes())});
    }
  });
}

void CpuWeight::adopt(const std::byte* data, std::size_t size, std::size_t alignment,
                      const std::shared_ptr<const void>& owner) {
  if (owner != nullptr && reinterpret_cast<std::uintptr_t>(data) % alignment == 0) {
    codes_ = data;
    owner_ = owner;
    return;
  }
  owned_ = AlignedBuffer<std::byte>(size, Fill::none, HugePages::yes);
  std::copy_n(data, size, owned_.data());
  codes_ = owned_.data();
}

void CpuWeight::use_packed(const WeightData& data) {
  if (*data.packed != type()) {
    fail(ErrorKind::unsupported, "a matrix packed as {} cannot be held as {}",
         ops::weight_type_name(*data.packed), ops::weight_type_name(type()));
  }
  layout_.emplace(type(), rows(), cols());
  if (data.data == nullptr && layout_->bytes() != 0) {
    fail(ErrorKind::internal, "weight matrix of {} x {} without data", rows(), cols());
  }
  constexpr std::size_t line = 64;
  adopt(data.data, layout_->bytes(), line, data.owner);
}

void CpuWeight::quantize(const WeightData& data, ThreadPool& pool) {
  layout_.emplace(type(), rows(), cols());
  owned_ = AlignedBuffer<std::byte>(layout_->bytes(), Fill::zero, HugePages::yes);
  codes_ = owned_.data();
  const auto width = static_cast<std::size_t>(cols());
  const std::size_t source_bytes = width * dtype_info(data.dtype).block_bytes;
  // One sum a block, added up in order: the same error for any number of threads.
  std::vector<ops::QuantizationError> errors(static_cast<std::size_t>(layout_->blocks));
  pool.run(static_cast<int>(layout_->blocks), [&](int block, int) {
    std::vector<float> values(width);
    ops::QuantizedRow row;
    const std::int64_t first = std::int64_t{block} * ops::kBlockRows;
    for (std::int64_t r = first; r < std::min(rows(), first + ops::kBlockRows); ++r) {
      to_floats(data.dtype, {data.data + static_cast<std::size_t>(r) * source_bytes, source_bytes}, values);
      if (data.row_scale != nullptr) {
        for (float& v : values) v *= data.row_scale[r];
      }
      ops::quantize_row(type(), values, r, row, errors[static_cast<std::size_t>(block)]);
      layout_->write_row(owned_.span(), r, row);
    }
  });
  layout_->write_padding(owned_.span());
  for (const ops::QuantizationError& e : errors) {
    error_.difference += e.difference;
    error_.value += e.value;
  }
}

std::int64_t CpuWeight::row_bytes() const noexcept {
  if (layout_) return static_cast<std::int64_t>(layout_->block_bytes / ops::kBlockRows);
  return cols() * static_cast<std::int64_t>(ops::weight_type_bits(type())) / 8;
}

std::span<const std::byte> CpuWeight::packed() const noexcept {
  return layout_ ? std::span{codes_, layout_->bytes()} : std::span<const std::byte>{};
}

std::size_t CpuWeight::bytes() const noexcept {
  if (layout_) return layout_->bytes();
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
    const std::size_t width = dtype_info(target).block_bytes;
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
