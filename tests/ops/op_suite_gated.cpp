// gated_linear, and products over the shapes at which packed kernels change their tiles; random matrices.
#include <cmath>
#include <limits>

#include "op_suite_stored.hpp"

namespace ponder::ops::testing {
namespace {

struct GatedCase {
  int rows = 0;
  WeightCache gate, up;
  Matrix x, y;

  GatedCase(Random& rng, int row_count, std::int64_t in, std::int64_t out)
      : rows(row_count),
        gate(WeightCache::random(rng, out, in)),
        up(chance(rng, 0.5) ? WeightCache(Stored(rng, DType::f32, out, in), gate_type())
                            : WeightCache::random(rng, out, in)),
        x(Matrix::normal(rng, rows, in)),
        y(Matrix::scattered(rng, rows, out)) {}

  // Types an f32 matrix can always become.
  WeightType gate_type() const { return gate.type() == WeightType::f8_e4m3 ? WeightType::q4 : gate.type(); }

  std::string name() const {
    return fmt::format("gated rows {} in {} out {}: {} and {}", rows, x.cols(), y.cols(),
                       weight_type_name(gate.type()), weight_type_name(up.type()));
  }
  std::vector<float> run(Backend& b, int first, int count) const {
    Matrix out = y;
    b.gated_linear(gate.of(b), up.of(b), x.view(first), count, out.view(first));
    out.expect_guards(name());
    return out.dense(first, count);
  }
  std::vector<float> in_two_steps(Backend& b) const {
    Matrix a = y, other = y;
    const LinearOut outs[] = {{&gate.of(b), nullptr, a.view(), false},
                              {&up.of(b), nullptr, other.view(), false}};
    b.linear(outs, x.view(), rows);
    b.silu_mul(a.view(), other.view(), rows, static_cast<int>(y.cols()));
    return a.dense();
  }
};

TEST_P(OpSuite, GatedLinearIsLinearAndSiluMulToTheLastBit) {
  for (ActivationType activations : GetParam().activations) {
    const Bench bench = make_bench(activations);
    Random rng(seed() + 30);
    for (int i = 0; i < trials() && !HasFailure(); ++i) {
      const bool large = i % 8 == 0;  // cut into several tasks, and rows into blocks
      const GatedCase c(rng, large ? random_between(rng, 90, 300) : random_between(rng, 1, 40),
                        random_dim(rng), large ? random_between(rng, 200, 700) : random_dim(rng));
      SCOPED_TRACE(c.name());
      const std::vector<float> got = c.run(*bench.subject, 0, c.rows);
      expect_same_bits(got, c.in_two_steps(*bench.subject), "in two steps");
      for (const auto& twin : bench.twins) expect_same_bits(c.run(*twin, 0, c.rows), got, "twin");
      const auto width = static_cast<std::size_t>(c.y.cols());
      for (const int r : {0, c.rows / 2, c.rows - 1}) {
        expect_same_bits(c.run(*bench.subject, r, 1),
                         std::span(got).subspan(static_cast<std::size_t>(r) * width, width), "row alone");
      }
    }
  }
}

// A quantised product with one matrix, compared with the reference row by row.
struct PackedCase {
  int rows = 0;
  WeightCache weight;
  Matrix x;

  PackedCase(Random& rng, WeightType type, int row_count, std::int64_t in, std::int64_t out)
      : rows(row_count), weight(Stored(rng, DType::f32, out, in), type), x(Matrix::normal(rng, rows, in)) {}

  std::string name() const {
    return fmt::format("{} rows {} in {} out {}", weight_type_name(weight.type()), rows, x.cols(),
                       weight.stored().rows);
  }
  std::vector<float> run(Backend& b, int first, int count) const {
    Matrix y(rows, weight.stored().rows);
    const LinearOut out{&weight.of(b), nullptr, y.view(first), false};
    b.linear({&out, 1}, x.view(first), count);
    return y.dense(first, count);
  }
  std::vector<double> bounds(Backend& reference, const Tolerance& t, std::span<const float> want) const {
    std::vector<double> out;
    const std::vector<float> w = decoded(reference, weight.of(reference));
    const auto cols = static_cast<std::size_t>(x.cols());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const auto outs = static_cast<std::size_t>(weight.stored().rows);
      const float* values = w.data() + i % outs * cols;
      const float* input = x[static_cast<std::int64_t>(i / outs)];
      double size = 0, largest = 0;
      for (std::size_t k = 0; k < cols; ++k) largest = std::max(largest, std::fabs(double{input[k]}));
      for (std::size_t k = 0; k < cols; ++k)
        size += std::fabs(values[k]) * (std::fabs(input[k]) + largest / 254);
      out.push_back(t.sum * size + 1e-30);
    }
    return out;
  }
  void poison_others(int keep) {
    for (int r = 0; r < rows; ++r) {
      if (r != keep) x.fill_row(r, poison(r));
    }
  }
};

TEST_P(OpSuite, QuantizedProductsOfEveryTileSize) {
  for (ActivationType activations : GetParam().activations) {
    const Bench bench = make_bench(activations);
    Random rng(seed() + 31);
    for (const WeightType type : kQuantized) {
      for (int rows = 1; rows <= 17; ++rows) {
        check_rows(bench, tolerance(), rng,
                   PackedCase(rng, type, rows, random_between(rng, 1, 200), random_between(rng, 1, 50)));
      }
      check_rows(bench, tolerance(), rng, PackedCase(rng, type, 33, 100, 33));
      check_rows(bench, tolerance(), rng, PackedCase(rng, type, 100, 65, 17));
      if (HasFailure()) return;
    }
  }
}

// A value that is no number in one group of one row: that row's results are NaN, the others' bits stay.
TEST_P(OpSuite, QuantizedProductsKeepNanAndInfinityInTheirRow) {
  for (ActivationType activations : GetParam().activations) {
    const Bench bench = make_bench(activations);
    Random rng(seed() + 32);
    for (const WeightType type : kQuantized) {
      PackedCase c(rng, type, 18, 130, 40);
      const std::vector<float> before = c.run(*bench.subject, 0, 18);
      for (const float odd : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()}) {
        const int row = random_between(rng, 0, 17), at = random_between(rng, 0, 129);
        const float kept = c.x[row][at];
        c.x[row][at] = odd;
        const std::vector<float> after = c.run(*bench.subject, 0, 18);
        for (std::size_t i = 0; i < after.size(); ++i) {
          if (static_cast<int>(i / 40) == row) {
            EXPECT_FALSE(std::isfinite(after[i])) << c.name() << " column " << i % 40;
          } else {
            EXPECT_EQ(after[i], before[i]) << c.name();
          }
        }
        c.x[row][at] = kept;
      }
    }
  }
}

// Zeros of either sign, and inputs so small that 127 / size is past the range of float.
TEST_P(OpSuite, QuantizedProductsOfNothingAndOfDenormals) {
  for (ActivationType activations : GetParam().activations) {
    const Bench bench = make_bench(activations);
    Random rng(seed() + 33);
    for (const WeightType type : kQuantized) {
      PackedCase c(rng, type, 5, 70, 20);
      c.x.fill_row(0, 0.0F);
      c.x.fill_row(1, -0.0F);
      c.x.fill_row(2, 1e-40F);
      c.x.fill_row(3, 2e-37F);
      c.x.fill_row(4, -1.5e-45F);
      c.x[4][69] = 1e-37F;
      const std::vector<float> y = c.run(*bench.subject, 0, 5);
      for (std::size_t i = 0; i < y.size(); ++i) {
        EXPECT_LE(std::fabs(y[i]), i / 20 < 2 ? 0.0F : 1e-33F) << c.name() << " row " << i / 20;
      }
      const std::vector<float> plain = c.run(*bench.reference, 0, 5);
      for (const float v : plain) EXPECT_LE(std::fabs(v), 1e-33F) << c.name();
    }
  }
}

TEST_P(OpSuite, RandomMatricesAreFiniteAndTheSameForASeed) {
  for (const WeightType type : kAllTypes) {
    for (const auto& [rows, cols] : {std::pair{37, 100}, {1, 1}, {16, 33}, {130, 257}}) {
      SCOPED_TRACE(fmt::format("{} {} x {}", weight_type_name(type), rows, cols));
      const WeightPtr w = bench_.subject->make_random_weight(rows, cols, type, 77);
      EXPECT_EQ(w->type(), type);
      EXPECT_EQ(w->rows(), rows);
      EXPECT_EQ(w->cols(), cols);
      const std::vector<float> values = decoded(*bench_.subject, *w);
      double squares = 0;
      for (const float v : values) {
        ASSERT_TRUE(std::isfinite(v));
        squares += double{v} * v;
      }
      if (rows * cols > 1000) {
        EXPECT_NEAR(squares / rows, 1.0, 0.25) << "variance times the number of inputs";
      }
      for (const auto& twin : bench_.twins) {
        expect_same_bits(decoded(*twin, *twin->make_random_weight(rows, cols, type, 77)), values, "twin");
      }
      if (rows * cols > 1) {
        EXPECT_NE(decoded(*bench_.subject, *bench_.subject->make_random_weight(rows, cols, type, 78)),
                  values);
      }
      Random rng(5);
      const Matrix x = Matrix::normal(rng, 2, cols);
      Matrix y(2, rows);
      const LinearOut out{w.get(), nullptr, y.view(), false};
      bench_.subject->linear({&out, 1}, x.view(), 2);
      for (const float v : y.dense()) EXPECT_TRUE(std::isfinite(v));
    }
  }
}

}  // namespace
}  // namespace ponder::ops::testing
