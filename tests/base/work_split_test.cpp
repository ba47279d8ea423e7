#include "base/work_split.hpp"

#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace ponder {
namespace {

TEST(WorkSplit, WholeGranulesOfAboutTheBytesAsked) {
  const WorkSplit split = split_by_bytes(1000, 100, 16, 10000);  // 100 rows asked, 96 are whole granules
  EXPECT_EQ(split.rows_per_task, 96);
  EXPECT_EQ(split.tasks, 11);
  EXPECT_EQ(split.range(0).begin, 0);
  EXPECT_EQ(split.range(10).begin, 960);
  EXPECT_EQ(split.range(10).end, 1000);
}

TEST(WorkSplit, RowsLargerThanATaskGoGranuleByGranule) {
  const WorkSplit split = split_by_bytes(40, 1 << 20, 16, 1024);
  EXPECT_EQ(split.rows_per_task, 16);
  EXPECT_EQ(split.tasks, 3);
}

TEST(WorkSplit, TheEdges) {
  EXPECT_EQ(split_by_bytes(0, 10, 1, 10).tasks, 0);
  EXPECT_EQ(split_by_bytes(1, 0, 64, 1).tasks, 1);
  EXPECT_EQ(split_by_bytes(5, 1, INT64_MAX, 1).tasks, 1);
  EXPECT_EQ(split_by_bytes(5, 1, INT64_MAX, 1).range(0).end, 5);
  const WorkSplit many = split_by_bytes(INT64_MAX, 1, 1, 1);
  EXPECT_EQ(many.range(many.tasks - 1).end, INT64_MAX);
  EXPECT_LT(many.range(many.tasks - 1).begin, INT64_MAX);
  EXPECT_THROW(split_by_bytes(-1, 1, 1, 1), Error);
  EXPECT_THROW(split_by_bytes(1, -1, 1, 1), Error);
  EXPECT_THROW(split_by_bytes(1, 1, 0, 1), Error);
  EXPECT_THROW(split_by_bytes(1, 1, 1, 0), Error);
}

RC_GTEST_PROP(WorkSplit, EveryRowIsInExactlyOneTask, ()) {
  const auto rows = *rc::gen::inRange<std::int64_t>(1, 5000);
  const auto bytes = *rc::gen::inRange<std::int64_t>(0, 4000);
  const auto granule = *rc::gen::inRange<std::int64_t>(1, 70);
  const auto target = *rc::gen::inRange<std::int64_t>(1, 100000);
  const WorkSplit split = split_by_bytes(rows, bytes, granule, target);
  std::int64_t next = 0;
  for (int task = 0; task < split.tasks; ++task) {
    const RowRange range = split.range(task);
    RC_ASSERT(range.begin == next);
    RC_ASSERT(range.end > range.begin);
    RC_ASSERT(range.begin % granule == 0);
    RC_ASSERT((range.end - range.begin) * bytes <= target || range.end - range.begin <= granule);
    next = range.end;
  }
  RC_ASSERT(next == rows);
}

}  // namespace
}  // namespace ponder
