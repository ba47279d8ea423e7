// weight.hpp and the weights of the reference: types, rounding with expected values worked out by hand,
// errors.
#include "ops/weight.hpp"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "ops/backend.hpp"

namespace ponder::ops {
namespace {

class WeightTest : public ::testing::Test {
 protected:
  WeightPtr make(const std::vector<float>& values, WeightType type, std::int64_t rows = 1) const {
    return backend_->make_weight({.dtype = DType::f32,
                                  .rows = rows,
                                  .cols = static_cast<std::int64_t>(values.size()) / rows,
                                  .data = reinterpret_cast<const std::byte*>(values.data()),
                                  .row_scale = nullptr,
                                  .owner = {}},
                                 type);
  }

  std::vector<float> values_of(const Weight& w) const {
    std::vector<float> out(static_cast<std::size_t>(w.rows() * w.cols()));
    for (std::int32_t r = 0; r < w.rows(); ++r)
      backend_->embed(w, {&r, 1}, {out.data() + r * w.cols(), w.cols()});
    return out;
  }

  std::vector<float> rounded(const std::vector<float>& values, WeightType type) const {
    return values_of(*make(values, type));
  }

  void expect_error(ErrorKind kind, const WeightData& data, WeightType type) const {
    try {
      backend_->make_weight(data, type);
      ADD_FAILURE() << "taken";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), kind) << e.what();
    }
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend();
};

TEST_F(WeightTest, NamesBitsAndNaturalTypes) {
  EXPECT_EQ(weight_type_name(WeightType::f32), "f32");
  EXPECT_EQ(weight_type_name(WeightType::bf16), "bf16");
  EXPECT_EQ(weight_type_name(WeightType::f16), "f16");
  EXPECT_EQ(weight_type_name(WeightType::f8_e4m3), "f8_e4m3");
  EXPECT_EQ(weight_type_bits(WeightType::f32), 32);
  EXPECT_EQ(weight_type_bits(WeightType::bf16), 16);
  EXPECT_EQ(weight_type_bits(WeightType::f16), 16);
  EXPECT_EQ(weight_type_bits(WeightType::f8_e4m3), 8);
  EXPECT_EQ(natural_weight_type(DType::f32), WeightType::f32);
  EXPECT_EQ(natural_weight_type(DType::bf16), WeightType::bf16);
  EXPECT_EQ(natural_weight_type(DType::f16), WeightType::f16);
  EXPECT_EQ(natural_weight_type(DType::f8_e4m3), WeightType::f8_e4m3);
  for (DType type : {DType::f64, DType::f8_e5m2, DType::f8_e4m3fnuz, DType::f4, DType::c64, DType::i64,
                     DType::u8, DType::boolean}) {
    EXPECT_THROW(natural_weight_type(type), Error) << dtype_name(type);
  }
}

// Neighbours of 1 in bf16 are 2^-7 apart, those of 2048 in f16 are 2 apart; f16 subnormals are 2^-24 apart.
TEST_F(WeightTest, RoundsToNearestEven) {
  EXPECT_EQ(rounded({1 + 0x1p-8F, 1 + 0x1.8p-7F, 1 + 0x1.0002p-8F, -1 - 0x1p-8F}, WeightType::bf16),
            (std::vector<float>{1, 1 + 0x1p-6F, 1 + 0x1p-7F, -1}));
  EXPECT_EQ(rounded({2049, 2051, 65504, 0x1p-24F, 0x1p-25F, 0x1.8p-24F, 0x1.0002p-25F}, WeightType::f16),
            (std::vector<float>{2048, 2052, 65504, 0x1p-24F, 0, 0x1p-23F, 0x1p-24F}));
  EXPECT_TRUE(std::signbit(rounded({-0.0F}, WeightType::f16)[0]));
  EXPECT_TRUE(std::isnan(rounded({NAN}, WeightType::bf16)[0]));
  EXPECT_EQ(rounded({1.1F, 1e-40F}, WeightType::f32), (std::vector<float>{1.1F, 1e-40F}));
}

// absmax 448 gives scale 1 (up to the rounding of 1/448): 17 lies between the codes 16 and 18, 19 between 18
// and 20.
TEST_F(WeightTest, QuantisesRowsToE4m3) {
  const std::vector<float> row = rounded({448, 17, 19, 100, -3, 0}, WeightType::f8_e4m3);
  const std::vector<float> codes = {448, 16, 20, 96, -3, 0};
  for (std::size_t i = 0; i < codes.size(); ++i)
    EXPECT_NEAR(row[i], codes[i], 1e-6 * std::fabs(codes[i])) << i;
  EXPECT_EQ(rounded({0, 0}, WeightType::f8_e4m3), (std::vector<float>{0, 0}));
}

TEST_F(WeightTest, KeepsCodesAndScalesOfF8) {
  const std::vector<std::byte> codes = {std::byte{0x38}, std::byte{0xC0}, std::byte{0x01}, std::byte{0x7E}};
  const std::vector<float> scales = {3.0F, 0.1F};
  const WeightData data{.dtype = DType::f8_e4m3,
                        .rows = 2,
                        .cols = 2,
                        .data = codes.data(),
                        .row_scale = scales.data(),
                        .owner = {}};
  const std::vector<float> want = {3.0F, -6.0F, 0x1p-9F * 0.1F, 448 * 0.1F};
  EXPECT_EQ(values_of(*backend_->make_weight(data, WeightType::f8_e4m3)), want);
  EXPECT_EQ(values_of(*backend_->make_weight(data, WeightType::f32)), want);
  const std::vector<float> as_bf16 = values_of(*backend_->make_weight(data, WeightType::bf16));
  EXPECT_EQ(as_bf16[1], -6.0F);
  EXPECT_EQ(as_bf16[3], 44.75F);  // 44.8, neighbours 44.75 and 45
}

TEST_F(WeightTest, ReportsItsSize) {
  const WeightPtr w = make({1, 2, 3, 4, 5, 6}, WeightType::bf16, 2);
  EXPECT_EQ(w->rows(), 2);
  EXPECT_EQ(w->cols(), 3);
  EXPECT_EQ(w->type(), WeightType::bf16);
  EXPECT_EQ(w->owned_bytes(), 24U);
}

TEST_F(WeightTest, RefusesWhatCannotBe) {
  const std::vector<std::byte> bytes(64);
  const std::vector<float> scales(8, 1.0F);
  auto data = [&](DType dtype, std::int64_t rows, std::int64_t cols, const float* row_scale) {
    return WeightData{.dtype = dtype,
                      .rows = rows,
                      .cols = cols,
                      .data = bytes.data(),
                      .row_scale = row_scale,
                      .owner = {}};
  };
  expect_error(ErrorKind::unsupported, data(DType::i32, 2, 2, nullptr), WeightType::f32);
  expect_error(ErrorKind::unsupported, data(DType::f64, 2, 2, nullptr), WeightType::f32);
  expect_error(ErrorKind::unsupported, data(DType::f8_e4m3, 2, 2, nullptr), WeightType::f8_e4m3);
  expect_error(ErrorKind::unsupported, data(DType::f32, 2, 2, scales.data()), WeightType::f32);
  expect_error(ErrorKind::too_large, data(DType::f32, std::int64_t{1} << 40, std::int64_t{1} << 40, nullptr),
               WeightType::f32);
  expect_error(ErrorKind::too_large, data(DType::f32, std::int64_t{1} << 31, std::int64_t{1} << 31, nullptr),
               WeightType::f32);
  expect_error(ErrorKind::internal, data(DType::f32, -1, 2, nullptr), WeightType::f32);
  const WeightData nothing{
      .dtype = DType::f32, .rows = 1, .cols = 1, .data = nullptr, .row_scale = nullptr, .owner = {}};
  expect_error(ErrorKind::internal, nothing, WeightType::f32);
  EXPECT_THROW(make({1, 70000}, WeightType::f16), Error);
  EXPECT_THROW(make({1, 3.4e38F}, WeightType::bf16), Error);
  EXPECT_THROW(make({1, INFINITY}, WeightType::f8_e4m3), Error);
  EXPECT_EQ(rounded({INFINITY}, WeightType::f16)[0], INFINITY);
}

}  // namespace
}  // namespace ponder::ops
