// The kernels of the delta rule and of a cache's codes, for every instruction set this machine has, against
// plain loops in double or in the stated order.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "cpu/kernel_choice.hpp"
#include "op_suite_tools.hpp"

namespace ponder::cpu {
namespace {

using ops::testing::expect_same_bits;

class SequenceKernels : public ::testing::TestWithParam<InstructionSet> {
 protected:
  const KernelTable& kernels_ = kernels_for(GetParam());

  float step(float a, float b, float c) const {
    return GetParam() == InstructionSet::scalar ? a * b + c : std::fma(a, b, c);
  }
};

std::vector<float> normals(Random& rng, std::size_t n) {
  std::vector<float> values(n);
  for (float& v : values) v = static_cast<float>(rng.normal());
  return values;
}

TEST_P(SequenceKernels, DeltaGatesAreRightEverywhere) {
  for (const float rate : {0.01F, 1.0F, 8.0F}) {
    std::vector<float> a, b;
    for (int i = -4000; i <= 4000; ++i) a.push_back(static_cast<float>(i) * 0.01F);
    for (const float x : {-1e30F, -200.0F, 200.0F, 1e30F, 1e-30F}) a.push_back(x);
    b = a;
    const std::vector<float> raw = a;
    kernels_.delta_gates(a.data(), b.data(), rate, 0.5F, static_cast<int>(a.size()));
    for (std::size_t i = 0; i < a.size(); ++i) {
      const double x = static_cast<double>(raw[i]) + 0.5;
      const double exponent = -rate * (std::fmax(x, 0.0) + std::log1p(std::exp(-std::fabs(x))));
      const double decay = std::exp(exponent);
      EXPECT_NEAR(a[i], decay, 3e-7 * (1 - exponent) * decay + 1e-37) << raw[i] << " rate " << rate;
      const double strength = 1 / (1 + std::exp(-static_cast<double>(raw[i])));
      EXPECT_NEAR(b[i], strength, 3e-7 * strength + 1e-37) << raw[i];
    }
  }
  float a = std::numeric_limits<float>::quiet_NaN(), b = a;
  kernels_.delta_gates(&a, &b, 1.0F, 0.0F, 1);
  EXPECT_TRUE(std::isnan(a) && std::isnan(b));
}

TEST_P(SequenceKernels, DeltaFactorsOfRowsTogetherAndAlone) {
  constexpr int chunk = 32;
  Random rng(2);
  for (const auto& [slot, count] : {std::pair{0, 32}, {0, 1}, {5, 11}, {15, 2}, {31, 1}, {16, 16}}) {
    const auto dots = normals(rng, std::size_t{2} * chunk * chunk);
    std::vector<float> e(chunk), beta(chunk);
    for (float& v : e) v = static_cast<float>(rng.uniform(0.5, 1.0));
    for (float& v : beta) v = static_cast<float>(rng.uniform(0.0, 1.0));
    const auto start = normals(rng, chunk);
    std::vector<float> decay = start, faded(chunk), minus(chunk), factors(dots.size());
    float carry = 0.75F;
    DeltaFactors f{};
    f.e = e.data();
    f.beta = beta.data();
    f.dots = dots.data();
    f.decay = decay.data();
    f.carry = &carry;
    f.faded = faded.data();
    f.minus_beta_faded = minus.data();
    f.factors = factors.data();
    f.slot = slot;
    f.count = count;
    f.chunk = chunk;
    kernels_.delta_factors(f);
    std::vector<float> plain = start;
    float all = 0.75F;
    for (int i = 0; i < count; ++i) {
      const int t = slot + i;
      const auto row = static_cast<std::size_t>(i);
      all = t == 0 ? e[row] : all * e[row];
      for (int s = 0; s < t; ++s) plain[static_cast<std::size_t>(s)] *= e[row];
      plain[static_cast<std::size_t>(t)] = 1.0F;
      EXPECT_EQ(faded[row], all);
      EXPECT_EQ(minus[row], -beta[row] * all);
      for (int s = 0; s <= t; ++s) {
        const auto at = static_cast<std::size_t>(i * chunk + s), query = at + std::size_t{chunk} * count;
        const float d = plain[static_cast<std::size_t>(s)];
        EXPECT_EQ(factors[query], d * dots[query]) << i << ", " << s;
        if (s == t) continue;
        EXPECT_EQ(factors[at], -beta[row] * d * dots[at]) << i << ", " << s;
      }
    }
    EXPECT_EQ(carry, all);
    expect_same_bits(std::span(decay).first(static_cast<std::size_t>(slot + count)),
                     std::span(plain).first(static_cast<std::size_t>(slot + count)), "decay");
  }
}

struct Triangle {
  int slot, count, cols;
};

// Every row in order of s, from a u that holds NaN from the row on: nothing behind a row is touched.
TEST_P(SequenceKernels, LowerProductSumsInOrder) {
  constexpr int chunk = 32;
  Random rng(3);
  for (const Triangle& c :
       {Triangle{0, 32, 128}, {0, 1, 1}, {7, 1, 64}, {3, 9, 33}, {24, 8, 47}, {13, 19, 100}}) {
    SCOPED_TRACE(testing::Message() << c.count << " rows from slot " << c.slot << ", " << c.cols
                                    << " columns");
    const auto size = static_cast<std::size_t>(chunk) * static_cast<std::size_t>(c.cols);
    const auto x = normals(rng, size), y = normals(rng, size), factor = normals(rng, chunk * chunk);
    const auto x_scale = normals(rng, chunk), y_scale = normals(rng, chunk);
    std::vector<float> u = normals(rng, size);
    const auto cell = [&](int r, int n) { return static_cast<std::size_t>(r * c.cols + n); };
    std::fill(u.begin() + static_cast<std::ptrdiff_t>(cell(c.slot, 0)), u.end(),
              std::numeric_limits<float>::quiet_NaN());
    std::vector<float> want_u = u, want_o(size), o(size, -7.0F);
    for (const bool solve : {true, false}) {
      for (int i = 0; i < c.count; ++i) {
        for (int n = 0; n < c.cols; ++n) {
          const auto r = static_cast<std::size_t>(i);
          float sum = x_scale[r] * x[cell(i, n)];
          if (solve) sum = step(y_scale[r], y[cell(i, n)], sum);
          for (int s = 0; s < c.slot + i + (solve ? 0 : 1); ++s) {
            sum = step(factor[static_cast<std::size_t>(i * chunk + s)], want_u[cell(s, n)], sum);
          }
          (solve ? want_u[cell(c.slot + i, n)] : want_o[cell(i, n)]) = sum;
        }
      }
    }
    LowerProduct g{};
    g.x = x.data();
    g.x_row = c.cols;
    g.x_scale = x_scale.data();
    g.y = y.data();
    g.y_row = c.cols;
    g.y_scale = y_scale.data();
    g.factor = factor.data();
    g.factor_row = chunk;
    g.u = u.data();
    g.u_row = c.cols;
    g.c = u.data() + cell(c.slot, 0);
    g.c_row = c.cols;
    g.slot = c.slot;
    g.count = c.count;
    g.cols = c.cols;
    kernels_.lower_product(g);
    expect_same_bits(u, want_u, "solved");
    g.y = nullptr;
    g.c = o.data();
    kernels_.lower_product(g);
    const auto rows = static_cast<std::size_t>(c.count) * static_cast<std::size_t>(c.cols);
    expect_same_bits(std::span(o).first(rows), std::span(want_o).first(rows), "product");
    for (std::size_t i = rows; i < size; ++i) EXPECT_EQ(o[i], -7.0F) << "behind the last row";
  }
}

TEST_P(SequenceKernels, EveryCodeOfACacheBecomesItsValue) {
  std::vector<std::int8_t> codes(256);
  for (std::size_t i = 0; i < codes.size(); ++i)
    codes[i] = static_cast<std::int8_t>(static_cast<int>(i) - 128);
  for (const int cols : {1, 7, 16, 19, 64}) {
    const int rows = 256 / cols;
    const std::vector<float> row_scale(static_cast<std::size_t>(rows), 0.3F);
    std::vector<float> column_scale(static_cast<std::size_t>(cols));
    for (int c = 0; c < cols; ++c)
      column_scale[static_cast<std::size_t>(c)] = 0.01F * static_cast<float>(c + 1);
    for (const bool by_row : {true, false}) {
      const int stride = cols + (by_row ? 0 : 3);
      std::vector<float> out(static_cast<std::size_t>(rows * stride) + 1, -7.0F);
      Q8Tile tile{};
      tile.codes = codes.data();
      (by_row ? tile.row_scale : tile.column_scale) = (by_row ? row_scale : column_scale).data();
      tile.out = out.data();
      tile.code_stride = cols;
      tile.stride = stride;
      tile.rows = rows;
      tile.cols = cols;
      kernels_.expand_q8(tile);
      for (int i = 0; i < rows * stride; ++i) {
        const int r = i / stride, c = i % stride;
        const float scale = by_row ? 0.3F : column_scale[static_cast<std::size_t>(std::min(c, cols - 1))];
        const float expected = c < cols ? static_cast<float>(r * cols + c - 128) * scale : -7.0F;
        EXPECT_EQ(out[static_cast<std::size_t>(i)], expected) << r << ", " << c << " of " << cols;
      }
      EXPECT_EQ(out[static_cast<std::size_t>(rows * stride)], -7.0F);
    }
  }
}

// Few rows take wider tiles: the same bits.
TEST_P(SequenceKernels, GemmOfFewRowsHasTheBitsOfMany) {
  Random rng(4);
  for (const int cols : {1, 16, 32, 33, 48, 64, 100, 128, 144, 160}) {
    const int rows = 13, depth = 37;
    const auto a = normals(rng, static_cast<std::size_t>(rows) * depth),
               b = normals(rng, std::size_t{37} * 160);
    std::vector<float> together(static_cast<std::size_t>(rows) * cols), parts = together;
    Gemm g{};
    g.a = a.data();
    g.a_row = depth;
    g.a_step = 1;
    g.b = b.data();
    g.b_row = cols;
    g.c = together.data();
    g.c_row = cols;
    g.rows = rows;
    g.cols = cols;
    g.depth = depth;
    kernels_.gemm(g);
    for (int r = 0; r < rows;) {
      Gemm part = g;
      part.rows = std::min(r % 3 + 1, rows - r);
      part.a = a.data() + static_cast<std::ptrdiff_t>(r) * depth;
      part.c = parts.data() + static_cast<std::ptrdiff_t>(r) * cols;
      kernels_.gemm(part);
      r += part.rows;
    }
    expect_same_bits(parts, together, "columns " + std::to_string(cols));
  }
}

std::string isa_name(const ::testing::TestParamInfo<InstructionSet>& info) {
  return std::string(name(info.param));
}
INSTANTIATE_TEST_SUITE_P(Cpu, SequenceKernels, ::testing::ValuesIn(attainable(detect_cpu_features())),
                         isa_name);

}  // namespace
}  // namespace ponder::cpu
