// Weights and the products with them: make_weight, embed, linear, masked_argmax.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "base/error.hpp"
#include "op_suite_stored.hpp"

namespace ponder::ops::testing {
namespace {

// ---- weights ---------------------------------------------------------------------------------------------

// One code of e4m3 with this row scale is at most this far from its neighbour.
double code_step(double value, double scale) {
  return std::fabs(value) / 8 + scale / 512;
}

double largest_of_row(std::span<const float> row) {
  double largest = 1e-12;
  for (float v : row) largest = std::max(largest, std::fabs(static_cast<double>(v)));
  return largest;
}

// What a weight says about its rounding is what its values show.
void check_error(Backend& reference, const Stored& stored, const Weight& made,
                 std::span<const float> values) {
  const std::vector<float> exact = decoded(reference, *stored.make(reference, WeightType::f32));
  double difference = 0, value = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    difference += std::pow(static_cast<double>(values[i]) - exact[i], 2);
    value += std::pow(static_cast<double>(exact[i]), 2);
  }
  EXPECT_NEAR(made.error().value, value, 1e-9 * value);
  EXPECT_NEAR(made.error().difference, difference, 1e-5 * difference + 1e-14 * value);
}

void check_conversion(const Bench& bench, const Stored& stored, WeightType type) {
  SCOPED_TRACE(fmt::format("{} {} x {} to {}, misaligned by {}", dtype_name(stored.dtype), stored.rows,
                           stored.cols, weight_type_name(type), stored.misalign));
  WeightPtr made;
  try {
    made = stored.make(*bench.subject, type);
  } catch (const Error& e) {
    // A backend may leave quantising to other tools; everything else it must be able to hold.
    EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
    EXPECT_TRUE(type == WeightType::f8_e4m3 && stored.dtype != DType::f8_e4m3) << e.what();
    return;
  }
  EXPECT_EQ(made->type(), type);
  EXPECT_EQ(made->rows(), stored.rows);
  EXPECT_EQ(made->cols(), stored.cols);
  const auto full = static_cast<std::size_t>(stored.rows * stored.cols) * weight_type_bits(type) / 8;
  EXPECT_GE(made->bytes(), full);
  const std::vector<float> got = decoded(*bench.subject, *made);
  const std::vector<float> want = decoded(*bench.reference, *stored.make(*bench.reference, type));
  if (is_quantized(type)) check_error(*bench.reference, stored, *made, got);
  if (type != WeightType::f8_e4m3 || stored.dtype == DType::f8_e4m3) {
    expect_same_bits(got, want, "values of the matrix");
    return;
  }
  std::vector<double> bounds;
  const auto cols = static_cast<std::size_t>(stored.cols);
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double scale = largest_of_row(std::span(want).subspan(i / cols * cols, cols)) / 448;
    bounds.push_back(1.01 * code_step(want[i], scale));
  }
  expect_within(got, want, bounds, "quantised values");
}

TEST_P(OpSuite, WeightsOfEveryTypeFromEveryType) {
  Random rng(seed() + 10);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    for (DType source : kSources) {
      const Stored stored(rng, source, random_between(rng, 1, 40), random_dim(rng));
      for (WeightType type : kAllTypes) check_conversion(bench_, stored, type);
    }
  }
}

// Ties, subnormals and signed zeros of every narrow type, and all 256 codes.
TEST_P(OpSuite, WeightRoundingEdges) {
  Random rng(seed() + 11);
  Stored fine(rng, DType::f32, 1, 16);
  fine.assign(std::vector<float>{1.00390625F, 1.01171875F, -1.00390625F, 1e-40F, -0.0F, 0.0F, 65504.0F,
                                 2049.0F, 2051.0F, 0x1p-24F, 0x1p-25F, 0x1.8p-24F, -0x1p-14F, 6.1e-5F, 3e-8F,
                                 0.1F});
  for (WeightType type : {WeightType::f32, WeightType::bf16, WeightType::f16})
    check_conversion(bench_, fine, type);

  Stored codes(rng, DType::f8_e4m3, 2, 256);
  for (std::size_t i = 0; i < 512; ++i) codes.bytes[codes.misalign + i] = static_cast<std::byte>(i % 256);
  for (WeightType type : {WeightType::f32, WeightType::bf16, WeightType::f8_e4m3}) {
    check_conversion(bench_, codes, type);
  }
}

TEST_P(OpSuite, WeightOfAnIntegerTypeIsRefused) {
  const std::vector<std::byte> bytes(64);
  for (DType dtype : {DType::i32, DType::u8, DType::boolean, DType::i64}) {
    const WeightData data{
        .dtype = dtype, .rows = 2, .cols = 4, .data = bytes.data(), .row_scale = nullptr, .owner = {}};
    try {
      bench_.subject->make_weight(data, WeightType::f32);
      ADD_FAILURE() << dtype_name(dtype) << " was taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
    }
  }
}

// A number that would become infinite, codes without their scales, scales without codes: never silently
// taken.
TEST_P(OpSuite, WeightThatCannotBeHeldIsRefused) {
  Random rng(seed() + 17);
  const auto expect_refused = [&](const WeightData& data, WeightType type) {
    try {
      bench_.subject->make_weight(data, type);
      ADD_FAILURE() << dtype_name(data.dtype) << " as " << weight_type_name(type) << " was taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::unsupported) << e.what();
    }
  };
  Stored large(rng, DType::f32, 3, 20);
  std::vector<float> values(60, 1.0F);
  values[37] = -65520.0F;  // halfway past the largest f16
  large.assign(values);
  expect_refused(large.data(), WeightType::f16);
  values[37] = 3.4e38F;
  large.assign(values);
  expect_refused(large.data(), WeightType::bf16);
  for (WeightType type : kQuantized) {
    for (const float bad :
         {3.4e38F, std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
      values[37] = bad;
      large.assign(values);
      expect_refused(large.data(), type);
    }
  }
  values[37] = 3.4e38F;
  WeightData codes = Stored(rng, DType::f8_e4m3, 2, 16).data();
  codes.row_scale = nullptr;
  expect_refused(codes, WeightType::f8_e4m3);
  const std::vector<float> scales(3, 1.0F);
  WeightData scaled = large.data();
  scaled.row_scale = scales.data();
  expect_refused(scaled, WeightType::f32);
}

// ---- embed -----------------------------------------------------------------------------------------------

TEST_P(OpSuite, EmbedCopiesRowsAndRefusesOtherIds) {
  Random rng(seed() + 12);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    const WeightCache table = WeightCache::random(rng, random_between(rng, 1, 60), random_dim(rng));
    const Stored& stored = table.stored();
    const Weight &mine = table.of(*bench_.subject), &plain = table.of(*bench_.reference);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(random_between(rng, 0, 70)));
    for (auto& id : ids) id = static_cast<std::int32_t>(rng.below(static_cast<std::uint64_t>(stored.rows)));
    Matrix got = Matrix::scattered(rng, static_cast<std::int64_t>(ids.size()), stored.cols), want = got;
    bench_.subject->embed(mine, ids, got.view());
    bench_.reference->embed(plain, ids, want.view());
    expect_same_bits(got.dense(), want.dense(), "embedding rows");
    got.expect_guards("embed");
    Matrix spare(2, stored.cols);
    for (std::int64_t bad :
         {std::int64_t{-1}, stored.rows, std::int64_t{INT32_MAX}, std::int64_t{INT32_MIN}}) {
      const std::int32_t wrong[] = {0, static_cast<std::int32_t>(bad)};
      try {
        bench_.subject->embed(mine, wrong, spare.view());
        ADD_FAILURE() << "id " << bad << " of " << stored.rows << " was taken";
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::invalid_input) << e.what();
      }
    }
  }
}

// ---- linear ----------------------------------------------------------------------------------------------

struct LinearCase {
  struct Out {
    WeightCache weight;
    Matrix y;  // what it holds before
    std::vector<float> bias;
    bool accumulate = false;
  };
  int rows = 0;
  std::int64_t cols = 0;
  Matrix x;
  std::vector<Out> outs;

  LinearCase(Random& rng, int row_count, int in_features, int most_out) : rows(row_count), cols(in_features) {
    x = Matrix::normal(rng, rows, cols);
    const int matrices = random_between(rng, 1, 3);
    for (int i = 0; i < matrices; ++i) {
      Out out;
      out.weight = WeightCache::random(rng, random_dim(rng, most_out), cols);
      out.y = Matrix::normal(rng, rows, out.weight.stored().rows);
      if (chance(rng, 0.5)) {
        out.bias.resize(static_cast<std::size_t>(out.y.cols()));
        for (float& b : out.bias) b = static_cast<float>(rng.normal());
      }
      out.accumulate = chance(rng, 0.5);
      outs.push_back(std::move(out));
    }
  }

  std::string name() const {
    std::string text = fmt::format("linear rows {} in {}", rows, cols);
    for (const Out& out : outs) {
      text += fmt::format(", out {} of {}{}{}", out.y.cols(), weight_type_name(out.weight.type()),
                          out.bias.empty() ? "" : " +bias", out.accumulate ? " +y" : "");
    }
    return text;
  }

  std::vector<float> run(Backend& b, int first, int count) const {
    std::vector<Matrix> ys;
    for (const Out& out : outs) ys.push_back(out.y);
    std::vector<LinearOut> args;
    for (std::size_t i = 0; i < outs.size(); ++i) {
      args.push_back({.weight = &outs[i].weight.of(b),
                      .bias = outs[i].bias.empty() ? nullptr : outs[i].bias.data(),
                      .y = ys[i].view(first),
                      .accumulate = outs[i].accumulate});
    }
    b.linear(args, x.view(first), count);
    std::vector<float> all;
    for (int r = first; r < first + count; ++r) {
      for (const Matrix& y : ys) all.insert(all.end(), y[r], y[r] + y.cols());
    }
    for (std::size_t i = 0; i < ys.size(); ++i) {
      ys[i].expect_guards(name());
      expect_same_bits(ys[i].dense(first + count, rows - first - count),
                       outs[i].y.dense(first + count, rows - first - count), "rows behind");
    }
    return all;
  }

  std::vector<double> bounds(Backend& reference, const Tolerance& t, std::span<const float>) const {
    std::vector<std::vector<float>> weights;
    for (const Out& out : outs) weights.push_back(decoded(reference, out.weight.of(reference)));
    std::vector<double> bounds;
    for (int r = 0; r < rows; ++r) {
      for (std::size_t m = 0; m < outs.size(); ++m) {
        for (std::int64_t o = 0; o < outs[m].y.cols(); ++o) {
          double size = outs[m].accumulate ? std::fabs(outs[m].y[r][o]) : 0.0;
          if (!outs[m].bias.empty()) size += std::fabs(outs[m].bias[static_cast<std::size_t>(o)]);
          const float* w = weights[m].data() + o * cols;
          for (std::int64_t i = 0; i < cols; ++i) size += std::fabs(w[i]) * input_size(r, i);
          bounds.push_back(t.sum * size + 1e-30);
        }
      }
    }
    return bounds;
  }

  // What an input may have been rounded to, int8 groups included.
  double input_size(int r, std::int64_t i) const {
    double largest = 0;
    constexpr int group = int8_group(WeightType::q8);  // the widest
    const std::int64_t first = i / group * group;
    for (std::int64_t k = first; k < std::min<std::int64_t>(cols, first + group); ++k) {
      largest = std::max(largest, std::fabs(static_cast<double>(x[r][k])));
    }
    return std::fabs(static_cast<double>(x[r][i])) + largest / 254;
  }

  void poison_others(int keep) {
    for (int r = 0; r < rows; ++r) {
      if (r == keep) continue;
      x.fill_row(r, poison(r));
      for (Out& out : outs) out.y.fill_row(r, poison(r + 1));
    }
  }
};

TEST_P(OpSuite, Linear) {
  for (ActivationType activations : GetParam().activations) {
    const Bench bench = make_bench(activations);
    ASSERT_TRUE(bench.subject);
    Random rng(seed() + 13);
    for (int i = 0; i < trials() && !HasFailure(); ++i) {
      check_rows(bench, tolerance(), rng, LinearCase(rng, random_between(rng, 1, 70), random_dim(rng), 100));
    }
    // Shapes that are cut into blocks and tasks.
    for (int rows : {1, 2, 17}) check_rows(bench, tolerance(), rng, LinearCase(rng, rows, 1100, 256));
  }
}

// A product must not depend on which matrices share the call.
TEST_P(OpSuite, LinearGroupEqualsSingleCalls) {
  Random rng(seed() + 14);
  for (int i = 0; i < trials() && !HasFailure(); ++i) {
    const LinearCase all(rng, random_between(rng, 1, 20), random_dim(rng), 100);
    std::vector<std::vector<float>> alone;
    for (std::size_t m = 0; m < all.outs.size(); ++m) {
      LinearCase one = all;
      one.outs = {all.outs[m]};
      alone.push_back(one.run(*bench_.subject, 0, all.rows));
    }
    std::vector<float> joined;
    for (int r = 0; r < all.rows; ++r) {
      for (std::size_t m = 0; m < alone.size(); ++m) {
        const std::int64_t width = all.outs[m].y.cols();
        joined.insert(joined.end(), alone[m].begin() + r * width, alone[m].begin() + (r + 1) * width);
      }
    }
    expect_same_bits(all.run(*bench_.subject, 0, all.rows), joined, all.name());
  }
}

// The NaN has every mantissa bit set: rounding it to bf16 by adding half a unit would turn it into zero.
TEST_P(OpSuite, LinearPassesNanAndInfinityOn) {
  for (ActivationType activations : GetParam().activations) {
    const Bench bench = make_bench(activations);
    Random rng(seed() + 15);
    for (int i = 0; i < trials() && !HasFailure(); ++i) {
      LinearCase c(rng, 3, random_dim(rng), 40);
      c.x[1][random_between(rng, 0, static_cast<int>(c.cols) - 1)] = std::bit_cast<float>(0x7FFFFFFFU);
      const std::vector<float> y = c.run(*bench.subject, 0, 3);
      const std::size_t width = y.size() / 3;
      for (std::size_t o = 0; o < width; ++o) {
        EXPECT_TRUE(std::isfinite(y[o]) && std::isnan(y[width + o]) && std::isfinite(y[2 * width + o]))
            << c.name();
      }
      c.x.fill_row(1, std::numeric_limits<float>::infinity());
      const std::vector<float> infinite = c.run(*bench.subject, 1, 1);
      for (float v : infinite) EXPECT_FALSE(std::isfinite(v)) << c.name();
    }
  }
}

TEST_P(OpSuite, LinearOfNoRowsOrNoMatrices) {
  Random rng(seed() + 16);
  const LinearCase c(rng, 4, 20, 30);
  EXPECT_TRUE(c.run(*bench_.subject, 2, 0).empty());
  bench_.subject->linear({}, c.x.view(), 4);
  const WeightPtr w = c.outs[0].weight.stored().make(*bench_.subject);
  const LinearOut out{.weight = w.get(), .bias = nullptr, .y = {}, .accumulate = false};
  bench_.subject->linear({&out, 1}, {}, 0);
}

}  // namespace
}  // namespace ponder::ops::testing
