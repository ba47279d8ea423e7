// Rounding of weights to few levels: the codes and scales of one row, and their values.
//
// The encodings are those of CMF's q8_row, q4_tiled and q4tp (see WeightType); how a backend lays them out in
// memory is packed_layout.hpp's subject. Plain arithmetic in one order: every machine makes the same codes.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "ops/weight.hpp"

namespace ponder::ops {

inline constexpr int kLadderRungs = 32;

// One row of a quantised matrix. Codes are unsigned: q8 holds code + 128, q4 and q4tp 0 to 15 for -8 to 7.
struct QuantizedRow {
  std::vector<std::uint8_t> codes;    // [cols]
  std::vector<std::uint16_t> scales;  // half precision; q8: one, q4: [groups], q4tp: none
  std::vector<std::uint8_t> rungs;    // q4tp: [groups]
  std::uint16_t lo = 0, step = 0;     // q4tp, half precision
};

// Groups of kQuantGroup inputs that a row of `cols` has; the last may be shorter.
constexpr std::int64_t quant_groups(std::int64_t cols) {
  return (cols + kQuantGroup - 1) / kQuantGroup;
}

// The scales that q4tp's lo and step stand for: rung 0 = 2^lo, each next one 2^step times the one before, in
// float32.
std::array<float, kLadderRungs> scale_ladder(std::uint16_t lo, std::uint16_t step);
// 2^lo and 2^step in float32.
std::pair<float, float> ladder_powers(std::uint16_t lo, std::uint16_t step);

// Rounds to nearest; 4-bit scales are searched for the least sum of squared errors of their group. Values
// that a row of q8 or q4 can hold exactly come back exactly; those of q4tp do where the groups' scales show
// their ladder. Adds to `error`. `row` names the row in messages. Throws Error(unsupported) for values that
// are not finite and for scales past half precision.
void quantize_row(WeightType type, std::span<const float> values, std::int64_t row, QuantizedRow& out,
                  QuantizationError& error);

// The values of a row, [cols].
void dequantize_row(WeightType type, const QuantizedRow& row, std::span<float> values);

}  // namespace ponder::ops
