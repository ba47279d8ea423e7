// Where a weight's bytes live, and products whose shapes span many tasks.
#include "cpu/weight.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "base/error.hpp"
#include "base/float_types.hpp"
#include "base/random.hpp"
#include "cpu/backend.hpp"
#include "op_suite_tools.hpp"

namespace ponder::cpu {
namespace {

using ops::WeightType;

// Bytes that start `offset` past an aligned address.
struct File {
  std::shared_ptr<std::vector<std::byte>> bytes;
  std::byte* data;
  File(std::size_t size, std::size_t offset)
      : bytes(std::make_shared<std::vector<std::byte>>(size + 64 + offset)) {
    void* start = bytes->data();
    std::size_t space = bytes->size();
    data = static_cast<std::byte*>(std::align(64, size + offset, start, space)) + offset;
  }
};

TEST(CpuWeight, AMappedMatrixIsUsedInPlaceAtAnyElementAlignedAddress) {
  ThreadPool pool(1);
  for (const auto& [dtype, type, width] :
       {std::tuple{DType::f32, WeightType::f32, 4}, std::tuple{DType::bf16, WeightType::bf16, 2},
        std::tuple{DType::f16, WeightType::f16, 2}, std::tuple{DType::f8_e4m3, WeightType::f8_e4m3, 1}}) {
    const std::vector<float> scales(3, 0.5F);
    for (std::size_t offset = 0; offset < 9; ++offset) {
      const File file(static_cast<std::size_t>(width) * 3 * 7, offset);
      std::fill_n(file.data, 3 * 7 * width, std::byte{0x3C});
      const CpuWeight w({dtype, 3, 7, file.data, width == 1 ? scales.data() : nullptr, file.bytes}, type,
                        pool);
      const bool in_place = offset % static_cast<std::size_t>(width) == 0;
      EXPECT_EQ(w.row(0) == file.data, in_place) << offset;
      const std::size_t scale_bytes = width == 1 ? 3 * sizeof(float) : 0;
      const std::size_t code_bytes = static_cast<std::size_t>(width) * 3 * 7;
      EXPECT_EQ(w.owned_bytes(), (in_place ? 0 : code_bytes) + scale_bytes);
      EXPECT_EQ(w.bytes(), code_bytes + scale_bytes);
      EXPECT_EQ(std::memcmp(w.row(2), file.data + 2 * 7 * width, static_cast<std::size_t>(width) * 7), 0);
      EXPECT_EQ(file.bytes.use_count(), in_place ? 2 : 1)
          << "what is in place is kept alive, a copy holds nothing";
    }
  }
}

TEST(CpuWeight, WithoutAnOwnerTheBytesAreCopied) {
  std::vector<float> values(6, 2.0F);
  ThreadPool pool(1);
  const CpuWeight w({DType::f32, 2, 3, reinterpret_cast<const std::byte*>(values.data()), nullptr, nullptr},
                    WeightType::f32, pool);
  std::fill(values.begin(), values.end(), 0.0F);
  float first = 0;
  std::memcpy(&first, w.row(0), sizeof(first));
  EXPECT_EQ(first, 2.0F);
}

TEST(CpuWeight, AWeightOfAnotherBackendIsRefused) {
  const auto reference = ops::make_reference_backend();
  const float value = 1.0F;
  const auto w = reference->make_weight(
      {DType::f32, 1, 1, reinterpret_cast<const std::byte*>(&value), nullptr, nullptr}, WeightType::f32);
  const auto backend = make_cpu_backend();
  float y = 0;
  const ops::LinearOut out{w.get(), nullptr, {&y, 1}, false};
  try {
    backend->linear({&out, 1}, {&value, 1}, 1);
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
  }
}

// A matrix cut into many tasks and rows cut into several blocks: every row has its own row's bits, for any
// number of threads, and argmax sees the very same scores.
TEST(CpuLinear, Complaint55_LargeShapesGiveTheBitsOfSingleRows) {
  constexpr int rows = 261, cols = 520, outs = 3001;
  Random rng(7);
  std::vector<std::uint16_t> codes(std::size_t{outs} * cols);
  for (auto& c : codes) c = float_to_bf16(static_cast<float>(rng.normal()));
  std::vector<float> x(std::size_t{rows} * cols);
  for (float& v : x) v = static_cast<float>(rng.normal());
  for (const InstructionSet isa : attainable(detect_cpu_features())) {
    std::vector<float> first;
    for (const int threads : {1, 2, 5}) {
      const auto backend = make_cpu_backend({.isa = isa, .pool = std::make_shared<ThreadPool>(threads)});
      const auto w = backend->make_weight(
          {DType::bf16, outs, cols, reinterpret_cast<const std::byte*>(codes.data()), nullptr, nullptr},
          WeightType::bf16);
      std::vector<float> y(std::size_t{rows} * outs);
      const ops::LinearOut out{w.get(), nullptr, {y.data(), outs}, false};
      backend->linear({&out, 1}, {x.data(), cols}, rows);
      if (first.empty()) first = y;
      ops::testing::expect_same_bits(y, first, "threads");

      std::vector<std::int32_t> ids(rows);
      backend->masked_argmax({x.data(), cols}, rows, *w, outs, nullptr, ids.data());
      for (int r = 0; r < rows; ++r) {
        const float* scores = y.data() + std::size_t{static_cast<unsigned>(r)} * outs;
        EXPECT_EQ(ids[static_cast<std::size_t>(r)], std::max_element(scores, scores + outs) - scores);
      }
      std::vector<float> alone(outs);
      for (const int r : {0, 1, 127, 128, 255, 256, 260}) {
        const ops::LinearOut one{w.get(), nullptr, {alone.data(), outs}, false};
        backend->linear({&one, 1}, {x.data() + std::ptrdiff_t{r} * cols, cols}, 1);
        ops::testing::expect_same_bits(alone, std::span(y).subspan(std::size_t(r) * outs, outs), "alone");
      }
    }
  }
}

}  // namespace
}  // namespace ponder::cpu
