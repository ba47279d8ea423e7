#include "ops/packed_layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.hpp"
#include "base/float_types.hpp"

namespace ponder::ops {
namespace {

constexpr std::size_t kAlign = 64;

template <class T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}
template <class T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::size_t scale_bytes(WeightType type, std::size_t groups) {
  switch (type) {
    case WeightType::q8:
      return kBlockRows * sizeof(float);
    case WeightType::q4:
      return groups * kBlockRows * sizeof(std::uint16_t);
    case WeightType::q4tp:
      return groups * kBlockRows + kBlockRows * (2 * sizeof(float) + 2 * sizeof(std::uint16_t));
    default:
      fail(ErrorKind::internal, "{} has no packed layout", weight_type_name(type));
  }
}

}  // namespace

PackedLayout::PackedLayout(WeightType wanted, std::int64_t row_count, std::int64_t col_count)
    : type(wanted), rows(row_count), cols(col_count) {
  constexpr std::int64_t most = std::int64_t{1} << 31;
  if (rows < 0 || cols < 0) {
    fail(ErrorKind::internal, "weight matrix of {} x {}: a size is negative", rows, cols);
  }
  if (rows > most || cols > most) {
    fail(ErrorKind::too_large, "weight matrix of {} x {} does not fit in memory", rows, cols);
  }
  groups = quant_groups(cols);
  blocks = (rows + kBlockRows - 1) / kBlockRows;
  group_bytes = std::size_t{kQuantGroup} * kBlockRows / (type == WeightType::q8 ? 1 : 2);
  scales = static_cast<std::size_t>(groups) * group_bytes;
  const std::size_t used = scales + scale_bytes(type, static_cast<std::size_t>(groups));
  block_bytes = (used + kAlign - 1) / kAlign * kAlign;  // below 2^36, and blocks at most 2^27
}

PackedLayout::Place PackedLayout::place(int lane, std::int64_t i) const {
  const std::size_t group = static_cast<std::size_t>(i / kQuantGroup) * group_bytes;
  auto step = static_cast<std::size_t>(i % kQuantGroup / 4);
  const auto in_step = static_cast<std::size_t>(lane) * 4 + static_cast<std::size_t>(i % 4);
  const std::size_t steps = group_bytes / (std::size_t{4} * kBlockRows);
  const unsigned shift = step >= steps ? 4 : 0;
  step %= steps;
  return {group + step * 4 * kBlockRows + in_step, shift};
}

void PackedLayout::write_code(std::byte* block, int lane, std::int64_t i, unsigned code) const {
  const Place at = place(lane, i);
  block[at.byte] |= static_cast<std::byte>(code << at.shift);
}

void PackedLayout::write_row(std::span<std::byte> packed, std::int64_t r, const QuantizedRow& row) const {
  std::byte* const block = packed.data() + static_cast<std::size_t>(r / kBlockRows) * block_bytes;
  const auto lane = static_cast<int>(r % kBlockRows);
  const unsigned zero = type == WeightType::q8 ? 128 : 8;
  for (std::int64_t i = 0; i < groups * kQuantGroup; ++i) {
    write_code(block, lane, i, i < cols ? row.codes[static_cast<std::size_t>(i)] : zero);
  }
  write_scales({block, block_bytes}, lane, row);
}

void PackedLayout::write_scales(std::span<std::byte> block_span, int lane, const QuantizedRow& row) const {
  std::byte* const block = block_span.data();
  std::byte* const at = block + scales;
  const auto wide_lane = static_cast<std::size_t>(lane);
  if (type == WeightType::q8) {
    put(at + wide_lane * sizeof(float), f16_to_float(row.scales[0]));
    return;
  }
  const auto count = static_cast<std::size_t>(groups);
  for (std::size_t g = 0; g < count; ++g) {
    if (type == WeightType::q4) put(at + (g * kBlockRows + wide_lane) * 2, row.scales[g]);
    if (type == WeightType::q4tp) put(at + g * kBlockRows + wide_lane, row.rungs[g]);
  }
  if (type == WeightType::q4tp) {
    const auto [first, factor] = ladder_powers(row.lo, row.step);
    std::byte* const at_ladder = block + ladder();
    put(at_ladder + wide_lane * 4, first);
    put(at_ladder + (kBlockRows + wide_lane) * 4, factor);
    put(at_ladder + (4 * kBlockRows + wide_lane) * 2, row.lo);
    put(at_ladder + (5 * kBlockRows + wide_lane) * 2, row.step);
  }
}

void PackedLayout::write_padding(std::span<std::byte> packed) const {
  if (rows % kBlockRows == 0) return;
  std::byte* const block = packed.data() + static_cast<std::size_t>(blocks - 1) * block_bytes;
  for (auto lane = static_cast<int>(rows % kBlockRows); lane < kBlockRows; ++lane) {
    for (std::int64_t i = 0; i < groups * kQuantGroup; ++i) {
      write_code(block, lane, i, type == WeightType::q8 ? 128 : 8);
    }
  }
}

void PackedLayout::read_values(const std::byte* packed, std::int64_t r, float* out) const {
  const std::byte* const block = packed + static_cast<std::size_t>(r / kBlockRows) * block_bytes;
  const auto lane = static_cast<int>(r % kBlockRows);
  const auto wide_lane = static_cast<std::size_t>(lane);
  const bool bytes = type == WeightType::q8;
  const unsigned mask = bytes ? 0xFF : 0xF;
  const int zero = bytes ? 128 : 8;
  std::array<float, kLadderRungs> rungs{};
  if (type == WeightType::q4tp) {
    rungs[0] = get<float>(block + ladder() + wide_lane * 4);
    const auto factor = get<float>(block + ladder() + (kBlockRows + wide_lane) * 4);
    for (std::size_t c = 1; c < rungs.size(); ++c) rungs[c] = rungs[c - 1] * factor;
  }
  for (std::int64_t g = 0; g < groups; ++g) {
    const std::byte* const at = block + scales;
    const std::size_t of_group = static_cast<std::size_t>(g) * kBlockRows + wide_lane;
    const float scale = bytes                    ? get<float>(at + wide_lane * 4)
                        : type == WeightType::q4 ? f16_to_float(get<std::uint16_t>(at + of_group * 2))
                                                 : rungs[get<std::uint8_t>(at + of_group) % kLadderRungs];
    for (std::int64_t i = g * kQuantGroup; i < std::min(cols, (g + 1) * kQuantGroup); ++i) {
      const Place from = place(lane, i);
      const unsigned code = (static_cast<unsigned>(block[from.byte]) >> from.shift) & mask;
      out[i] = static_cast<float>(static_cast<int>(code) - zero) * scale;
    }
  }
}

void PackedLayout::read_row(std::span<const std::byte> packed, std::int64_t r, QuantizedRow& row) const {
  const std::byte* const block = packed.data() + static_cast<std::size_t>(r / kBlockRows) * block_bytes;
  const auto lane = static_cast<int>(r % kBlockRows);
  row.codes.resize(static_cast<std::size_t>(cols));
  const unsigned mask = type == WeightType::q8 ? 0xFF : 0xF;
  for (std::int64_t i = 0; i < cols; ++i) {
    const Place at = place(lane, i);
    row.codes[static_cast<std::size_t>(i)] =
        static_cast<std::uint8_t>((static_cast<unsigned>(block[at.byte]) >> at.shift) & mask);
  }
  const std::byte* const at = block + scales;
  const auto wide_lane = static_cast<std::size_t>(lane), count = static_cast<std::size_t>(groups);
  row.scales.clear();
  row.rungs.clear();
  if (type == WeightType::q8) row.scales.push_back(float_to_f16(get<float>(at + wide_lane * sizeof(float))));
  for (std::size_t g = 0; g < count; ++g) {
    if (type == WeightType::q4) {
      row.scales.push_back(get<std::uint16_t>(at + (g * kBlockRows + wide_lane) * 2));
    }
    if (type == WeightType::q4tp) {
      row.rungs.push_back(get<std::uint8_t>(at + g * kBlockRows + wide_lane) % kLadderRungs);
    }
  }
  if (type == WeightType::q4tp) {
    row.lo = get<std::uint16_t>(block + ladder() + (4 * kBlockRows + wide_lane) * 2);
    row.step = get<std::uint16_t>(block + ladder() + (5 * kBlockRows + wide_lane) * 2);
  }
}

}  // namespace ponder::ops
