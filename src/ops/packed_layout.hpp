// How quantised matrices lie in memory and in packed model folders: blocks of 16 output rows, so that a
// vector register holds one code of every row and no sum ever runs across lanes. One layout for all
// instruction sets.
//
// A block, for G groups of 32 inputs:
//   q8    [G][8][16][4] u8   step c of a group holds inputs 4c to 4c + 3 of each row, as code + 128
//         [16] f32           row scales (values of half precision)
//   q4    [G][4][16][4] u8   low nibbles of step c: inputs 4c to 4c + 3; high nibbles: 16 + 4c and on
//         [G][16] f16        group scales
//   q4tp  the nibbles of q4, then [G][16] u8 rungs, [16] f32 2^lo, [16] f32 2^step, [16] f16 lo, [16] f16
//         step
// and zeros up to a multiple of 64 bytes. Rows and inputs past the matrix's have the code of zero. Any bytes
// are a matrix: readers mask rungs to 5 bits, and scales that are not finite show in the results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ops/quantize.hpp"
#include "ops/weight.hpp"

namespace ponder::ops {

inline constexpr int kBlockRows = 16;

struct PackedLayout {
  // Throws Error(internal) for a type that is not quantised or a negative size, Error(too_large) for one past
  // 2^31.
  PackedLayout(WeightType type, std::int64_t rows, std::int64_t cols);

  WeightType type;
  std::int64_t rows, cols, groups = 0, blocks = 0;
  std::size_t group_bytes = 0;  // of codes
  std::size_t scales = 0;       // offset of what follows the codes in a block
  std::size_t block_bytes = 0;
  std::size_t bytes() const { return static_cast<std::size_t>(blocks) * block_bytes; }

  // Sets one row of a zeroed packed matrix.
  void write_row(std::span<std::byte> packed, std::int64_t r, const QuantizedRow& row) const;
  // Gives rows past the last one of the last block their code of zero. Call once.
  void write_padding(std::span<std::byte> packed) const;
  // The scales alone of lane `lane` of one block of zeros behind the codes.
  void write_scales(std::span<std::byte> block, int lane, const QuantizedRow& row) const;
  // The values of row r, [cols]; allocates nothing.
  void read_values(const std::byte* packed, std::int64_t r, float* out) const;
  void read_row(std::span<const std::byte> packed, std::int64_t r, QuantizedRow& row) const;
  // Where q4tp's 2^lo stand in a block; 2^step, lo and step follow.
  std::size_t ladder() const { return scales + static_cast<std::size_t>(groups) * kBlockRows; }

 private:
  // Byte and nibble of input `i` in lane `lane`.
  struct Place {
    std::size_t byte;
    unsigned shift;
  };
  Place place(int lane, std::int64_t i) const;
  void write_code(std::byte* block, int lane, std::int64_t i, unsigned code) const;
};

}  // namespace ponder::ops
