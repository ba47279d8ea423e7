// The reference backend: the op suite on itself, and what only exact numbers can show.
#include <bit>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "op_suite.hpp"

namespace ponder::ops {

using testing::OpSuite;

namespace {

testing::OpSubject reference() {
  testing::OpSubject subject;
  subject.name = "reference";
  subject.make = [](ActivationType type) { return make_reference_backend(type); };
  subject.trials = 15;
  return subject;
}

INSTANTIATE_TEST_SUITE_P(Reference, OpSuite, ::testing::Values(reference()), testing::subject_name);

WeightPtr weight(Backend& b, const std::vector<float>& values, std::int64_t rows) {
  return b.make_weight({.dtype = DType::f32,
                        .rows = rows,
                        .cols = static_cast<std::int64_t>(values.size()) / rows,
                        .data = reinterpret_cast<const std::byte*>(values.data()),
                        .row_scale = nullptr,
                        .owner = {}},
                       WeightType::f32);
}

TEST(Reference, DescribesItself) {
  EXPECT_NE(make_reference_backend()->describe().find("reference"), std::string::npos);
  EXPECT_EQ(make_reference_backend()->activation_type(), ActivationType::f32);
  EXPECT_EQ(make_reference_backend(ActivationType::bf16)->activation_type(), ActivationType::bf16);
}

// Whole numbers: y = x W^T (+ bias) (+ y) has one right answer.
TEST(Reference, LinearOfWholeNumbers) {
  auto b = make_reference_backend();
  const WeightPtr w = weight(*b, {1, 2, 3, -1, 0, 5}, 2);
  const std::vector<float> x = {1, 10, 100, 2, 0, -1}, bias = {1000, -1000};
  std::vector<float> y = {1, 2, 3, 4};
  const LinearOut out{.weight = w.get(), .bias = bias.data(), .y = {y.data(), 2}, .accumulate = true};
  b->linear({&out, 1}, {x.data(), 3}, 2);
  EXPECT_EQ(y, (std::vector<float>{1322, -499, 1002, -1003}));
  const LinearOut plain{.weight = w.get(), .bias = nullptr, .y = {y.data(), 2}, .accumulate = false};
  b->linear({&plain, 1}, {x.data(), 3}, 2);
  EXPECT_EQ(y, (std::vector<float>{321, 499, -1, -7}));
}

// 1 + 2^-8 is halfway between two bf16 and goes to the even one, 1; sums stay exact either way.
TEST(Reference, Bf16ActivationsRoundTheInputAlone) {
  for (ActivationType type : {ActivationType::f32, ActivationType::bf16}) {
    auto b = make_reference_backend(type);
    const WeightPtr w = weight(*b, {1 + 0x1p-8F, 4096}, 1);
    const std::vector<float> x = {1 + 0x1p-8F, 1};
    std::vector<float> y(1);
    const LinearOut out{.weight = w.get(), .bias = nullptr, .y = {y.data(), 1}, .accumulate = false};
    b->linear({&out, 1}, {x.data(), 2}, 1);
    const double input = type == ActivationType::bf16 ? 1.0 : 1 + 0x1p-8;
    EXPECT_EQ(y[0], static_cast<float>(input * (1 + 0x1p-8) + 4096));
  }
}

TEST(Reference, Bf16ActivationsDecideTheArgmax) {
  const std::vector<float> x = {1 + 0x1p-8F, -1};
  for (ActivationType type : {ActivationType::f32, ActivationType::bf16}) {
    auto b = make_reference_backend(type);
    const WeightPtr head = weight(*b, {0, 0, 1, 1}, 2);  // scores 0 and x0 + x1
    std::int32_t id = -5;
    b->masked_argmax({x.data(), 2}, 1, *head, 2, nullptr, &id);
    EXPECT_EQ(id, type == ActivationType::bf16 ? 0 : 1);
  }
}

// The codes are summed, then scaled once: 3 * (448 + 448) has no rounding although 3 * 448 / 7 would.
TEST(Reference, F8ProductIsScaledOncePerRow) {
  auto b = make_reference_backend();
  const std::vector<std::byte> codes(3, std::byte{0x7E});
  const float scale = 0.1F;
  const WeightPtr w = b->make_weight(
      {.dtype = DType::f8_e4m3, .rows = 1, .cols = 3, .data = codes.data(), .row_scale = &scale, .owner = {}},
      WeightType::f8_e4m3);
  const std::vector<float> x = {1, 0x1p-30F, -1};
  float y = 0;
  const LinearOut out{.weight = w.get(), .bias = nullptr, .y = {&y, 1}, .accumulate = false};
  b->linear({&out, 1}, {x.data(), 3}, 1);
  EXPECT_EQ(y, static_cast<float>(448 * 0x1p-30 * static_cast<double>(scale)));
}

// cos and sin of p + q from those of p and q, at positions where a float angle would be useless.
TEST(Reference, RotaryTableObeysTheAdditionTheorems) {
  auto b = make_reference_backend();
  const std::vector<std::int64_t> positions = {1048576, 777777, 1048576 + 777777, 0};
  constexpr int dim = 64, half = 32;
  std::vector<float> cos(4 * half), sin(4 * half);
  b->rotary_table(positions, dim, 1e7, {cos.data(), half}, {sin.data(), half});
  for (int j = 0; j < half; ++j) {
    const double cp = cos[j], sp = sin[j], cq = cos[half + j], sq = sin[half + j];
    EXPECT_NEAR(cos[2 * half + j], cp * cq - sp * sq, 3e-7) << j;
    EXPECT_NEAR(sin[2 * half + j], sp * cq + cp * sq, 3e-7) << j;
    EXPECT_EQ(cos[3 * half + j], 1.0F);
    EXPECT_EQ(sin[3 * half + j], 0.0F);
  }
  EXPECT_NEAR(cos[half], std::cos(777777.0), 1e-7);  // frequency 0 is 1 a position
}

TEST(Reference, RotaryTableOfAnOddSizeHasTheMiddleFrequency) {
  auto b = make_reference_backend();
  const std::vector<std::int64_t> positions = {1};
  float cos[3] = {7, 7, 7}, sin[3] = {7, 7, 7};
  b->rotary_table(positions, 5, 100.0, {cos, 3}, {sin, 3});
  EXPECT_NEAR(sin[1], std::sin(std::pow(100.0, -0.4)), 1e-7);
  EXPECT_NEAR(cos[2], std::cos(std::pow(100.0, -0.8)), 1e-7);
}

TEST(Reference, GatesAtTheirEnds) {
  auto b = make_reference_backend();
  std::vector<float> gate = {0, 800, -800, 1};
  const std::vector<float> up = {5, 2, 2, 1};
  b->silu_mul({gate.data(), 4}, {up.data(), 4}, 1, 4);
  EXPECT_EQ(gate[0], 0.0F);
  EXPECT_EQ(gate[1], 1600.0F);
  EXPECT_EQ(gate[2], 0.0F);
  EXPECT_NEAR(gate[3], 0.731058578630, 1e-7);
  std::vector<float> x = {3, 3, 3};
  const std::vector<float> by = {800, -800, 0};
  b->sigmoid_mul({x.data(), 3}, {by.data(), 3}, 1, {1, 3, 3});
  EXPECT_EQ(x, (std::vector<float>{3, 0, 1.5F}));
}

TEST(Reference, RefusesWeightsOfAnotherBackend) {
  class Foreign final : public Weight {
   public:
    Foreign() : Weight(2, 2, WeightType::f32) {}
    std::size_t bytes() const noexcept override { return 0; }
    std::size_t owned_bytes() const noexcept override { return 0; }
  };
  const Foreign foreign;
  const std::int32_t id = 0;
  float out[2];
  EXPECT_THROW(make_reference_backend()->embed(foreign, {&id, 1}, {out, 2}), Error);
}

TEST(Reference, RefusesAnArgmaxPastTheHead) {
  auto b = make_reference_backend();
  const WeightPtr head = weight(*b, {1, 2}, 2);
  const float x = 1;
  std::int32_t id = 0;
  EXPECT_THROW(b->masked_argmax({&x, 1}, 1, *head, 3, nullptr, &id), Error);
}

}  // namespace
}  // namespace ponder::ops
