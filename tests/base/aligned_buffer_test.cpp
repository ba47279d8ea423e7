#include "base/aligned_buffer.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

// The sanitizers' allocators otherwise end the process where malloc would return null. The names are theirs.
// NOLINTBEGIN(bugprone-reserved-identifier)
extern "C" const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
// NOLINTEND(bugprone-reserved-identifier)

namespace ponder {
namespace {

using ::testing::HasSubstr;

TEST(AlignedBuffer, AlignedAndZeroAtEverySize) {
  for (const std::size_t count :
       {std::size_t{1}, std::size_t{3}, std::size_t{16}, std::size_t{1000}, (std::size_t{1} << 18) - 1,
        std::size_t{1} << 18, (std::size_t{3} << 18) + 5}) {
    for (const HugePages huge : {HugePages::no, HugePages::yes}) {
      // Dirty memory of the same size first, which the allocator likes to hand out again.
      {
        AlignedBuffer<float> dirty(count, Fill::none, huge);
        std::fill(dirty.begin(), dirty.end(), 1.0f);
      }
      AlignedBuffer<float> buffer(count, Fill::zero, huge);
      EXPECT_EQ(buffer.size(), count);
      EXPECT_EQ(buffer.bytes(), count * 4);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
      EXPECT_EQ(std::count(buffer.begin(), buffer.end(), 0.0f), static_cast<std::ptrdiff_t>(count)) << count;
      std::fill(buffer.begin(), buffer.end(), 2.0f);
    }
  }
}

TEST(AlignedBuffer, LargeHugePageBuffersAreUsableToTheLastByte) {
  for (const Fill fill : {Fill::zero, Fill::none}) {
    AlignedBuffer<std::uint8_t> buffer((std::size_t{5} << 20) + 123, fill, HugePages::yes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % (2u << 20), 0u);
    std::fill(buffer.begin(), buffer.end(), std::uint8_t{7});
    EXPECT_EQ(buffer[buffer.size() - 1], 7);
  }
}

TEST(AlignedBuffer, EmptyBuffers) {
  const AlignedBuffer<int> none;
  const AlignedBuffer<int> zero(0);
  EXPECT_TRUE(none.empty());
  EXPECT_TRUE(zero.empty());
  EXPECT_EQ(zero.data(), nullptr);
  EXPECT_EQ(zero.span().size(), 0u);
}

TEST(AlignedBuffer, MovesKeepTheMemory) {
  AlignedBuffer<int> first(10);
  first[9] = 42;
  const int* const data = first.data();
  AlignedBuffer<int> second(std::move(first));
  EXPECT_EQ(second.data(), data);
  EXPECT_TRUE(first.empty());  // NOLINT(bugprone-use-after-move): what is left is part of the promise
  AlignedBuffer<int> third(3);
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third[9], 42);
  EXPECT_TRUE(second.empty());  // NOLINT(bugprone-use-after-move)
  AlignedBuffer<int>& same = third;
  third = std::move(same);
  EXPECT_EQ(third.size(), 10u);
}

TEST(AlignedBuffer, SizesThatCannotBeAreRefused) {
  for (const std::size_t count : {SIZE_MAX, SIZE_MAX / 8 + 1, SIZE_MAX / 16}) {
    try {
      AlignedBuffer<double> buffer(count);
      ADD_FAILURE() << count << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::no_memory);
      EXPECT_THAT(error.what(), HasSubstr(std::to_string(count)));
    }
  }
  for (const Fill fill : {Fill::zero, Fill::none}) {
    try {
      AlignedBuffer<double> buffer(std::size_t{1} << 57,
                                   fill);  // 2^60 bytes: beyond any address space of today
      ADD_FAILURE() << "an exbibyte was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::no_memory);
      EXPECT_STREQ(error.what(), "cannot allocate 1.00 EiB of memory");
    }
  }
}

}  // namespace
}  // namespace ponder
