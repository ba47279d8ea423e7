#include "base/scratch.hpp"

#include <cstdint>
#include <span>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ponder {
namespace {

TEST(ScratchArena, PiecesAreAlignedAndDoNotOverlap) {
  ScratchArena arena(1024);
  const std::span<float> a = arena.take<float>(3);
  const std::span<std::uint8_t> b = arena.take<std::uint8_t>(65);
  const std::span<double> c = arena.take<double>(8);
  ASSERT_EQ(a.size(), 3u);
  ASSERT_EQ(b.size(), 65u);
  ASSERT_EQ(c.size(), 8u);
  const auto* const base = reinterpret_cast<const std::uint8_t*>(a.data());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(base) % 64, 0u);
  EXPECT_EQ(b.data() - base, 64);
  EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(c.data()) - base, 64 + 128);
  EXPECT_EQ(arena.used(), 64u + 128u + 64u);
}

TEST(ScratchArena, SizedByAddingUp) {
  const std::size_t size = ScratchArena::bytes_for<float>(5) + ScratchArena::bytes_for<std::int8_t>(64) +
                           ScratchArena::bytes_for<double>(0) + ScratchArena::bytes_for<float>(17);
  EXPECT_EQ(size, 64u + 64u + 0u + 128u);
  ScratchArena arena(size);
  arena.take<float>(5);
  arena.take<std::int8_t>(64);
  arena.take<double>(0);
  arena.take<float>(17);
  EXPECT_EQ(arena.used(), arena.capacity());
  EXPECT_THROW(arena.take<char>(1), Error);
  EXPECT_NO_THROW(arena.take<char>(0));
  EXPECT_THROW(ScratchArena::bytes_for<double>(SIZE_MAX / 8), Error);
}

TEST(ScratchArena, TooSmallNamesTheSizes) {
  ScratchArena arena(256);
  arena.take<float>(16);
  try {
    arena.take<float>(49);
    FAIL() << "given";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    EXPECT_STREQ(error.what(), "scratch of 256 bytes, 64 in use, cannot give 256 more");
  }
  EXPECT_EQ(arena.used(), 64u);  // a refusal takes nothing
  EXPECT_EQ(arena.take<float>(48).size(), 48u);
  EXPECT_THROW(arena.take<double>(SIZE_MAX), Error);
}

TEST(ScratchArena, ScopesGiveBack) {
  ScratchArena arena(512);
  const float* const kept = arena.take<float>(16).data();
  const float* inner = nullptr;
  {
    const ScratchScope scope(arena);
    inner = arena.take<float>(16).data();
    {
      const ScratchScope nested(arena);
      arena.take<float>(64);
    }
    EXPECT_EQ(arena.used(), 128u);
  }
  EXPECT_EQ(arena.used(), 64u);
  EXPECT_EQ(arena.take<float>(1).data(), inner);
  EXPECT_NE(inner, kept);
  EXPECT_EQ(arena.peak(), 384u);
  const std::size_t mark = arena.mark();
  arena.take<float>(1);
  arena.rewind(mark);
  EXPECT_EQ(arena.used(), mark);
  EXPECT_THROW(arena.rewind(mark + 64), Error);
}

}  // namespace
}  // namespace ponder
