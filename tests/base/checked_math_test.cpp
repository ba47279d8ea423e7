#include "base/checked_math.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/clock.hpp"
#include "base/function_ref.hpp"

namespace ponder {
namespace {

TEST(CheckedMath, SumsDifferencesAndProductsAtTheEdge) {
  EXPECT_EQ(checked_add(INT64_MAX - 1, 1), INT64_MAX);
  EXPECT_EQ(checked_add(INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_add(INT64_MIN, -1), std::nullopt);
  EXPECT_EQ(checked_add(SIZE_MAX, 1), std::nullopt);
  EXPECT_EQ(checked_sub(std::size_t{3}, 4), std::nullopt);
  EXPECT_EQ(checked_sub(INT64_MIN, 1), std::nullopt);
  EXPECT_EQ(checked_sub(std::int64_t{3}, 4), -1);
  EXPECT_EQ(checked_mul(std::size_t{1} << 32, (std::size_t{1} << 32) - 1), SIZE_MAX - 0xFFFFFFFFu);
  EXPECT_EQ(checked_mul(std::size_t{1} << 32, std::size_t{1} << 32), std::nullopt);
  EXPECT_EQ(checked_mul(INT64_MIN, -1), std::nullopt);
  EXPECT_EQ(checked_mul(std::int64_t{-3}, 5), -15);
}

TEST(CheckedMath, ProductsOfShapes) {
  const auto product = [](std::initializer_list<std::int64_t> shape) {
    return checked_product(std::span<const std::int64_t>(shape.begin(), shape.size()));
  };
  EXPECT_EQ(product({}), 1);
  EXPECT_EQ(product({2, 3, 7}), 42);
  EXPECT_EQ(product({INT64_MAX, 1}), INT64_MAX);
  EXPECT_EQ(product({INT64_MAX, 2}), std::nullopt);
  EXPECT_EQ(product({std::int64_t{1} << 31, std::int64_t{1} << 31, 2}), std::nullopt);
  EXPECT_EQ(product({0, INT64_MAX, INT64_MAX}), 0);
  EXPECT_EQ(product({INT64_MAX, INT64_MAX, 0}), 0);
}

TEST(CheckedMath, Casts) {
  EXPECT_EQ(checked_cast<std::int32_t>(std::int64_t{INT32_MAX}), INT32_MAX);
  EXPECT_EQ(checked_cast<std::int32_t>(std::int64_t{INT32_MAX} + 1), std::nullopt);
  EXPECT_EQ(checked_cast<std::size_t>(-1), std::nullopt);
  EXPECT_EQ(checked_cast<std::int64_t>(SIZE_MAX), std::nullopt);
  EXPECT_EQ(checked_cast<std::uint8_t>(255), 255);
  EXPECT_EQ(narrow<int>(SIZE_MAX >> 33), INT32_MAX);
  try {
    narrow<int>(SIZE_MAX);
    FAIL() << "narrowed";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_NE(std::string(error.what()).find("18446744073709551615"), std::string::npos);
  }
}

int twice(int x) {
  return 2 * x;
}

struct Counter {
  int calls = 0;
  int operator()(int x) {
    ++calls;
    return x + calls;
  }
};

TEST(FunctionRef, RefersToWhatItWasMadeFrom) {
  Counter counter;
  const FunctionRef<int(int)> ref(counter);
  const FunctionRef<int(int)> copy = ref;  // the same target, not a reference to a reference
  EXPECT_EQ(ref(10), 11);
  EXPECT_EQ(copy(10), 12);
  EXPECT_EQ(counter.calls, 2);
  EXPECT_EQ(FunctionRef<int(int)>(twice)(21), 42);
  int (*const pointer)(int) = &twice;
  EXPECT_EQ(FunctionRef<int(int)>(pointer)(4), 8);
  const auto lambda = [&](int x) { return counter.calls + x; };
  EXPECT_EQ(FunctionRef<int(int)>(lambda)(1), 3);
  std::string text = "a";
  FunctionRef<void(std::string&)>([](std::string& s) { s += "b"; })(text);
  EXPECT_EQ(text, "ab");
  EXPECT_LE(sizeof(FunctionRef<int(int)>), 2 * sizeof(void*));
}

TEST(Stopwatch, NeverGoesBackwards) {
  const Stopwatch watch;
  double last = 0;
  for (int i = 0; i < 1000; ++i) {
    const double now = watch.elapsed_ms();
    EXPECT_GE(now, last);
    last = now;
  }
}

}  // namespace
}  // namespace ponder
