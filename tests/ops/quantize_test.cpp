// Rounding to q8, q4 and q4tp: exact where it can be, else as good as a search by brute force, with errors
// and refusals as documented. Expected values come from double-precision loops here.
#include "ops/quantize.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/error.hpp"
#include "base/float_types.hpp"
#include "base/random.hpp"
#include "cpu/quantized_oracle.hpp"

namespace ponder::ops {
namespace {

using test::half_value;

constexpr WeightType kTypes[] = {WeightType::q8, WeightType::q4, WeightType::q4tp};

struct Result {
  QuantizedRow row;
  QuantizationError error;
  std::vector<float> values;
};

Result quantized(WeightType type, const std::vector<float>& values) {
  Result out;
  quantize_row(type, values, 0, out.row, out.error);
  out.values.resize(values.size());
  dequantize_row(type, out.row, out.values);
  return out;
}

double squares_between(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::pow(static_cast<double>(a[i]) - b[i], 2);
  return sum;
}

float random_half(Random& rng, int low, int high) {
  const double size = std::ldexp(rng.uniform(1, 2),
                                 low + static_cast<int>(rng.below(static_cast<std::uint64_t>(high - low))));
  return static_cast<float>(half_value(float_to_f16(static_cast<float>(size))));
}

const std::size_t kWidths[] = {1, 2, 31, 32, 33, 64, 95, 100, 1030};

// ---- exact values
// --------------------------------------------------------------------------------------------

TEST(Quantize, RowsOnAQ8GridComeBackExactly) {
  Random rng(1);
  for (int most = 0; most <= 128; ++most) {
    for (const std::size_t width : kWidths) {
      // Subnormal half scales too.
      const float scale =
          most % 5 == 0 ? static_cast<float>(1 + rng.below(900)) * 0x1p-24F : random_half(rng, -13, 4);
      const float signed_scale = rng.below(2) == 0 ? scale : -scale;
      std::vector<float> values(width);
      const int high = std::min(most, 127);
      for (float& v : values) {
        v = signed_scale *
            static_cast<float>(static_cast<int>(rng.below(static_cast<std::uint64_t>(most + high + 1))) -
                               most);
      }
      const Result got = quantized(WeightType::q8, values);
      EXPECT_EQ(got.values, values) << "largest code " << most << ", " << width << " columns, scale "
                                    << signed_scale;
      EXPECT_EQ(got.error.difference, 0);
      EXPECT_EQ(got.row.scales.size(), 1U);
    }
  }
}

TEST(Quantize, GroupsOnAQ4GridComeBackExactly) {
  Random rng(2);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<float> values(kWidths[rng.below(std::size(kWidths))]);
    for (std::size_t begin = 0; begin < values.size(); begin += 32) {
      const int most = static_cast<int>(rng.below(9));  // 0: a group of zeros
      const float scale =
          rng.below(4) == 0 ? static_cast<float>(1 + rng.below(900)) * 0x1p-24F : random_half(rng, -13, 12);
      const float signed_scale = rng.below(2) == 0 ? scale : -scale;
      for (std::size_t i = begin; i < std::min(values.size(), begin + 32); ++i) {
        const int code = static_cast<int>(rng.below(static_cast<std::uint64_t>(2 * most + 1))) - most;
        values[i] = signed_scale * static_cast<float>(std::min(code, 7));
      }
    }
    const Result got = quantized(WeightType::q4, values);
    EXPECT_EQ(got.values, values) << trial;
    EXPECT_EQ(got.error.difference, 0);
    EXPECT_EQ(got.row.scales.size(), (values.size() + 31) / 32);
  }
}

// The largest value a q4 group can hold: code -8 of the largest half-precision scale.
TEST(Quantize, TheLargestValuesOfQ4AreExact) {
  for (const float sign : {-1.0F, 1.0F}) {
    const std::vector<float> values = {sign * 8 * 65504.0F, sign * -7 * 65504.0F, 0, sign * 65504.0F};
    EXPECT_EQ(quantized(WeightType::q4, values).values, values);
  }
}

// Rows made of some ladder's rungs and codes of all sizes, a group of zeros among them.
TEST(Quantize, RowsOnALadderComeBackExactly) {
  Random rng(3);
  for (int trial = 0; trial < 200; ++trial) {
    const float lo = random_half(rng, 1, 3), step = random_half(rng, -7, -2);
    QuantizedRow row;
    row.lo = float_to_f16(-lo);
    row.step = float_to_f16(step);
    const std::size_t groups = 3 + rng.below(20), width = groups * 32 - rng.below(2) * 5;
    for (std::size_t g = 0; g < groups; ++g) row.rungs.push_back(static_cast<std::uint8_t>(rng.below(32)));
    row.rungs[0] = static_cast<std::uint8_t>((row.rungs[2] + 1) % 32);  // two scales at least show the ladder
    for (std::size_t i = 0; i < width; ++i) {
      row.codes.push_back(static_cast<std::uint8_t>(trial % 3 == 0 && i / 32 == 1 ? 8 : rng.below(16)));
    }
    std::vector<float> values(width);
    dequantize_row(WeightType::q4tp, row, values);
    const Result got = quantized(WeightType::q4tp, values);
    ASSERT_EQ(got.values, values) << trial << ": lo " << -lo << " step " << step;
    EXPECT_EQ(got.error.difference, 0);
  }
}

TEST(Quantize, ZerosStayZeros) {
  for (const WeightType type : kTypes) {
    for (const std::size_t width : kWidths) {
      std::vector<float> values(width, 0.0F);
      for (std::size_t i = 0; i < width; i += 2) values[i] = -0.0F;
      const Result got = quantized(type, values);
      for (const float v : got.values) EXPECT_EQ(v, 0.0F);
      EXPECT_EQ(got.error.difference, 0);
      EXPECT_EQ(got.error.value, 0);
      EXPECT_EQ(got.error.relative(), 0);
    }
  }
}

// ---- errors of rounding
// --------------------------------------------------------------------------------------

enum class Shape { gaussian, heavy, tiny, huge, spiky };

std::vector<float> random_row(Random& rng, Shape shape, std::size_t width) {
  std::vector<float> values(width);
  for (float& v : values) {
    const double x = rng.normal();
    switch (shape) {
      case Shape::gaussian:
        v = static_cast<float>(0.02 * x);
        break;
      case Shape::heavy:
        v = static_cast<float>(0.02 * x * x * x);
        break;
      case Shape::tiny:
        v = static_cast<float>(3e-6 * x);  // scales below the normal numbers of half precision
        break;
      case Shape::huge:
        v = static_cast<float>(4e4 * x);
        break;
      case Shape::spiky:
        v = static_cast<float>(rng.below(20) == 0 ? x : 0.001 * x);
        break;
    }
  }
  return values;
}

// Sum of squared errors of plain rounding with one scale, in double.
double plain_error(std::span<const float> x, double scale, double least, double most) {
  double sum = 0;
  for (const float v : x) {
    const double code = scale == 0 ? 0 : std::clamp(std::nearbyint(v / scale), least, most);
    sum += std::pow(v - code * scale, 2);
  }
  return sum;
}

double extreme_of(std::span<const float> x) {
  return *std::max_element(x.begin(), x.end(), [](float a, float b) { return std::fabs(a) < std::fabs(b); });
}

TEST(Quantize, NeverWorseThanPlainRounding) {
  Random rng(4);
  for (const Shape shape : {Shape::gaussian, Shape::heavy, Shape::tiny, Shape::huge, Shape::spiky}) {
    for (int trial = 0; trial < 100; ++trial) {
      const std::vector<float> x = random_row(rng, shape, kWidths[rng.below(std::size(kWidths))]);
      const Result q8 = quantized(WeightType::q8, x);
      const double scale = half_value(float_to_f16(static_cast<float>(std::fabs(extreme_of(x)) / 127)));
      EXPECT_LE(squares_between(q8.values, x), plain_error(x, scale, -127, 127) * (1 + 1e-5) + 1e-30);

      const Result q4 = quantized(WeightType::q4, x);
      for (std::size_t begin = 0; begin < x.size(); begin += 32) {
        const std::size_t n = std::min<std::size_t>(32, x.size() - begin);
        const auto group = std::span(x).subspan(begin, n);
        const double plain = half_value(float_to_f16(static_cast<float>(extreme_of(group) / -8)));
        EXPECT_LE(squares_between(std::span(q4.values).subspan(begin, n), group),
                  plain_error(group, plain, -8, 7) * (1 + 1e-5) + 1e-30)
            << static_cast<int>(shape) << " at " << begin;
      }
    }
  }
}

// What quantize_row has made of a row it makes again; of q4tp, where enough groups show the ladder.
TEST(Quantize, RoundingARowTwiceChangesNothingMore) {
  Random rng(11);
  for (const Shape shape : {Shape::gaussian, Shape::heavy, Shape::huge, Shape::spiky}) {
    for (int trial = 0; trial < 30; ++trial) {
      const std::vector<float> x = random_row(rng, shape, kWidths[rng.below(std::size(kWidths))]);
      for (const WeightType type : kTypes) {
        if (type == WeightType::q4tp && (x.size() < 1000 || shape == Shape::spiky)) continue;
        const std::vector<float> once = quantized(type, x).values;
        const Result twice = quantized(type, once);
        EXPECT_EQ(twice.values, once) << weight_type_name(type) << " of " << x.size() << " columns";
        EXPECT_EQ(twice.error.difference, 0);
      }
    }
  }
}

// Over a fine grid of scales of both signs: what the best scale of a group can reach.
TEST(Quantize, Q4IsWithinTwoPercentOfTheBestScale) {
  Random rng(5);
  double reached = 0, best = 0, plain = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const std::vector<float> x = random_row(rng, Shape::gaussian, 32);
    reached += squares_between(quantized(WeightType::q4, x).values, x);
    const double extreme = std::fabs(extreme_of(x));
    double least = INFINITY;
    for (double n = 5; n < 12; n += 0.01) {
      for (const double sign : {-1.0, 1.0})
        least = std::min(least, plain_error(x, sign * extreme / n, -8, 7));
    }
    best += least;
    plain += plain_error(x, extreme_of(x) / -8, -8, 7);
  }
  EXPECT_LT(reached, 1.02 * best);
  EXPECT_LT(reached, 0.9 * plain) << "the search gains nothing over the plain scale";
  RecordProperty("reached_over_best", std::to_string(reached / best));
}

// Each group has the rung that suits it best, and a ladder costs little over free scales.
TEST(Quantize, Q4tpTakesTheBestRungOfItsLadder) {
  Random rng(6);
  double with_ladder = 0, free = 0;
  for (int trial = 0; trial < 60; ++trial) {
    const std::vector<float> x = random_row(rng, Shape::gaussian, 1024);
    const Result got = quantized(WeightType::q4tp, x);
    const auto ladder = scale_ladder(got.row.lo, got.row.step);
    for (std::size_t g = 0; g < 32; ++g) {
      const auto group = std::span(x).subspan(g * 32, 32);
      double least = INFINITY;
      for (const float s : ladder) least = std::min(least, plain_error(group, s, -8, 7));
      EXPECT_LE(squares_between(std::span(got.values).subspan(g * 32, 32), group), least * (1 + 1e-4));
      for (double n = 5; n < 10; n += 0.05)
        least = std::min(least, plain_error(group, std::fabs(extreme_of(group)) / n, -8, 7));
      free += least;
    }
    with_ladder += squares_between(got.values, x);
  }
  EXPECT_LT(with_ladder, 1.05 * free);
  RecordProperty("ladder_over_free", std::to_string(with_ladder / free));
}

// Rows far from 1, where half-precision scales would end: a ladder's are float.
TEST(Quantize, Q4tpHoldsRowsOfAnySize) {
  Random rng(7);
  for (const double size : {1e-30, 1e-12, 1e-5, 1.0, 1e4}) {
    std::vector<float> x(256);
    for (float& v : x) v = static_cast<float>(size * rng.normal());
    const Result got = quantized(WeightType::q4tp, x);
    double value = 0;
    for (const float v : x) value += std::pow(static_cast<double>(v), 2);
    // The logarithms of 1e-30 are of 1/16: rungs may miss by 2 %.
    EXPECT_LT(squares_between(got.values, x), (size < 1e-20 ? 0.02 : 0.012) * value) << size;
  }
}

TEST(Quantize, TheErrorIsTheOneItsValuesShow) {
  Random rng(8);
  for (const WeightType type : kTypes) {
    QuantizationError total;
    double difference = 0, value = 0;
    for (const std::size_t width : kWidths) {
      const std::vector<float> x = random_row(rng, Shape::heavy, width);
      QuantizedRow row;
      quantize_row(type, x, 0, row, total);
      std::vector<float> y(width);
      dequantize_row(type, row, y);
      difference += squares_between(x, y);
      for (const float v : x) value += std::pow(static_cast<double>(v), 2);
    }
    EXPECT_NEAR(total.difference, difference, 1e-12 * difference);
    EXPECT_NEAR(total.value, value, 1e-12 * value);
    EXPECT_NEAR(total.relative(), std::sqrt(difference / value), 1e-12);
  }
}

// ---- the ladder
// ----------------------------------------------------------------------------------------------

// containers.md: rung 0 = 2^lo, rung c + 1 = rung c * 2^step, float32 multiplications in that order.
TEST(Quantize, LadderIsAChainOfFloatProducts) {
  Random rng(9);
  for (int trial = 0; trial < 500; ++trial) {
    const std::uint16_t lo = float_to_f16(static_cast<float>(rng.uniform(-14, 4)));
    const std::uint16_t step = float_to_f16(static_cast<float>(rng.uniform(0, 0.7)));
    const auto got = scale_ladder(lo, step);
    auto rung = static_cast<float>(std::pow(2.0, half_value(lo)));
    const auto factor = static_cast<float>(std::pow(2.0, half_value(step)));
    for (int c = 0; c < 32; ++c, rung = rung * factor) ASSERT_EQ(got[static_cast<std::size_t>(c)], rung) << c;
    EXPECT_EQ(ladder_powers(lo, step), std::pair(got[0], factor));
  }
  const auto halves = scale_ladder(float_to_f16(-6), float_to_f16(0.5F));
  EXPECT_EQ(halves[0], 0x1p-6F);
  EXPECT_EQ(halves[1], 0x1p-6F * 1.41421356F);
  EXPECT_EQ(halves[2], 0x1p-6F * 1.41421356F * 1.41421356F);  // not 2^-5
  EXPECT_NE(halves[2], 0x1p-5F);
  const auto flat = scale_ladder(0, 0);
  EXPECT_EQ(flat[0], 1.0F);
  EXPECT_EQ(flat[31], 1.0F);
}

TEST(Quantize, LadderOfTheWriterIsRoundedFirst) {
  Random rng(10);
  const std::vector<float> x = random_row(rng, Shape::heavy, 640);
  const Result got = quantized(WeightType::q4tp, x);
  const auto ladder = scale_ladder(got.row.lo, got.row.step);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double scale = ladder[got.row.rungs[i / 32]];
    EXPECT_NEAR(got.row.codes[i] - 8, std::clamp(std::nearbyint(x[i] / scale), -8.0, 7.0), 1e-9) << i;
  }
}

// ---- refusals
// ------------------------------------------------------------------------------------------------

std::string refusal(WeightType type, const std::vector<float>& values, std::int64_t row) {
  try {
    QuantizedRow out;
    QuantizationError error;
    quantize_row(type, values, row, out, error);
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::unsupported);
    return e.what();
  }
  return "taken";
}

TEST(Quantize, WhatHasNoCodeIsRefusedInOneLine) {
  for (const WeightType type : kTypes) {
    const std::string name(weight_type_name(type));
    std::vector<float> values(70, 0.5F);
    values[68] = std::numeric_limits<float>::quiet_NaN();
    EXPECT_EQ(refusal(type, values, 7), "weight nan at [7, 68] cannot be quantised to " + name);
    values[68] = -std::numeric_limits<float>::infinity();
    EXPECT_EQ(refusal(type, values, 7), "weight -inf at [7, 68] cannot be quantised to " + name);
    const float past = type == WeightType::q8 ? 128.1F * 65504 : 8.1F * 65504;
    values[68] = -past;
    EXPECT_EQ(refusal(type, values, 9),
              fmt::format("weight {} in row 9 is past the range of {}", -past, name));
    values[68] = 3.4e38F;
    EXPECT_THAT(refusal(type, values, 9), testing::HasSubstr("in row 9 is past the range of " + name));
    values[68] = 7 * 65504.0F;
    EXPECT_EQ(refusal(type, values, 9), "taken");
  }
}

// ---- properties
// ----------------------------------------------------------------------------------------------

std::vector<float> any_row() {
  const auto width = *rc::gen::inRange<std::size_t>(1, 140);
  const auto exponent = *rc::gen::inRange(-20, 12);
  std::vector<float> values;
  for (std::size_t i = 0; i < width; ++i) {
    const int mantissa = *rc::gen::inRange(-1000, 1001);
    values.push_back(std::ldexp(static_cast<float>(mantissa), exponent - 10));
  }
  return values;
}

TEST(QuantizeProperty, RoundingTwiceChangesNothingMore) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<float> x = any_row();
    for (const WeightType type : {WeightType::q8, WeightType::q4}) {
      const std::vector<float> once = quantized(type, x).values;
      RC_ASSERT(quantized(type, once).values == once);
    }
  }));
}

TEST(QuantizeProperty, ValuesStayWithinHalfAStepOrAreClipped) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<float> x = any_row();
    for (const WeightType type : kTypes) {
      const Result got = quantized(type, x);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double scale = type == WeightType::q8 ? half_value(got.row.scales[0])
                             : type == WeightType::q4
                                 ? half_value(got.row.scales[i / 32])
                                 : scale_ladder(got.row.lo, got.row.step)[got.row.rungs[i / 32]];
        const int top = type == WeightType::q8 ? 255 : 15;
        RC_ASSERT(got.row.codes[i] <= top);
        const bool at_end = got.row.codes[i] == top || got.row.codes[i] <= (type == WeightType::q8 ? 1 : 0);
        const double off = std::fabs(static_cast<double>(got.values[i]) - x[i]);
        RC_ASSERT(at_end || scale == 0 || off <= 0.50001 * std::fabs(scale));
        RC_ASSERT(off <= std::fabs(static_cast<double>(x[i])) * 1.5 + std::fabs(scale));
      }
      for (const std::uint8_t rung : got.row.rungs) RC_ASSERT(rung < 32);
    }
  }));
}

}  // namespace
}  // namespace ponder::ops
