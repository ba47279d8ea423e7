// How an attention call is cut into tasks. Which task computes what never changes a row's bits
// (attention_tile.hpp), so the cut may go by whatever makes it fast:
// - many rows of a sequence: a tile of rows a task, over all they see;
// - few rows behind a long past: a task for each part of the past, together for all sequences that hold the
//   very same pages there (forks of one prefix), and the parts put together afterwards.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/aligned_buffer.hpp"
#include "cpu/attention_tile.hpp"

namespace ponder::cpu {

struct AttentionTask {
  enum class Kind : std::uint8_t { all, part, own };
  Kind kind;
  int first, count;  // rows of the plan
  int part;          // of the first row's past; own rows come behind the past's last
};

class AttentionPlan {
 public:
  // Cuts the call; keeps its memory for the next one.
  void make(const ops::AttentionArgs& args);

  std::span<const AttentionRow> rows(const AttentionTask& task) const {
    return {rows_.data() + task.first, static_cast<std::size_t>(task.count)};
  }
  // Parts are computed in waves, so that their sums need bounded memory. The first wave has all other tasks.
  bool next_wave();
  std::span<const AttentionTask> tasks() const { return tasks_; }

  // Rows computed in parts, and where query head h's sums of one part, or of all so far, lie.
  int split_rows() const { return split_rows_; }
  const AttentionRow& split_row(int r) const { return rows_[static_cast<std::size_t>(r)]; }
  int wave_parts() const { return wave_end_ - wave_begin_; }
  bool last_wave() const { return wave_end_ >= parts_; }
  static bool sees_nothing(const AttentionRow& row) {
    return row.sinks == 0 && row.begin >= row.end && row.segment->own_rows == 0;
  }
  // The first part that a row sees anything of.
  static int first_part(const AttentionRow& row);
  Partial partial(int r, int part, int head);
  Partial total(int r, int head);
  // Calls take(part) for the parts of row r that this wave has, in order.
  template <class Take>
  void for_parts(int r, Take take) const {
    const AttentionRow& row = split_row(r);
    const int own = parts_of(*row.segment);
    for (int part = wave_begin_; part < wave_end_ && part <= own; ++part) {
      if (part == own ? row.segment->own_rows > 0 : row.sees(part)) take(part);
    }
  }

 private:
  static int parts_of(const ops::AttentionSegment& segment);
  void add_rows(const ops::AttentionSegment& segment);
  void add_parts(int part);
  bool same_pages(const AttentionRow& a, const AttentionRow& b, int part) const;
  float* sums(std::int64_t slot) { return sums_.data() + slot * sum_floats_; }

  int tile_rows_ = 0, heads_ = 0, value_dim_ = 0;
  std::vector<AttentionRow> rows_;  // those computed in parts first
  std::vector<AttentionTask> tasks_;
  int split_rows_ = 0;
  int parts_ = 0;  // most parts of a row computed in parts, own rows included
  int wave_parts_ = 1, wave_begin_ = 0, wave_end_ = 0;
  bool started_ = false;
  std::int64_t sum_floats_ = 0;
  AlignedBuffer<float> sums_;  // totals [split rows][heads], then partials [wave parts][split rows][heads]
};

}  // namespace ponder::cpu
