#include "cpu/linear_input.hpp"

#include <algorithm>

#include "base/work_split.hpp"

namespace ponder::cpu {
namespace {

// Rows of int8 or bf16 inputs that pass by a task's weights: what stays in a second-level cache beside them.
constexpr int kTileBlock = 16;  // tiles

// Parallel over parts when there is enough to do: body(part).
void for_parts(ThreadPool& pool, std::int64_t parts, std::int64_t bytes_per_part,
               FunctionRef<void(std::int64_t part)> body) {
  constexpr std::int64_t bytes_per_task = 32 * 1024;  // some microseconds: what waking a thread is worth
  const WorkSplit split = split_by_bytes(parts, bytes_per_part, 1, bytes_per_task);
  const auto work = [&](int task, int) {
    const RowRange range = split.range(task);
    for (std::int64_t i = range.begin; i < range.end; ++i) body(i);
  };
  if (split.tasks == 1) {
    work(0, 0);
  } else {
    pool.run(split.tasks, work);
  }
}

std::int64_t round_up(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

}  // namespace

InputForm LinearInputs::form_for(const CpuWeight& weight) const {
  using ops::ActivationType;
  if (weight.layout() != nullptr) {
    if (activations_ != ActivationType::native) return InputForm::padded_rows;
    return weight.type() == ops::WeightType::q8 ? InputForm::int8_wide : InputForm::int8;
  }
  const bool bf16_weight = weight.type() == ops::WeightType::bf16;
  if (bf16_weight && activations_ != ActivationType::f32 && bf16_ != nullptr) return InputForm::bf16;
  const bool round =
      activations_ == ActivationType::bf16 || (activations_ == ActivationType::native && bf16_weight);
  return round ? InputForm::rounded_rows : InputForm::rows;
}

void LinearInputs::start(ops::ConstRows x, int rows, std::int64_t cols) {
  x_ = x;
  rows_ = rows;
  cols_ = cols;
  made_.fill(false);
}

const LinearInput& LinearInputs::get(InputForm form, ThreadPool& pool) {
  const auto at = static_cast<std::size_t>(form);
  LinearInput& input = inputs_[at];
  if (made_[at]) return input;
  made_[at] = true;
  input = {};
  input.form = form;
  input.cols = cols_;
  input.rows = rows_;
  switch (form) {
    case InputForm::rows:
      make_floats(input, false, pool);
      break;
    case InputForm::rounded_rows:
      make_floats(input, true, pool);
      break;
    case InputForm::padded_rows:
      make_padded(input, activations_ == ops::ActivationType::bf16, pool);
      break;
    case InputForm::bf16:
      make_bf16(input, pool);
      break;
    case InputForm::int8:
      make_int8(input, ops::WeightType::q4, pool);
      break;
    case InputForm::int8_wide:
      make_int8(input, ops::WeightType::q8, pool);
      break;
  }
  return input;
}

std::byte* LinearInputs::memory(InputForm form, std::size_t bytes) {
  AlignedBuffer<std::byte>& buffer = buffers_[static_cast<std::size_t>(form)];
  if (buffer.size() < bytes) buffer = AlignedBuffer<std::byte>(bytes, Fill::none, HugePages::yes);
  return buffer.data();
}

void LinearInputs::make_floats(LinearInput& input, bool round, ThreadPool& pool) {
  input.block_rows = kPanelInputs;
  input.panel = rows_ > kernels_.few_rows;
  if (!round && !input.panel) {
    input.data = x_.data;
    input.stride = x_.stride;
    return;
  }
  input.stride = round_up(cols_, kPanelCols);
  auto* const copy = reinterpret_cast<float*>(memory(
      input.form, static_cast<std::size_t>(rows_) * static_cast<std::size_t>(input.stride) * sizeof(float)));
  input.data = copy;
  for_parts(pool, rows_, 2 * cols_ * std::int64_t{sizeof(float)}, [&](std::int64_t r) {
    // A packed row's column blocks lie apart by the rows of its block.
    const std::int64_t first = input.panel ? r / kPanelInputs * kPanelInputs : r;
    const std::int64_t block_rows = input.panel ? std::min<std::int64_t>(kPanelInputs, rows_ - first) : 1;
    float* out = copy + first * input.stride + (r - first) * kPanelCols;
    for (std::int64_t k = 0; k < cols_; k += kPanelCols, out += block_rows * kPanelCols) {
      const std::int64_t n = std::min<std::int64_t>(kPanelCols, cols_ - k);
      if (round) {
        kernels_.round_bf16(x_[r] + k, n, out);
      } else {
        std::copy_n(x_[r] + k, n, out);
      }
      std::fill(out + n, out + kPanelCols, 0.0F);
    }
  });
}

void LinearInputs::make_padded(LinearInput& input, bool round, ThreadPool& pool) {
  input.block_rows = kPanelInputs;
  input.stride = round_up(cols_, kPackedGroup);
  auto* const copy = reinterpret_cast<float*>(memory(
      input.form, static_cast<std::size_t>(rows_) * static_cast<std::size_t>(input.stride) * sizeof(float)));
  input.data = copy;
  for_parts(pool, rows_, 2 * cols_ * std::int64_t{sizeof(float)}, [&](std::int64_t r) {
    float* const out = copy + r * input.stride;
    if (round) {
      kernels_.round_bf16(x_[r], cols_, out);
    } else {
      std::copy_n(x_[r], cols_, out);
    }
    std::fill(out + cols_, out + input.stride, 0.0F);
  });
}

void LinearInputs::make_bf16(LinearInput& input, ThreadPool& pool) {
  constexpr std::int64_t pair = 32;
  input.block_rows = kBf16Inputs;
  input.stride = round_up(cols_, pair);
  auto* const copy = reinterpret_cast<std::uint16_t*>(memory(
      input.form,
      static_cast<std::size_t>(rows_) * static_cast<std::size_t>(input.stride) * sizeof(std::uint16_t)));
  input.data = copy;
  for_parts(pool, rows_, cols_ * std::int64_t{sizeof(float)},
            [&](std::int64_t r) { bf16_->round(x_[r], cols_, input.stride, copy + r * input.stride); });
}

void LinearInputs::make_int8(LinearInput& input, ops::WeightType type, ThreadPool& pool) {
  input.block_rows = kTileBlock * kInputTile;
  const std::int64_t group = ops::int8_group(type), groups = (cols_ + group - 1) / group;
  input.stride = groups * kInputTile * (group + kInputExtra);
  const auto quantize = packed_.quantize_input[packed_kind(type)];
  const std::int64_t tiles = (rows_ + kInputTile - 1) / kInputTile;
  auto* const copy = reinterpret_cast<std::int8_t*>(
      memory(input.form, static_cast<std::size_t>(tiles) * static_cast<std::size_t>(input.stride)));
  input.data = copy;
  // Some groups of all rows of a tile: neighbouring rows share cache lines.
  const std::int64_t part_groups = 512 / group;
  const std::int64_t parts = (groups + part_groups - 1) / part_groups;
  const std::int64_t tile_rows = std::min<std::int64_t>(rows_, kInputTile);
  for_parts(pool, tiles * parts, tile_rows * part_groups * group * std::int64_t{sizeof(float)},
            [&](std::int64_t at) {
              const std::int64_t tile = at / parts, first = at % parts * part_groups;
              const std::int64_t end = std::min(groups, first + part_groups);
              const std::int64_t row = tile * kInputTile;
              const auto count = static_cast<int>(std::min<std::int64_t>(kInputTile, rows_ - row));
              for (int r = 0; r < count; ++r) {
                quantize(x_[row + r], cols_, first, end, count, r, copy + tile * input.stride);
              }
            });
}

}  // namespace ponder::cpu
