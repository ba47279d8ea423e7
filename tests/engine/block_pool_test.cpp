#include "engine/block_pool.hpp"

#include <cstring>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"

namespace ponder::engine {
namespace {

constexpr std::uint64_t kNoLimit = ~0ULL;

TEST(BlockPool, BlocksStartZeroedAlsoWhenReused) {
  BlockPool pool("test", 100, kNoLimit);
  const std::vector<std::byte> zeros(100);
  std::byte* first = nullptr;
  {
    const BlockRef block = pool.take();
    first = block.data();
    EXPECT_EQ(std::memcmp(block.data(), zeros.data(), 100), 0);
    std::memset(block.data(), 0xFF, 100);
  }
  const BlockRef again = pool.take();
  EXPECT_EQ(again.data(), first) << "a freed block is used again";
  EXPECT_EQ(std::memcmp(again.data(), zeros.data(), 100), 0);
}

TEST(BlockPool, CopiesOfAReferenceShareTheBlock) {
  BlockPool pool("test", 8, kNoLimit);
  BlockRef a = pool.take();
  EXPECT_FALSE(a.shared());
  BlockRef b = a;
  EXPECT_TRUE(a.shared());
  EXPECT_EQ(a.data(), b.data());
  EXPECT_EQ(pool.stats().in_use, 1U);
  b = BlockRef();
  EXPECT_FALSE(a.shared());
  const BlockRef c = std::move(a);
  EXPECT_FALSE(c.shared());
  EXPECT_EQ(pool.stats().in_use, 1U);
}

TEST(BlockPool, WritingToASharedBlockCopiesItOnce) {
  BlockPool pool("test", 8, kNoLimit);
  BlockRef a = pool.take();
  a.data()[3] = std::byte{7};
  BlockRef b = a;
  pool.make_unique(b);
  EXPECT_NE(a.data(), b.data());
  EXPECT_EQ(b.data()[3], std::byte{7});
  b.data()[3] = std::byte{9};
  EXPECT_EQ(a.data()[3], std::byte{7});
  const std::byte* own = b.data();
  pool.make_unique(b);
  EXPECT_EQ(b.data(), own) << "a block of one's own stays where it is";
  EXPECT_EQ(pool.stats().copies, 1U);
}

TEST(BlockPool, TheLimitIsALineNotACrash) {
  BlockPool pool("key/value cache", 64, 200);
  const BlockRef a = pool.take();
  const BlockRef b = pool.take();
  BlockRef c = pool.take();
  try {
    pool.take();
    FAIL() << "a fourth block of 64 bytes is over 200";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::no_memory);
    EXPECT_THAT(error.what(), testing::HasSubstr("key/value cache"));
    EXPECT_THAT(error.what(), testing::HasSubstr("200"));
  }
  c = BlockRef();
  EXPECT_NO_THROW(pool.take());
  EXPECT_EQ(pool.stats().peak, 3U);
}

TEST(BlockPool, CountersReturnToZero) {
  BlockPool pool("test", 16, kNoLimit);
  {
    std::vector<BlockRef> held;
    for (int i = 0; i < 20; ++i) held.push_back(pool.take());
    for (int i = 0; i < 20; ++i) held.push_back(held[static_cast<std::size_t>(i)]);
    for (std::size_t i = 20; i < 40; ++i) pool.make_unique(held[i]);
    EXPECT_EQ(pool.stats().in_use, 40U);
  }
  EXPECT_EQ(pool.stats().in_use, 0U);
  EXPECT_EQ(pool.stats().allocated, 40U);
}

}  // namespace
}  // namespace ponder::engine
