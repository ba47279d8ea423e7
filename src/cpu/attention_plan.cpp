#include "cpu/attention_plan.hpp"

#include <algorithm>

namespace ponder::cpu {

using namespace ops;  // this room implements ops' vocabulary

namespace {

constexpr int kFewRows = 32;  // from so many rows on, a sequence's tiles are tasks enough
constexpr std::int64_t kMostPartialFloats = std::int64_t{4} << 20;

}  // namespace

int AttentionPlan::parts_of(const AttentionSegment& segment) {
  const AttentionRow first(segment, 0), last(segment, segment.rows - 1);
  return static_cast<int>((std::max(first.end, last.end) + kPartRows - 1) / kPartRows);
}

int AttentionPlan::first_part(const AttentionRow& row) {
  if (row.sinks > 0) return 0;
  return row.begin < row.end ? static_cast<int>(row.begin / kPartRows) : parts_of(*row.segment);
}

void AttentionPlan::add_rows(const AttentionSegment& segment) {
  for (int r = 0; r < segment.rows; ++r) rows_.emplace_back(segment, r);
}

void AttentionPlan::make(const AttentionArgs& args) {
  tile_rows_ = tile_rows(args.heads / args.kv.heads);
  heads_ = args.heads;
  value_dim_ = args.kv.value_dim;
  rows_.clear();
  tasks_.clear();
  parts_ = 0;
  const auto in_parts = [](const AttentionSegment& segment) {
    return segment.rows < kFewRows && parts_of(segment) + (segment.own_rows > 0 ? 1 : 0) > 1;
  };
  for (const AttentionSegment& segment : args.segments) {
    if (segment.rows <= 0 || !in_parts(segment)) continue;
    add_rows(segment);
    parts_ = std::max(parts_, parts_of(segment) + (segment.own_rows > 0 ? 1 : 0));
  }
  split_rows_ = static_cast<int>(rows_.size());
  for (const AttentionSegment& segment : args.segments) {
    if (segment.rows <= 0 || in_parts(segment)) continue;
    const int first = static_cast<int>(rows_.size());
    add_rows(segment);
    for (int r = 0; r < segment.rows; r += tile_rows_) {
      tasks_.push_back({AttentionTask::Kind::all, first + r, std::min(tile_rows_, segment.rows - r), 0});
    }
  }
  sum_floats_ = (std::int64_t{value_dim_} + 2 + 15) / 16 * 16;
  const std::int64_t part_floats = std::int64_t{split_rows_} * heads_ * sum_floats_;
  wave_parts_ = static_cast<int>(std::clamp<std::int64_t>(
      kMostPartialFloats / std::max<std::int64_t>(1, part_floats), 1, std::max(1, parts_)));
  const auto needed = static_cast<std::size_t>(part_floats * (1 + wave_parts_));
  if (sums_.size() < needed) sums_ = AlignedBuffer<float>(needed, Fill::none, HugePages::yes);
  wave_begin_ = wave_end_ = 0;
  started_ = false;
}

bool AttentionPlan::next_wave() {
  if (started_) tasks_.clear();
  started_ = true;
  wave_begin_ = wave_end_;
  wave_end_ = std::min(parts_, wave_begin_ + wave_parts_);
  for (int part = wave_begin_; part < wave_end_; ++part) add_parts(part);
  return !tasks_.empty();
}

// Tasks for one part of all rows computed in parts: neighbours on the same pages share one.
void AttentionPlan::add_parts(int part) {
  for (int r = 0; r < split_rows_;) {
    const AttentionRow& row = split_row(r);
    const int own = parts_of(*row.segment);
    const bool is_own = part == own && row.segment->own_rows > 0;
    int end = r + 1;
    if (is_own) {
      while (end < split_rows_ && end - r < tile_rows_ && split_row(end).segment == row.segment) ++end;
      tasks_.push_back({AttentionTask::Kind::own, r, end - r, part});
    } else if (row.sees(part)) {
      while (end < split_rows_ && end - r < tile_rows_ && split_row(end).sees(part) &&
             same_pages(row, split_row(end), part)) {
        ++end;
      }
      tasks_.push_back({AttentionTask::Kind::part, r, end - r, part});
    }
    r = end;
  }
}

bool AttentionPlan::same_pages(const AttentionRow& a, const AttentionRow& b, int part) const {
  const KvPages x = a.segment->cache, y = b.segment->cache;
  if (x.offset != y.offset) return false;
  if (x.pages == y.pages) return true;
  const auto pages = [&](const AttentionRow& row) {
    return std::min<std::int64_t>((row.end + kPageRows - 1) / kPageRows,
                                  (part + std::int64_t{1}) * kPartPages);
  };
  const std::int64_t first = std::int64_t{part} * kPartPages, end = pages(a);
  return pages(b) == end && std::equal(x.pages + first, x.pages + end, y.pages + first);
}

Partial AttentionPlan::partial(int r, int part, int head) {
  const std::int64_t slot = std::int64_t{part - wave_begin_ + 1} * split_rows_ + r;
  float* at = sums(slot * heads_ + head);
  return {at, at + value_dim_, at + value_dim_ + 1};
}

Partial AttentionPlan::total(int r, int head) {
  float* at = sums(std::int64_t{r} * heads_ + head);
  return {at, at + value_dim_, at + value_dim_ + 1};
}

}  // namespace ponder::cpu
