#include "base/float_types.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"

namespace ponder {
namespace {

std::uint32_t bits_of(float value) {
  return std::bit_cast<std::uint32_t>(value);
}

// The value of a code from the definition of such formats: sign, exponent with bias, fraction, subnormals.
// Infinity and NaN are the caller's.
double defined_value(std::uint32_t code, int exponent_bits, int mantissa_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<int>(code & ((1U << mantissa_bits) - 1));
  const auto exponent = static_cast<int>((code >> mantissa_bits) & ((1U << exponent_bits) - 1));
  const bool negative = ((code >> (mantissa_bits + exponent_bits)) & 1U) != 0;
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, 1 - bias - mantissa_bits)
                               : std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
  return negative ? -magnitude : magnitude;
}

// The nearest of a format's ascending non-negative values, ties to the even code, by search.
std::uint32_t nearest_code(double magnitude, const std::vector<double>& values) {
  const auto above = std::lower_bound(values.begin(), values.end(), magnitude);
  if (above == values.begin()) return 0;
  if (above == values.end()) return static_cast<std::uint32_t>(values.size() - 1);
  const auto high = static_cast<std::uint32_t>(above - values.begin());
  const double up = *above - magnitude;
  const double down = magnitude - *(above - 1);
  if (up != down) return up < down ? high : high - 1;
  return high % 2 == 0 ? high : high - 1;
}

nlohmann::json numbers() {
  std::ifstream in(PONDER_TEST_DATA "/formats/cases-numbers.json");
  return nlohmann::json::parse(in);
}

TEST(FloatTypes, EveryF16PatternWidensToItsDefinition) {
  for (std::uint32_t code = 0; code <= 0xFFFF; ++code) {
    const float value = f16_to_float(static_cast<std::uint16_t>(code));
    if ((code & 0x7C00U) == 0x7C00U) {
      EXPECT_EQ(std::signbit(value), (code & 0x8000U) != 0) << code;
      EXPECT_EQ(std::isinf(value), (code & 0x3FFU) == 0) << code;
      EXPECT_EQ(std::isnan(value), (code & 0x3FFU) != 0) << code;
    } else {
      ASSERT_EQ(bits_of(value), bits_of(static_cast<float>(defined_value(code, 5, 10)))) << code;
    }
  }
}

TEST(FloatTypes, EveryBf16PatternWidensToItsDefinition) {
  for (std::uint32_t code = 0; code <= 0xFFFF; ++code) {
    const float value = bf16_to_float(static_cast<std::uint16_t>(code));
    if ((code & 0x7F80U) == 0x7F80U) {
      EXPECT_EQ(std::signbit(value), (code & 0x8000U) != 0) << code;
      EXPECT_EQ(std::isnan(value), (code & 0x7FU) != 0) << code;
    } else {
      ASSERT_EQ(bits_of(value), bits_of(static_cast<float>(defined_value(code, 8, 7)))) << code;
    }
  }
}

TEST(FloatTypes, EveryE4m3CodeHasTheGoldenValue) {
  const auto golden = numbers()["e4m3_values_of_codes"];
  ASSERT_EQ(golden.size(), 256U);
  for (std::uint32_t code = 0; code < 256; ++code) {
    const float value = e4m3_to_float(static_cast<std::uint8_t>(code));
    EXPECT_EQ(std::signbit(value), code >= 128) << code;
    if (golden[code].is_null()) {
      EXPECT_TRUE(std::isnan(value)) << code;
      EXPECT_EQ(code & 0x7FU, 0x7FU);
    } else {
      EXPECT_EQ(value, golden[code].get<float>()) << code;
      EXPECT_EQ(value, defined_value(code, 4, 3)) << code;
    }
  }
}

TEST(FloatTypes, EveryPatternComesBack) {
  for (std::uint32_t code = 0; code < 256; ++code) {
    EXPECT_EQ(float_to_e4m3(e4m3_to_float(static_cast<std::uint8_t>(code))), code);
  }
  for (std::uint32_t code = 0; code <= 0xFFFF; ++code) {
    const auto half = static_cast<std::uint16_t>(code);
    const bool half_nan = (code & 0x7FFFU) > 0x7C00U;
    const bool bf16_nan = (code & 0x7FFFU) > 0x7F80U;
    EXPECT_EQ(float_to_f16(f16_to_float(half)), half_nan ? half | 0x200U : half) << code;
    EXPECT_EQ(float_to_bf16(bf16_to_float(half)), bf16_nan ? half | 0x40U : half) << code;
  }
}

// Between any two neighbours: just below the middle, the middle (a tie), just above it.
template <class Narrow>
void check_rounding(const std::vector<double>& values, Narrow narrow, std::uint32_t sign) {
  for (std::size_t i = 0; i + 1 < values.size(); ++i) {
    const double middle = (values[i] + values[i + 1]) / 2;
    const auto tie = static_cast<float>(middle);
    ASSERT_EQ(static_cast<double>(tie), middle) << i;
    const auto low = static_cast<std::uint32_t>(i);
    const std::uint32_t even = low % 2 == 0 ? low : low + 1;
    const float below = std::nextafter(tie, 0.0F);
    const float above = std::nextafter(tie, std::numeric_limits<float>::infinity());
    ASSERT_EQ(narrow(tie), even) << tie;
    ASSERT_EQ(narrow(below), low) << below;
    ASSERT_EQ(narrow(above), low + 1) << above;
    ASSERT_EQ(narrow(-tie), even | sign) << -tie;
    ASSERT_EQ(narrow(-above), (low + 1) | sign) << -above;
  }
}

std::vector<double> values_up_to(std::uint32_t last, int exponent_bits, int mantissa_bits) {
  std::vector<double> values;
  for (std::uint32_t code = 0; code <= last; ++code) {
    values.push_back(defined_value(code, exponent_bits, mantissa_bits));
  }
  return values;
}

TEST(FloatTypes, NarrowingRoundsToNearestTiesToEven) {
  check_rounding(values_up_to(0x7BFF, 5, 10), float_to_f16, 0x8000U);
  check_rounding(values_up_to(0x7E, 4, 3), float_to_e4m3, 0x80U);
  // bf16 subnormals end where float's do, so halves of them still exist there.
  check_rounding(values_up_to(0x7F7F, 8, 7), float_to_bf16, 0x8000U);
}

TEST(FloatTypes, NarrowingRandomFloatsFindsTheNearestValue) {
  const std::vector<double> f16 = values_up_to(0x7BFF, 5, 10);
  const std::vector<double> e4m3 = values_up_to(0x7E, 4, 3);
  std::mt19937_64 random(20);
  for (int i = 0; i < 200'000; ++i) {
    // Exponents around both formats' ranges, with subnormals and a little beyond.
    const double magnitude =
        std::ldexp(1.0 + static_cast<double>(random() >> 11) * 0x1p-53, static_cast<int>(random() % 45) - 28);
    const auto value = static_cast<float>(magnitude);
    if (value < 65504.0F) {
      ASSERT_EQ(float_to_f16(value), nearest_code(value, f16)) << value;
    }
    ASSERT_EQ(float_to_e4m3(value), nearest_code(value, e4m3)) << value;
  }
}

TEST(FloatTypes, OverflowInfinityAndNan) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(float_to_f16(65504.0F), 0x7BFF);
  EXPECT_EQ(float_to_f16(std::nextafter(65520.0F, 0.0F)), 0x7BFF);
  EXPECT_EQ(float_to_f16(65520.0F), 0x7C00);  // the tie between the largest value and 65536
  EXPECT_EQ(float_to_f16(1e30F), 0x7C00);
  EXPECT_EQ(float_to_f16(-infinity), 0xFC00);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(float_to_bf16(-infinity), 0xFF80);
  EXPECT_EQ(float_to_e4m3(448.0F), 0x7E);
  EXPECT_EQ(float_to_e4m3(464.0F), 0x7E);
  EXPECT_EQ(float_to_e4m3(500.0F), 0x7E);
  EXPECT_EQ(float_to_e4m3(-1e30F), 0xFE);
  EXPECT_EQ(float_to_e4m3(infinity), 0x7E);
  // All NaNs stay NaN, also those whose payload sits only in bits that are dropped.
  for (const std::uint32_t pattern : {0x7F800001U, 0x7FC00000U, 0x7FFFFFFFU, 0xFF800001U, 0xFFC12345U}) {
    const float nan = std::bit_cast<float>(pattern);
    const bool negative = (pattern >> 31) != 0;
    EXPECT_GT(float_to_f16(nan) & 0x7FFFU, 0x7C00U) << pattern;
    EXPECT_GT(float_to_bf16(nan) & 0x7FFFU, 0x7F80U) << pattern;
    EXPECT_EQ(float_to_e4m3(nan), negative ? 0xFF : 0x7F) << pattern;
    EXPECT_EQ(float_to_f16(nan) >> 15, negative ? 1 : 0);
    EXPECT_EQ(float_to_bf16(nan) >> 15, negative ? 1 : 0);
  }
}

TEST(FloatTypes, GoldenRounding) {
  const auto golden = numbers();
  for (const auto& entry : golden["e4m3_encode"]) {
    EXPECT_EQ(float_to_e4m3(entry["x"].get<float>()), entry["code"].get<int>()) << entry;
  }
  for (const auto& entry : golden["bf16_round"]) {
    EXPECT_EQ(float_to_bf16(entry["x"].get<float>()), entry["bits"].get<int>()) << entry;
  }
  const auto& rows = golden["fp8_rows"];
  for (std::size_t row = 0; row < rows["weight"].size(); ++row) {
    const float scale = rows["scale"][row].get<float>();
    for (std::size_t i = 0; i < rows["weight"][row].size(); ++i) {
      EXPECT_EQ(float_to_e4m3(rows["weight"][row][i].get<float>() / scale), rows["codes"][row][i].get<int>());
    }
  }
}

TEST(FloatTypes, BulkConversionsReadUnalignedBytes) {
  const std::vector<float> values{0.0F, -0.0F, 1.5F, -2.25F, 448.0F, 0.001953125F};
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16, DType::f8_e4m3}) {
    ASSERT_TRUE(is_plain_float(type));
    const std::size_t size = *dtype_bytes(type, values.size());
    std::vector<std::byte> buffer(size + 1);
    const std::span<std::byte> odd = std::span(buffer).subspan(1);
    from_floats(type, values, odd);
    std::vector<float> back(values.size());
    to_floats(type, odd, back);
    for (std::size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(bits_of(back[i]), bits_of(values[i])) << dtype_name(type) << ' ' << i;
    }
  }
  to_floats(DType::f16, {}, {});
}

TEST(FloatTypes, BulkConversionsMatchTheScalarOnesInEveryPosition) {
  std::vector<std::byte> bytes(512);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 37 + 11);
  std::vector<float> out(256);
  to_floats(DType::bf16, bytes, out);
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint16_t code = 0;
    std::memcpy(&code, bytes.data() + 2 * i, 2);
    EXPECT_EQ(bits_of(out[i]), std::uint32_t{code} << 16);
  }
}

TEST(FloatTypes, BulkConversionsRefuseOtherTypesAndSizes) {
  std::array<std::byte, 8> bytes{};
  std::array<float, 2> out{};
  EXPECT_FALSE(is_plain_float(DType::i32));
  EXPECT_THROW(to_floats(DType::i32, bytes, out), Error);
  EXPECT_THROW(to_floats(DType::f16, bytes, out), Error);
  EXPECT_THROW(from_floats(DType::f8_e5m2, out, std::span(bytes).first(2)), Error);
  EXPECT_THROW(from_floats(DType::bf16, out, bytes), Error);
}

TEST(DTypes, SizesCountBlocksAndRefuseWhatDoesNotFit) {
  EXPECT_EQ(dtype_bytes(DType::f32, 3), 12U);
  EXPECT_EQ(dtype_bytes(DType::c64, 3), 24U);
  EXPECT_EQ(dtype_bytes(DType::f4, 6), 3U);
  EXPECT_EQ(dtype_bytes(DType::f4, 5), std::nullopt);
  EXPECT_EQ(dtype_bytes(DType::f6_e2m3, 8), 6U);
  EXPECT_EQ(dtype_bytes(DType::f6_e3m2, 6), std::nullopt);
  EXPECT_EQ(dtype_bytes(DType::f64, UINT64_MAX / 8), UINT64_MAX / 8 * 8);
  EXPECT_EQ(dtype_bytes(DType::f64, UINT64_MAX / 8 + 1), std::nullopt);
  EXPECT_EQ(dtype_bytes(DType::boolean, 0), 0U);
  EXPECT_EQ(dtype_name(DType::f8_e4m3), "f8_e4m3");
}

}  // namespace
}  // namespace ponder
