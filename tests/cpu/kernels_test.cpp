// The kernels one by one, for every instruction set this machine has: conversions code by code, sums against
// their stated order, and the shapes at which the linear kernel changes its ways.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/aligned_buffer.hpp"
#include "base/float_types.hpp"
#include "base/random.hpp"
#include "cpu/kernel_choice.hpp"
#include "op_suite_tools.hpp"

namespace ponder::cpu {
namespace {

using ops::testing::expect_same_bits;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
enum Type { f32, bf16, f16, e4m3 };

class Kernels : public ::testing::TestWithParam<InstructionSet> {
 protected:
  const KernelTable& kernels_ = kernels_for(GetParam());

  // The product-sum step of this instruction set: fused where there is a fused instruction.
  float step(float a, float b, float c) const {
    return GetParam() == InstructionSet::scalar ? a * b + c : std::fma(a, b, c);
  }
};

std::vector<float> normals(Random& rng, std::size_t n) {
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(rng.normal());
  return values;
}

TEST_P(Kernels, EveryCodeOfEveryTypeBecomesItsValue) {
  std::vector<std::uint16_t> halves(65536);
  std::vector<std::uint8_t> bytes(256);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i);
  std::vector<float> got(halves.size()), want(halves.size());

  kernels_.embed[bf16](halves.data(), 65536, 1.0F, got.data());
  std::transform(halves.begin(), halves.end(), want.begin(), bf16_to_float);
  expect_same_bits(got, want, "bf16");
  kernels_.embed[f16](halves.data(), 65536, 1.0F, got.data());
  std::transform(halves.begin(), halves.end(), want.begin(), f16_to_float);
  expect_same_bits(got, want, "f16");

  got.resize(256);
  want.resize(256);
  kernels_.embed[e4m3](bytes.data(), 256, 1.0F, got.data());
  std::transform(bytes.begin(), bytes.end(), want.begin(), e4m3_to_float);
  expect_same_bits(got, want, "e4m3");
  kernels_.embed[e4m3](bytes.data(), 256, 0.3F, got.data());
  for (float& v : want) v *= 0.3F;
  expect_same_bits(got, want, "e4m3 scaled");
}

TEST_P(Kernels, EmbedReadsAndWritesExactlyItsLength) {
  Random rng(1);
  for (int n = 1; n <= 70; ++n) {
    std::vector<std::uint8_t> codes(
        static_cast<std::size_t>(n));  // exact: a read past the end shows under ASan
    for (auto& c : codes) c = static_cast<std::uint8_t>(rng.below(127));
    std::vector<float> out(static_cast<std::size_t>(n) + 3, -7.0F);
    kernels_.embed[e4m3](codes.data(), n, 2.0F, out.data());
    for (std::size_t i = 0; i < out.size(); ++i) {
      EXPECT_EQ(out[i], i < codes.size() ? 2.0F * e4m3_to_float(codes[i]) : -7.0F) << n << " at " << i;
    }
  }
}

TEST_P(Kernels, RoundsToBf16AsTheFormatSays) {
  Random rng(2);
  std::vector<float> x = {0.0F,
                          -0.0F,
                          kInfinity,
                          -kInfinity,
                          kNan,
                          std::bit_cast<float>(0x7F800001U),
                          std::numeric_limits<float>::max(),
                          std::numeric_limits<float>::denorm_min()};
  for (int i = 0; i < 4000; ++i) {
    const auto high = static_cast<std::uint32_t>(rng.below(0x10000)) << 16U;
    for (const std::uint32_t low : {0x7FFFU, 0x8000U, 0x8001U, 0xFFFFU})
      x.push_back(std::bit_cast<float>(high | low));
  }
  std::vector<float> got(x.size()), want(x.size());
  kernels_.round_bf16(x.data(), static_cast<std::int64_t>(x.size()), got.data());
  std::transform(x.begin(), x.end(), want.begin(), [](float v) { return bf16_to_float(float_to_bf16(v)); });
  expect_same_bits(got, want, "bf16");
}

TEST_P(Kernels, ExponentialIsRightEverywhere) {
  // Through the softmax of two positions, 0 and x < 0: the second becomes exp(x).
  double worst = 0;
  for (double x = -87.0; x <= 0; x += 0.0037) {
    float s[64] = {0.0F, static_cast<float>(x)};
    float max = -kInfinity, sum = 0;
    kernels_.softmax(s, 0, 2, &max, &sum);
    const double want = std::exp(static_cast<double>(static_cast<float>(x)));
    worst = std::max(worst, std::fabs(s[1] - want) / want);
  }
  EXPECT_LT(worst, 1.5e-7);  // 2^-23 and a quarter
  for (const float x : {-88.0F, -104.0F, -1e4F, -1e30F, -kInfinity}) {
    float s[64] = {0.0F, x};
    float max = -kInfinity, sum = 0;
    kernels_.softmax(s, 0, 2, &max, &sum);
    EXPECT_EQ(s[0], 1.0F);
    EXPECT_LE(s[1], 1.2e-38F);
    EXPECT_GE(s[1], 0.0F);
    EXPECT_LE(sum, 1.0F);
  }
}

TEST_P(Kernels, SigmoidAtTheEdges) {
  const std::vector<float> gate = {-kInfinity, -1e30F, -200.0F, -88.5F, -87.0F, -20.0F,    0.0F,
                                   20.0F,      87.0F,  88.5F,   200.0F, 1e30F,  kInfinity, kNan};
  std::vector<float> x(gate.size(), 1.0F);
  kernels_.sigmoid_mul(x.data(), gate.data(), static_cast<std::int64_t>(x.size()));
  for (std::size_t i = 0; i + 1 < gate.size(); ++i) {
    const double want = 1.0 / (1.0 + std::exp(-static_cast<double>(gate[i])));
    EXPECT_NEAR(x[i], want, 3e-7 * want + 2e-38) << gate[i];
  }
  EXPECT_TRUE(std::isnan(x.back()));
}

TEST_P(Kernels, SoftmaxUsesItsRangeAlone) {
  Random rng(3);
  for (int trial = 0; trial < 300; ++trial) {
    const auto scores = normals(rng, 64);
    const int lo = static_cast<int>(rng.below(64)), hi = lo + 1 + static_cast<int>(rng.below(64 - lo));
    float before = trial % 3 == 0 ? -kInfinity : static_cast<float>(rng.normal());
    float a[64], b[64], max_a = before, max_b = before, sum_a = 1.25F, sum_b = 1.25F;
    for (int i = 0; i < 64; ++i) {
      a[i] = i >= lo && i < hi ? scores[static_cast<std::size_t>(i)] : kNan;
      b[i] = i >= lo && i < hi ? scores[static_cast<std::size_t>(i)] : kInfinity;
    }
    const float faded_a = kernels_.softmax(a, lo, hi, &max_a, &sum_a);
    const float faded_b = kernels_.softmax(b, lo, hi, &max_b, &sum_b);
    EXPECT_EQ(sum_a, sum_b);
    EXPECT_EQ(faded_a, faded_b);
    const float top = std::max(before, *std::max_element(scores.begin() + lo, scores.begin() + hi));
    EXPECT_EQ(max_a, top);
    double want = 1.25 * std::exp(static_cast<double>(before) - top);
    EXPECT_NEAR(faded_a, std::exp(static_cast<double>(before) - top), 2e-7);
    for (int i = lo; i < hi; ++i) {
      EXPECT_EQ(a[i], b[i]);
      want += std::exp(static_cast<double>(scores[static_cast<std::size_t>(i)]) - top);
    }
    EXPECT_NEAR(sum_a, want, 1e-6 * want);
  }
}

// Every element of a gemm is one chain of multiply-adds in the order of i, whatever the tile.
TEST_P(Kernels, GemmSumsInOrder) {
  Random rng(4);
  for (int trial = 0; trial < 60; ++trial) {
    const int rows = 1 + static_cast<int>(rng.below(14)), depth = static_cast<int>(rng.below(40));
    const int cols = 1 + static_cast<int>(rng.below(150));
    const auto a = normals(rng, std::size_t(rows) * std::size_t(depth + 1));
    const auto b = normals(rng, std::size_t(depth + 1) * std::size_t(cols));
    const auto init = normals(rng, std::size_t(rows) * std::size_t(cols));
    const auto scale = normals(rng, static_cast<std::size_t>(rows));
    const bool transposed = trial % 2 == 1, fresh = trial % 3 == 0, scaled = trial % 4 == 1;
    std::vector<float> c(init.size(), kNan);
    Gemm g{};
    g.a = a.data();
    g.a_row = transposed ? 1 : depth + 1;
    g.a_step = transposed ? rows : 1;
    g.b = b.data();
    g.b_row = cols;
    if (!fresh) g.init = init.data();
    g.init_row = cols;
    if (scaled) g.scale = scale.data();
    g.scale_step = 1;
    g.c = c.data();
    g.c_row = cols;
    g.rows = rows;
    g.cols = cols;
    g.depth = depth;
    kernels_.gemm(g);
    std::vector<float> want(c.size());
    for (int r = 0; r < rows; ++r) {
      for (int n = 0; n < cols; ++n) {
        const std::size_t at = std::size_t(r) * std::size_t(cols) + std::size_t(n);
        float sum = fresh ? 0.0F : init[at];
        if (scaled && !fresh) sum *= scale[static_cast<std::size_t>(r)];
        for (int i = 0; i < depth; ++i) {
          sum = step(a[static_cast<std::size_t>(r * g.a_row + i * g.a_step)],
                     b[std::size_t(i) * std::size_t(cols) + std::size_t(n)], sum);
        }
        want[at] = sum;
      }
    }
    expect_same_bits(c, want, "gemm");
  }
}

// Rows as linear_panel wants them.
AlignedBuffer<float> packed(const std::vector<float>& x, int rows, int cols) {
  const int blocks = (cols + kPanelCols - 1) / kPanelCols;
  AlignedBuffer<float> out(static_cast<std::size_t>(blocks) * rows * kPanelCols);
  for (int r = 0; r < rows; ++r) {
    for (int i = 0; i < cols; ++i) {
      out[(static_cast<std::size_t>(i / kPanelCols) * rows + r) * kPanelCols + i % kPanelCols] =
          x[static_cast<std::size_t>(r) * cols + i];
    }
  }
  return out;
}

struct LinearCase {
  int w_rows, cols, x_rows;
};

// Around the sizes where tiles, panels and column blocks begin and end.
const LinearCase kLinearCases[] = {{1, 1, 1},     {3, 15, 2},    {4, 16, 13},    {5, 17, 14},
                                   {64, 512, 14}, {65, 513, 20}, {70, 1300, 96}, {131, 1024, 31},
                                   {66, 527, 95}, {7, 2063, 17}};

std::vector<std::uint8_t> random_codes(Random& rng, Type type, std::int64_t count) {
  const std::size_t width = type == f32 ? 4 : type == e4m3 ? 1 : 2;
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(count) * width);
  for (std::int64_t i = 0; i < count; ++i) {
    const auto v = static_cast<float>(rng.normal());
    const std::uint16_t half = type == bf16 ? float_to_bf16(v) : float_to_f16(v);
    const std::uint8_t byte = float_to_e4m3(v);
    const void* from = type == f32    ? static_cast<const void*>(&v)
                       : type == e4m3 ? &byte
                                      : static_cast<const void*>(&half);
    std::memcpy(bytes.data() + static_cast<std::size_t>(i) * width, from, width);
  }
  return bytes;
}

TEST_P(Kernels, LinearOfManyRowsHasTheBitsOfEachRowAlone) {
  Random rng(5);
  AlignedBuffer<float> scratch(kLinearScratchFloats);
  std::fill(scratch.begin(), scratch.end(), kNan);
  for (const LinearCase& c : kLinearCases) {
    const auto x = normals(rng, static_cast<std::size_t>(c.x_rows) * c.cols);
    const auto scale = normals(rng, static_cast<std::size_t>(c.w_rows));
    const auto bias = normals(rng, static_cast<std::size_t>(c.w_rows));
    for (const Type type : {f32, bf16, f16, e4m3}) {
      SCOPED_TRACE(testing::Message()
                   << c.w_rows << " x " << c.cols << ", " << c.x_rows << " rows, type " << type);
      const auto codes = random_codes(rng, type, std::int64_t{c.w_rows} * c.cols);
      std::vector<float> values(static_cast<std::size_t>(c.w_rows) * c.cols);
      kernels_.embed[type](codes.data(), static_cast<std::int64_t>(values.size()), 1.0F, values.data());
      const auto start = normals(rng, static_cast<std::size_t>(c.w_rows) * c.x_rows);
      std::vector<float> together = start, alone = start, panel = start;
      const auto packed_x = packed(x, c.x_rows, c.cols);
      LinearBlock b{};
      b.w = codes.data();
      b.w_rows = c.w_rows;
      b.cols = c.cols;
      b.scale = type == e4m3 ? scale.data() : nullptr;
      b.x = x.data();
      b.x_stride = c.cols;
      b.x_rows = c.x_rows;
      b.bias = bias.data();
      b.y = together.data();
      b.y_stride = c.w_rows;
      b.accumulate = true;
      kernels_.linear[type](b);
      for (int r = 0; r < c.x_rows; ++r) {
        LinearBlock one = b;
        one.x = x.data() + std::int64_t{r} * c.cols;
        one.y = alone.data() + std::int64_t{r} * c.w_rows;
        one.x_rows = 1;
        kernels_.linear[type](one);
      }
      b.x = packed_x.data();
      b.y = panel.data();
      b.scratch = scratch.data();
      kernels_.linear_panel[type](b);
      expect_same_bits(panel, alone, "panel and alone");
      expect_same_bits(together, alone, "together and alone");
      for (int r = 0; r < c.x_rows; ++r) {
        for (int o = 0; o < c.w_rows; ++o) {
          double sum = 0, size = 0;
          for (int i = 0; i < c.cols; ++i) {
            const double term = static_cast<double>(values[static_cast<std::size_t>(o) * c.cols + i]) *
                                x[static_cast<std::size_t>(r) * c.cols + i];
            sum += term;
            size += std::fabs(term);
          }
          const double by = type == e4m3 ? scale[static_cast<std::size_t>(o)] : 1.0;
          const auto at = static_cast<std::size_t>(r) * c.w_rows + o;
          const double want = sum * by + bias[static_cast<std::size_t>(o)] + start[at];
          ASSERT_NEAR(together[at], want, 4e-6 * (size * std::fabs(by) + 10)) << r << ", " << o;
        }
      }
    }
  }
}

TEST_P(Kernels, LinearKeepsNanCodes) {
  for (const int nan_at : {0, 5, 31, 32}) {  // in whole vectors and in the tail
    for (const std::uint8_t nan : {std::uint8_t{0x7F}, std::uint8_t{0xFF}}) {
      std::vector<std::uint8_t> codes(2 * 33, 0x38);  // 1.0
      codes[static_cast<std::size_t>(nan_at)] = nan;
      const std::vector<float> x(33, 0.0F);
      float y[2];
      LinearBlock b{};
      b.w = codes.data();
      b.w_rows = 2;
      b.cols = 33;
      b.x = x.data();
      b.x_stride = 33;
      b.x_rows = 1;
      b.y = y;
      b.y_stride = 2;
      kernels_.linear[e4m3](b);
      EXPECT_TRUE(std::isnan(y[0]));
      EXPECT_EQ(y[1], 0.0F);
    }
  }
}

std::string isa_name(const ::testing::TestParamInfo<InstructionSet>& info) {
  return std::string(name(info.param));
}
INSTANTIATE_TEST_SUITE_P(Cpu, Kernels, ::testing::ValuesIn(attainable(detect_cpu_features())), isa_name);

}  // namespace
}  // namespace ponder::cpu
