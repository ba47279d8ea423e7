// Products with quantised and bf16 weights of the CPU backend against loops over packed bytes, for every
// instruction set with and without its dot product instructions; where packed bytes live; no allocation.
#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <malloc.h>

#include "base/allocation_count.hpp"
#include "base/error.hpp"
#include "base/float_types.hpp"
#include "cpu/backend.hpp"
#include "cpu/quantized_oracle.hpp"
#include "op_suite_stored.hpp"

namespace ponder::cpu {
namespace {

using ops::ActivationType;
using ops::WeightType;
using ops::testing::expect_same_bits;
using ops::testing::expect_within;
using ops::testing::kQuantized;
using ops::testing::Stored;

constexpr ActivationType kActivations[] = {ActivationType::f32, ActivationType::bf16, ActivationType::native};

// An instruction set, and whether the dot product instructions on top of it may be used.
struct Machine {
  InstructionSet isa;
  bool extras;
  std::string name() const { return std::string(cpu::name(isa)) + (extras ? "" : "_plain"); }
  std::unique_ptr<ops::Backend> make(ActivationType activations, int threads = 1) const {
    CpuFeatures features = detect_cpu_features();
    features.fast_bf16_dot = extras && features.avx512_bf16;  // tested also where it is not used
    if (!extras) {
      features.avx_vnni = features.avx512_vnni = features.avx512_bf16 = features.neon_dotprod = false;
    }
    return make_cpu_backend({.isa = isa,
                             .features = features,
                             .pool = std::make_shared<ThreadPool>(threads),
                             .activations = activations});
  }
};

std::vector<Machine> machines() {
  std::vector<Machine> all;
  for (const InstructionSet isa : attainable(detect_cpu_features())) {
    all.push_back({isa, true});
    all.push_back({isa, false});
  }
  return all;
}

std::vector<float> normals(Random& rng, std::size_t n) {
  std::vector<float> out(n);
  for (float& v : out) v = static_cast<float>(rng.normal());
  return out;
}

std::vector<float> product(ops::Backend& b, const ops::Weight& w, const std::vector<float>& x, int rows) {
  std::vector<float> y(static_cast<std::size_t>(rows) * static_cast<std::size_t>(w.rows()));
  const ops::LinearOut out{&w, nullptr, {y.data(), w.rows()}, false};
  b.linear({&out, 1}, {x.data(), w.cols()}, rows);
  return y;
}

// value(o, i): the matrix. Sums of n float products and their partial sums: a few roundings of the size of
// all.
template <class Value>
void expect_product(const std::vector<float>& got, const std::vector<float>& x, int rows, std::int64_t outs,
                    std::int64_t cols, ActivationType activations, WeightType type, const Value& value,
                    const std::string& what) {
  std::vector<double> matrix;
  for (std::int64_t o = 0; o < outs; ++o) {
    for (std::int64_t i = 0; i < cols; ++i) matrix.push_back(value(o, i));
  }
  std::vector<float> want;
  std::vector<double> bounds;
  for (int r = 0; r < rows; ++r) {
    const test::RoundedInput in = test::round_input(x.data() + r * cols, cols, activations, type);
    for (std::int64_t o = 0; o < outs; ++o) {
      double sum = 0, bound = 1e-30;
      for (std::int64_t i = 0; i < cols; ++i) {
        const double w = matrix[static_cast<std::size_t>(o * cols + i)];
        const auto at = static_cast<std::size_t>(i);
        sum += w * in.values[at];
        bound += std::fabs(w) * (4e-6 * std::fabs(in.values[at]) + in.slack[at]);
      }
      want.push_back(static_cast<float>(sum));
      bounds.push_back(bound + 1e-7 * std::fabs(sum));
    }
  }
  expect_within(got, want, bounds, what);
}

TEST(CpuQuantized, ProductsAreThoseOfThePackedBytes) {
  Random rng(1);
  for (const WeightType type : kQuantized) {
    for (const auto& [rows, cols, outs] : {std::tuple{1, 1, 1},
                                           {2, 31, 15},
                                           {3, 32, 16},
                                           {16, 33, 17},
                                           {17, 100, 33},
                                           {5, 1100, 50},
                                           {33, 520, 20},
                                           {100, 70, 40}}) {
      const Stored stored(rng, DType::f32, outs, cols, 0.3);
      const std::vector<float> x =
          normals(rng, static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
      for (const Machine& machine : machines()) {
        for (const ActivationType activations : kActivations) {
          const auto b = machine.make(activations);
          const auto w = stored.make(*b, type);
          expect_product(
              product(*b, *w, x, rows), x, rows, outs, cols, activations, type,
              [&, n = cols](std::int64_t o, std::int64_t i) {
                return test::packed_value(type, w->packed(), n, o, i);
              },
              fmt::format("{} {} rows {} in {} out {} activations {}", machine.name(),
                          ops::weight_type_name(type), rows, cols, outs, static_cast<int>(activations)));
        }
      }
    }
  }
}

// More than a piece of columns (2560), odd numbers of weight rows, and weights that are exactly bf16.
TEST(CpuQuantized, Bf16ProductsOfRoundedInputs) {
  Random rng(2);
  for (const auto& [rows, cols, outs] : {std::tuple{1, 1, 1},
                                         {2, 31, 3},
                                         {7, 33, 6},
                                         {13, 2591, 5},
                                         {97, 100, 9},
                                         {200, 65, 7},
                                         {4, 5121, 2}}) {
    const Stored stored(rng, DType::bf16, outs, cols);
    const std::vector<float> x =
        normals(rng, static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols));
    for (const Machine& machine : machines()) {
      for (const ActivationType activations : kActivations) {
        const auto b = machine.make(activations, 2);
        const auto w = stored.make(*b);
        std::vector<float> values(static_cast<std::size_t>(outs) * static_cast<std::size_t>(cols));
        to_floats(DType::bf16, std::span(stored.bytes).subspan(stored.misalign), values);
        const std::vector<float> y = product(*b, *w, x, rows);
        expect_product(
            y, x, rows, outs, cols, activations, WeightType::bf16,
            [&, n = cols](std::int64_t o, std::int64_t i) {
              return values[static_cast<std::size_t>(o * n + i)];
            },
            fmt::format("{} rows {} in {} out {}", machine.name(), rows, cols, outs));
        for (const int r : {0, rows / 2, rows - 1}) {
          const std::vector<float> one(x.begin() + std::ptrdiff_t{r} * cols,
                                       x.begin() + std::ptrdiff_t{r + 1} * cols);
          expect_same_bits(product(*b, *w, one, 1),
                           std::span(y).subspan(static_cast<std::size_t>(r) * static_cast<std::size_t>(outs),
                                                static_cast<std::size_t>(outs)),
                           "row alone");
        }
      }
    }
  }
}

// Integer sums are exact however they are made, so VNNI changes no bit.
TEST(CpuQuantized, DotProductInstructionsGiveTheSameBits) {
  Random rng(3);
  for (const InstructionSet isa : attainable(detect_cpu_features())) {
    for (const WeightType type : kQuantized) {
      for (const int rows : {1, 2, 3, 9, 16, 21}) {
        Stored stored(rng, DType::f32, 37, 300);
        std::vector<float> values = normals(rng, 37 * 300);
        for (float& v : values) v = v < 0 ? -1.0F : 1.0F;  // the largest codes: sums that would saturate
        if (rows == 3) stored.assign(values);
        std::vector<float> x = normals(rng, static_cast<std::size_t>(rows) * 300);
        if (rows == 3) std::fill(x.begin(), x.end(), 1.0F);
        const auto with = Machine{isa, true}.make(ActivationType::native);
        const auto without = Machine{isa, false}.make(ActivationType::native);
        expect_same_bits(product(*without, *stored.make(*without, type), x, rows),
                         product(*with, *stored.make(*with, type), x, rows), std::string(name(isa)));
      }
    }
  }
}

TEST(CpuQuantized, MatricesOfAllTypesInOneCall) {
  Random rng(4);
  for (const Machine& machine : machines()) {
    for (const ActivationType activations : kActivations) {
      const auto b = machine.make(activations, 3);
      for (const int rows : {1, 4, 17, 130}) {
        const std::vector<float> x = normals(rng, static_cast<std::size_t>(rows) * 200);
        std::vector<ops::WeightPtr> weights;
        std::vector<std::vector<float>> ys;
        for (const WeightType type : {WeightType::bf16, WeightType::q4, WeightType::f32, WeightType::q8,
                                      WeightType::q4tp, WeightType::f16, WeightType::f8_e4m3}) {
          const std::int64_t outs = ops::testing::random_between(rng, 1, 90);
          weights.push_back(Stored(rng, DType::f32, outs, 200).make(*b, type));
          ys.emplace_back(static_cast<std::size_t>(rows) * static_cast<std::size_t>(outs));
        }
        std::vector<ops::LinearOut> outs;
        for (std::size_t i = 0; i < weights.size(); ++i) {
          outs.push_back({weights[i].get(), nullptr, {ys[i].data(), weights[i]->rows()}, false});
        }
        b->linear(outs, {x.data(), 200}, rows);
        for (std::size_t i = 0; i < weights.size(); ++i) {
          expect_same_bits(ys[i], product(*b, *weights[i], x, rows), machine.name());
        }
      }
    }
  }
}

// Many tasks, many tiles, several blocks of input rows.
TEST(CpuQuantized, Complaint55_LargeShapesGiveTheBitsOfSingleRows) {
  constexpr int rows = 261, cols = 520, outs = 3001;
  Random rng(5);
  const Stored stored(rng, DType::f32, outs, cols);
  const std::vector<float> x = normals(rng, std::size_t{rows} * cols);
  const InstructionSet isa = best(detect_cpu_features());
  for (const WeightType type : {WeightType::q8, WeightType::q4, WeightType::q4tp, WeightType::bf16}) {
    std::vector<float> first;
    for (const int threads : {1, 3}) {
      const auto b = Machine{isa, true}.make(ActivationType::native, threads);
      const auto w = stored.make(*b, type);
      const std::vector<float> y = product(*b, *w, x, rows);
      if (first.empty()) first = y;
      expect_same_bits(y, first, "threads");
      std::vector<std::int32_t> ids(rows);
      b->masked_argmax({x.data(), cols}, rows, *w, outs, nullptr, ids.data());
      for (int r = 0; r < rows; ++r) {
        const float* scores = y.data() + std::ptrdiff_t{r} * outs;
        EXPECT_EQ(ids[static_cast<std::size_t>(r)], std::max_element(scores, scores + outs) - scores);
      }
      for (const int r : {0, 1, 15, 16, 127, 255, 256, 260}) {
        const std::vector<float> one(x.begin() + std::ptrdiff_t{r} * cols,
                                     x.begin() + std::ptrdiff_t{r + 1} * cols);
        expect_same_bits(product(*b, *w, one, 1),
                         std::span(y).subspan(static_cast<std::size_t>(r) * outs, outs), "alone");
      }
    }
  }
}

// The bytes of one backend are another's weight, in place where they lie on a cache line and have an owner.
TEST(CpuQuantized, PackedBytesAreSharedBetweenInstructionSets) {
  Random rng(6);
  for (const WeightType type : kQuantized) {
    const auto maker = make_cpu_backend();
    const auto made = Stored(rng, DType::f32, 33, 100).make(*maker, type);
    const std::span<const std::byte> packed = made->packed();
    EXPECT_EQ(made->owned_bytes(), packed.size());
    const std::vector<float> x = normals(rng, 300);
    for (const InstructionSet isa : attainable(detect_cpu_features())) {
      const auto b = make_cpu_backend({.isa = isa, .activations = ActivationType::native});
      ops::WeightData data;
      data.dtype = DType::u8;
      data.rows = 33;
      data.cols = 100;
      data.data = packed.data();
      data.owner = made;
      data.packed = type;
      const auto in_place = b->make_weight(data, type);
      EXPECT_EQ(in_place->packed().data(), packed.data());
      EXPECT_EQ(in_place->owned_bytes(), 0U);
      EXPECT_EQ(in_place->bytes(), packed.size());
      EXPECT_EQ(in_place->error().value, 0);

      data.owner = nullptr;
      const auto copied = b->make_weight(data, type);
      EXPECT_NE(copied->packed().data(), packed.data());
      EXPECT_EQ(copied->owned_bytes(), packed.size());

      const auto shifted = std::make_shared<std::vector<std::byte>>(packed.size() + 128);
      const auto address = reinterpret_cast<std::uintptr_t>(shifted->data());
      data.data = shifted->data() + (64 - address % 64) + 32;  // half a line off
      std::copy(packed.begin(), packed.end(), shifted->data() + (64 - address % 64) + 32);
      data.owner = shifted;
      const auto moved = b->make_weight(data, type);
      EXPECT_NE(moved->packed().data(), data.data);
      EXPECT_EQ(shifted.use_count(), 2) << "a copy holds nothing: the data and the variable are left";

      const std::vector<float> y = product(*b, *in_place, x, 3);
      expect_same_bits(product(*b, *copied, x, 3), y, "copied");
      expect_same_bits(product(*b, *moved, x, 3), y, "moved");
      EXPECT_EQ(ops::testing::decoded(*b, *in_place), ops::testing::decoded(*maker, *made));

      data.packed = type == WeightType::q8 ? WeightType::q4 : WeightType::q8;
      EXPECT_THROW(b->make_weight(data, type), Error);
      data.packed = type;
      data.data = nullptr;
      EXPECT_THROW(b->make_weight(data, type), Error);
    }
  }
}

// Bytes the C library has given out, buffers that bypass operator new included; 0 under sanitizers.
std::size_t bytes_in_use() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(CpuQuantized, NothingIsAllocatedOnceWarm) {
  Random rng(7);
  for (const Machine& machine : machines()) {
    for (const ActivationType activations : kActivations) {
      const auto b = machine.make(activations, 2);
      std::vector<ops::WeightPtr> weights;
      for (const WeightType type :
           {WeightType::q8, WeightType::q4, WeightType::q4tp, WeightType::bf16, WeightType::f32}) {
        weights.push_back(Stored(rng, DType::f32, 300, 96).make(*b, type));
      }
      const std::vector<float> x = normals(rng, 40 * 96);
      std::vector<float> y(40 * 300), other(40 * 300);
      std::vector<std::int32_t> ids(40);
      const auto run = [&](int rows) {
        for (std::size_t i = 0; i < weights.size(); ++i) {
          const auto& next = weights[(i + 1) % weights.size()];
          const ops::LinearOut outs[] = {{weights[i].get(), nullptr, {y.data(), 300}, false},
                                         {next.get(), nullptr, {other.data(), 300}, true}};
          b->linear(outs, {x.data(), 96}, rows);
          b->gated_linear(*weights[i], *weights[i], {x.data(), 96}, rows, {y.data(), 300});
          b->gated_linear(*weights[i], *next, {x.data(), 96}, rows, {y.data(), 300});
          b->masked_argmax({x.data(), 96}, rows, *weights[i], 300, nullptr, ids.data());
        }
      };
      run(40);
      const long before = test::allocation_count();
      const std::size_t used = bytes_in_use();
      for (const int rows : {1, 3, 40, 17}) run(rows);
      EXPECT_EQ(test::allocation_count(), before) << machine.name();
      EXPECT_EQ(bytes_in_use(), used) << machine.name();
    }
  }
}

}  // namespace
}  // namespace ponder::cpu
