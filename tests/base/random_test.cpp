// Expected values: SplitMix64 and the polar method written anew in Python, with exact integers and logarithms
// of 60 digits.
#include "base/random.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"

namespace ponder {
namespace {

TEST(Random, TheGeneratorIsSplitMix64) {
  const std::array<std::pair<std::uint64_t, std::array<std::uint64_t, 5>>, 3> cases = {{
      {0,
       {0xe220a8397b1dcdaf, 0x6e789e6aa1b965f4, 0x06c45d188009454f, 0xf88bb8a8724c81ec, 0x1b39896a51a8749b}},
      {1234567,
       {0x599ed017fb08fc85, 0x2c73f08458540fa5, 0x883ebce5a3f27c77, 0x3fbef740e9177b3f, 0xe3b8346708cb5ecd}},
      {UINT64_MAX,
       {0xe4d971771b652c20, 0xe99ff867dbf682c9, 0x382ff84cb27281e9, 0x6d1db36ccba982d2, 0xb4a0472e578069ae}},
  }};
  for (const auto& [seed, expected] : cases) {
    Random random(seed);
    for (const std::uint64_t value : expected) EXPECT_EQ(random.next_u64(), value) << "seed " << seed;
  }
}

TEST(Random, SkippingIsCalling) {
  Random random(99);
  random.skip(999);
  EXPECT_EQ(random.next_u64(), 0x4d65c6269cc02372u);
  EXPECT_EQ(random.next_u64(), 0x38bcf760b7873e30u);
  // A pending half of normal() belongs to the place before the skip.
  Random one(42);
  Random both(42);
  one.normal();
  one.skip(100);
  both.normal();
  both.normal();  // comes from the same draws
  both.skip(100);
  EXPECT_EQ(one.normal(), both.normal());
}

TEST(Random, UniformNumbersAreExact) {
  Random random(42);
  for (const double expected :
       {0.7415648787718233, 0.1599103928769201, 0.27860113025513866, 0.34419071652363753}) {
    EXPECT_EQ(random.uniform(), expected);
  }
  Random other(42);
  EXPECT_DOUBLE_EQ(other.uniform(-2.0, 6.0), -2.0 + 8.0 * 0.7415648787718233);
}

TEST(Random, NormalNumbersMatchExactLogarithms) {
  Random random(42);
  for (const double expected :
       {0.49295065581737485, -0.6940056672160174, -1.2810773478777024, -0.901557193497174,
        -0.6018779810957331, 0.6425676289796471, -1.5423606818352653, 1.1416459469338724}) {
    EXPECT_NEAR(random.normal(), expected, 4e-16 * std::abs(expected) * 4);
  }
  Random other(20240607);
  for (const double expected :
       {-0.09863859407203744, -0.42677002990510343, -1.2774597126089458, 1.0284729196052824}) {
    EXPECT_NEAR(other.normal(), expected, 4e-16 * std::abs(expected) * 4);
  }
}

TEST(Random, NormalNumbersHaveTheMomentsOfANormal) {
  Random random(7);
  constexpr int kCount = 200000;
  double sum = 0;
  double squares = 0;
  double fourth = 0;
  for (int i = 0; i < kCount; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  // Five standard errors of each mean.
  EXPECT_NEAR(sum / kCount, 0.0, 5 / std::sqrt(kCount));
  EXPECT_NEAR(squares / kCount, 1.0, 5 * std::sqrt(2.0 / kCount));
  EXPECT_NEAR(fourth / kCount, 3.0, 5 * std::sqrt(96.0 / kCount));
}

TEST(Random, BelowIsUnbiasedByRejection) {
  const auto draw = [](std::uint64_t bound, std::size_t count) {
    Random random(7);
    std::vector<std::uint64_t> values(count);
    for (std::uint64_t& value : values) value = random.below(bound);
    return values;
  };
  EXPECT_EQ(draw(10, 12), (std::vector<std::uint64_t>{7, 4, 6, 3, 4, 5, 8, 2, 5, 5, 3, 6}));
  // Bounds where a quarter and nearly half of all draws have to be thrown away.
  EXPECT_EQ(draw(3ull << 62, 6),
            (std::vector<std::uint64_t>{7191089600892374487u, 2781043691533445634u, 10753165928301472203u,
                                        8346079845500723674u, 8632209307422871798u, 6051947643683389182u}));
  EXPECT_EQ(draw((1ull << 63) + 1, 6),
            (std::vector<std::uint64_t>{7392729709960833537u, 1529793891446696394u, 8483179396677329707u,
                                        7711100304988943181u, 6849861940886463535u, 6714756187199313381u}));
  EXPECT_EQ(draw(1, 3), (std::vector<std::uint64_t>{0, 0, 0}));
  EXPECT_THROW(draw(0, 1), Error);
}

}  // namespace
}  // namespace ponder
