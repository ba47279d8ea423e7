// The packed layout byte by byte, by hand-written indexing; round trips over odd shapes; bytes of no origin.
#include "ops/packed_layout.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/float_types.hpp"
#include "base/random.hpp"
#include "cpu/quantized_oracle.hpp"
#include "ops/backend.hpp"

namespace ponder::ops {
namespace {

constexpr WeightType kTypes[] = {WeightType::q8, WeightType::q4, WeightType::q4tp};
constexpr std::int64_t kRows[] = {1, 15, 16, 17, 33};
constexpr std::int64_t kCols[] = {1, 31, 32, 33, 100};

unsigned byte_at(const std::vector<std::byte>& bytes, std::size_t at) {
  return static_cast<unsigned>(bytes.at(at));
}

// Random codes and scales of a row.
QuantizedRow random_row(Random& rng, WeightType type, std::int64_t cols) {
  QuantizedRow row;
  for (std::int64_t i = 0; i < cols; ++i) {
    row.codes.push_back(static_cast<std::uint8_t>(rng.below(type == WeightType::q8 ? 256 : 16)));
  }
  const std::int64_t groups = quant_groups(cols);
  const auto scale = [&] { return float_to_f16(static_cast<float>(rng.uniform(-2, 2))); };
  if (type == WeightType::q8) row.scales = {scale()};
  for (std::int64_t g = 0; g < groups; ++g) {
    if (type == WeightType::q4) row.scales.push_back(scale());
    if (type == WeightType::q4tp) row.rungs.push_back(static_cast<std::uint8_t>(rng.below(32)));
  }
  if (type == WeightType::q4tp) {
    row.lo = scale();
    row.step = float_to_f16(static_cast<float>(rng.uniform(0, 0.3)));
  }
  return row;
}

struct Packed {
  PackedLayout layout;
  std::vector<QuantizedRow> rows;
  std::vector<std::byte> bytes;

  Packed(Random& rng, WeightType type, std::int64_t r, std::int64_t c)
      : layout(type, r, c), bytes(layout.bytes()) {
    for (std::int64_t i = 0; i < r; ++i) {
      rows.push_back(random_row(rng, type, c));
      layout.write_row(bytes, i, rows.back());
    }
    layout.write_padding(bytes);
  }
};

TEST(PackedLayout, SizesAreThoseOfTheDocumentedBlocks) {
  // 2 groups of 32 inputs, 2 blocks of 16 rows.
  EXPECT_EQ(PackedLayout(WeightType::q8, 17, 40).bytes(), 2U * (2 * 8 * 16 * 4 + 16 * 4));
  EXPECT_EQ(PackedLayout(WeightType::q4, 17, 40).bytes(), 2U * (2 * 4 * 16 * 4 + 2 * 16 * 2));
  EXPECT_EQ(PackedLayout(WeightType::q4, 17, 70).bytes(), 2U * (3 * 256 + 3 * 32 + 32));  // up to a line
  EXPECT_EQ(PackedLayout(WeightType::q4tp, 17, 40).bytes(), 2U * (2 * 256 + 2 * 16 + 16 * 12 + 32));
  EXPECT_EQ(PackedLayout(WeightType::q4tp, 16, 128).bytes(), 4U * 256 + 4 * 16 + 16 * 12);
  EXPECT_EQ(PackedLayout(WeightType::q4, 0, 40).bytes(), 0U);
  EXPECT_EQ(PackedLayout(WeightType::q8, 3, 0).bytes(), 64U);
}

TEST(PackedLayout, SizesThatCannotBeAreRefused) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  for (const WeightType type : kTypes) {
    for (const auto& [rows, cols] :
         {std::pair{most, std::int64_t{1}}, {std::int64_t{1}, most}, {most, most}}) {
      try {
        const PackedLayout layout(type, rows, cols);
        ADD_FAILURE() << layout.bytes();
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::too_large);
      }
    }
    EXPECT_THROW(PackedLayout(type, -1, 4), Error);
    EXPECT_THROW(PackedLayout(type, 4, std::numeric_limits<std::int64_t>::min()), Error);
    // The largest there is: no size wraps.
    const PackedLayout large(type, std::int64_t{1} << 31, std::int64_t{1} << 31);
    EXPECT_GE(static_cast<double>(large.bytes()), 0x1p62 * weight_type_bits(type) / 8);
  }
  EXPECT_THROW(PackedLayout(WeightType::bf16, 4, 4), Error);
}

// Every byte of a 17 x 37 matrix, told from the header's picture of a block.
TEST(PackedLayout, Q8ByteByByte) {
  Random rng(1);
  const Packed p(rng, WeightType::q8, 17, 37);
  const std::size_t block = 2 * 512 + 64;
  for (std::size_t r = 0; r < 32; ++r) {
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t group = i / 32, step = i % 32 / 4;
      const unsigned want = r < 17 && i < 37 ? p.rows[r].codes[i] : 128;
      EXPECT_EQ(byte_at(p.bytes, r / 16 * block + ((group * 8 + step) * 16 + r % 16) * 4 + i % 4), want)
          << r << ", " << i;
    }
    const auto scale = test::read_as<float>(p.bytes, r / 16 * block + 1024 + r % 16 * 4);
    EXPECT_EQ(scale, r < 17 ? test::half_value(p.rows[r].scales[0]) : 0.0);
  }
}

void expect_nibbles(const Packed& p, std::size_t block) {
  for (std::size_t r = 0; r < 32; ++r) {
    for (std::size_t i = 0; i < 64; ++i) {
      const std::size_t group = i / 32, half = i % 32 / 16, step = i % 16 / 4;
      const unsigned both = byte_at(p.bytes, r / 16 * block + ((group * 4 + step) * 16 + r % 16) * 4 + i % 4);
      const unsigned want = r < 17 && i < 37 ? p.rows[r].codes[i] : 8;
      EXPECT_EQ(half == 0 ? both % 16 : both / 16, want) << r << ", " << i;
    }
  }
}

TEST(PackedLayout, Q4ByteByByte) {
  Random rng(2);
  const Packed p(rng, WeightType::q4, 17, 37);
  const std::size_t block = 512 + 2 * 32;
  expect_nibbles(p, block);
  for (std::size_t r = 0; r < 32; ++r) {
    for (std::size_t g = 0; g < 2; ++g) {
      const auto scale = test::read_as<std::uint16_t>(p.bytes, r / 16 * block + 512 + (g * 16 + r % 16) * 2);
      EXPECT_EQ(scale, r < 17 ? p.rows[r].scales[g] : 0);
    }
  }
}

TEST(PackedLayout, Q4tpByteByByte) {
  Random rng(3);
  const Packed p(rng, WeightType::q4tp, 17, 37);
  const std::size_t block = 512 + 2 * 16 + 64 + 64 + 32 + 32 + 32;
  expect_nibbles(p, block);
  for (std::size_t r = 0; r < 32; ++r) {
    const std::size_t start = r / 16 * block + 512, lane = r % 16;
    for (std::size_t g = 0; g < 2; ++g) {
      EXPECT_EQ(byte_at(p.bytes, start + g * 16 + lane), r < 17 ? p.rows[r].rungs[g] : 0U);
    }
    const auto first = test::read_as<float>(p.bytes, start + 32 + lane * 4);
    const auto factor = test::read_as<float>(p.bytes, start + 96 + lane * 4);
    EXPECT_EQ(first, r < 17 ? static_cast<float>(std::pow(2.0, test::half_value(p.rows[r].lo))) : 0.0F);
    EXPECT_EQ(factor, r < 17 ? static_cast<float>(std::pow(2.0, test::half_value(p.rows[r].step))) : 0.0F);
    EXPECT_EQ(test::read_as<std::uint16_t>(p.bytes, start + 160 + lane * 2), r < 17 ? p.rows[r].lo : 0);
    EXPECT_EQ(test::read_as<std::uint16_t>(p.bytes, start + 192 + lane * 2), r < 17 ? p.rows[r].step : 0);
    for (std::size_t i = 224; i < 256; ++i) EXPECT_EQ(byte_at(p.bytes, start + i), 0U) << "padding";
  }
}

TEST(PackedLayout, RowsComeBackAsTheyWereWritten) {
  Random rng(4);
  for (const WeightType type : kTypes) {
    for (const std::int64_t rows : kRows) {
      for (const std::int64_t cols : kCols) {
        const Packed p(rng, type, rows, cols);
        for (std::int64_t r = 0; r < rows; ++r) {
          const QuantizedRow& want = p.rows[static_cast<std::size_t>(r)];
          QuantizedRow got;
          got.scales = {1, 2, 3};  // what it held before
          p.layout.read_row(p.bytes, r, got);
          EXPECT_EQ(got.codes, want.codes);
          EXPECT_EQ(got.scales, want.scales);
          EXPECT_EQ(got.rungs, want.rungs);
          EXPECT_EQ(got.lo, want.lo);
          EXPECT_EQ(got.step, want.step);
          std::vector<float> values(static_cast<std::size_t>(cols) + 1, -7.0F),
              from_row(static_cast<std::size_t>(cols));
          p.layout.read_values(p.bytes.data(), r, values.data());
          dequantize_row(type, want, from_row);
          EXPECT_EQ(values.back(), -7.0F) << "wrote past the row";
          values.pop_back();
          EXPECT_EQ(values, from_row);
          for (std::int64_t i = 0; i < cols; ++i) {
            EXPECT_EQ(values[static_cast<std::size_t>(i)],
                      static_cast<float>(test::packed_value(type, p.bytes, cols, r, i)));
          }
        }
      }
    }
  }
}

// write_scales over random codes leaves these alone.
TEST(PackedLayout, ScalesAloneLeaveTheCodes) {
  Random rng(5);
  for (const WeightType type : kTypes) {
    Packed p(rng, type, 16, 70);
    const std::vector<std::byte> before = p.bytes;
    const QuantizedRow other = random_row(rng, type, 70);
    p.layout.write_scales(p.bytes, 5, other);
    EXPECT_TRUE(std::equal(before.begin(), before.begin() + static_cast<std::ptrdiff_t>(p.layout.scales),
                           p.bytes.begin()));
    for (std::int64_t r = 0; r < 16; ++r) {
      QuantizedRow got;
      p.layout.read_row(p.bytes, r, got);
      const QuantizedRow& want = r == 5 ? other : p.rows[static_cast<std::size_t>(r)];
      EXPECT_EQ(got.scales, want.scales);
      EXPECT_EQ(got.rungs, want.rungs);
      EXPECT_EQ(got.codes, p.rows[static_cast<std::size_t>(r)].codes);
    }
  }
}

// Any bytes are a matrix: nothing is read outside them (a heap block of the exact size under ASan), rungs
// count modulo 32, and what a backend makes of them is what the layout says.
TEST(PackedLayout, RandomBytesAreAMatrix) {
  Random rng(6);
  const auto reference = make_reference_backend();
  for (const WeightType type : kTypes) {
    for (const std::int64_t rows : kRows) {
      for (const std::int64_t cols : kCols) {
        const PackedLayout layout(type, rows, cols);
        const std::unique_ptr<std::byte[]> bytes(new std::byte[layout.bytes()]);
        for (std::size_t i = 0; i < layout.bytes(); ++i) bytes[i] = static_cast<std::byte>(rng.below(256));
        const std::span<const std::byte> packed(bytes.get(), layout.bytes());
        WeightData data;
        data.rows = rows;
        data.cols = cols;
        data.data = bytes.get();
        data.packed = type;
        const WeightPtr w = reference->make_weight(data, type);
        for (std::int64_t r = 0; r < rows; ++r) {
          QuantizedRow row;
          layout.read_row(packed, r, row);
          for (const std::uint8_t rung : row.rungs) EXPECT_LT(rung, 32);
          std::vector<float> values(static_cast<std::size_t>(cols)), held(values);
          layout.read_values(bytes.get(), r, values.data());
          const auto id = static_cast<std::int32_t>(r);
          reference->embed(*w, {&id, 1}, {held.data(), cols});
          for (std::int64_t i = 0; i < cols; ++i) {
            const auto want = static_cast<float>(test::packed_value(type, packed, cols, r, i));
            const float got = values[static_cast<std::size_t>(i)];
            EXPECT_TRUE(got == want || (std::isnan(got) && std::isnan(want))) << got << " and " << want;
            EXPECT_TRUE(held[static_cast<std::size_t>(i)] == want || std::isnan(want));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace ponder::ops
