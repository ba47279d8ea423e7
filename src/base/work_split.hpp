// How the rows of an operation are cut into tasks: by the bytes they touch, and by nothing else.
//
// The number of tasks depends on the shape alone, never on the number of threads, so anything summed per task
// is summed the same way on every machine. Tasks are dealt out as threads come free, so a few more tasks than
// threads even out cores of unequal speed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/error.hpp"

namespace ponder {

struct RowRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;  // one past the last
};

struct WorkSplit {
  std::int64_t rows = 0;
  std::int64_t rows_per_task = 1;  // a multiple of the granule; the last task may hold fewer rows
  int tasks = 0;                   // 0 when there are no rows

  RowRange range(int task) const {
    const std::int64_t begin = std::min(rows, task * rows_per_task);
    return {begin, begin + std::min(rows_per_task, rows - begin)};
  }
};

// Tasks of about `bytes_per_task`, in whole multiples of `granule` rows (a kernel's tile height), at least
// one granule each. `bytes_per_row` counts what is read and written for a row; 0 counts as 1.
inline WorkSplit split_by_bytes(std::int64_t rows, std::int64_t bytes_per_row, std::int64_t granule,
                                std::int64_t bytes_per_task) {
  if (rows < 0 || bytes_per_row < 0 || granule < 1 || bytes_per_task < 1) {
    fail(ErrorKind::internal, "cannot split {} rows of {} bytes in granules of {} and tasks of {} bytes",
         rows, bytes_per_row, granule, bytes_per_task);
  }
  if (rows == 0) return {};
  const std::int64_t wanted = bytes_per_task / std::max<std::int64_t>(1, bytes_per_row);
  // Whole granules near `wanted`; few enough rows that the count of tasks stays an int.
  const std::int64_t least = rows / std::numeric_limits<int>::max() + 1;
  const std::int64_t granules = (rows - 1) / granule + 1;
  const std::int64_t per_task =
      std::clamp<std::int64_t>(std::max(wanted / granule, (least - 1) / granule + 1), 1, granules);
  // All rows in one task: not per_task * granule, which may exceed the range of the type.
  if (per_task == granules) return {rows, rows, 1};
  const std::int64_t rows_per_task = per_task * granule;
  return {rows, rows_per_task, static_cast<int>((rows - 1) / rows_per_task + 1)};
}

}  // namespace ponder
