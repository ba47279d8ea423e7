// How many candidate rows the next draft cycle should feed: what a cycle costs on this machine, as it goes,
// against what it is likely to gain. Only speed depends on it.
//
// A cycle with K candidates for each of R rows costs one step of R K rows and, for K > 1, one of R (K - 1)
// mask rows; it yields 1 + a_1 + a_1 a_2 + ... tokens a row, a_i being how often draft i was right of late.
// Times are learned from the cycles themselves; sizes not seen yet are guessed from those around them.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

namespace ponder::decide {

// Milliseconds of steps by their number of rows.
class StepTimes {
 public:
  void add(int rows, double milliseconds);
  bool empty() const noexcept { return times_.empty(); }
  // Between two known sizes: linear. Past the largest: in proportion to the rows, at most. Below the
  // smallest: the smallest's. 0 when nothing is known.
  double estimate(int rows) const;

 private:
  std::map<int, double> times_;  // lightly smoothed minima: what a step takes when nothing disturbs it
};

// How often each draft of a chain was right of late.
class DraftRecord {
 public:
  explicit DraftRecord(int most) : right_(static_cast<std::size_t>(most), kFirstGuess) {}
  // `tried` drafts were fed, the first `right` of them were right; the one behind them, if fed, was wrong.
  void add(int tried, int right);
  // Expected tokens of a cycle that feeds `drafts` of them.
  double expected_tokens(int drafts) const;

 private:
  static constexpr double kFirstGuess = 0.7;
  std::vector<double> right_;
};

class BlockChoice {
 public:
  // `fixed`: always `most`. `most` counts the certain candidate: 1 is plain decoding.
  BlockChoice(int most, bool fixed) : most_(most), fixed_(fixed) {}

  int most() const noexcept { return most_; }
  StepTimes& steps() noexcept { return steps_; }
  StepTimes& drafts() noexcept { return drafts_; }

  // Candidates a row for the next cycle of the rows with these records.
  int choose(const std::vector<const DraftRecord*>& rows);

 private:
  double rate(const std::vector<const DraftRecord*>& rows, int block) const;

  int most_;
  bool fixed_;
  StepTimes steps_, drafts_;
  int plain_cycles_ = 0;  // since the last one with drafts
  int patience_ = 32;     // plain cycles before drafts are tried again; doubles while they keep failing
};

}  // namespace ponder::decide
