// How many candidate rows the next draft cycle should feed: what a cycle costs on this machine, as it goes,
// against what it is likely to gain. Only speed depends on it.
//
// A cycle with K candidates for each of R rows costs one step of R K rows and, for K > 1, one of R (K - 1)
// mask rows; it yields 1 + a_1 + a_1 a_2 + ... tokens a row, a_i being how often draft i was right of late
// where those before it were. Both are learned from the cycles themselves. What is not known yet is guessed
// kindly, so that it is tried soon; and a hundredth of the time goes into trying what seems worse.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

namespace ponder::decide {

// Milliseconds of steps by their number of rows: the median of the newest few.
class StepTimes {
 public:
  // `pace`: how slow the machine is at present, shared with other times and learned along. When other work or
  // longer contexts slow one size down, the others are taken to be as much slower: an old time of one is not
  // compared with a new one of another.
  explicit StepTimes(double* pace = nullptr) : pace_(pace) {}
  void add(int rows, double milliseconds);
  bool empty() const noexcept { return times_.empty(); }
  // Between two known sizes: linear. Past the largest: the largest's. Below the smallest: the smallest's. 0
  // when nothing is known.
  double estimate(int rows) const;

 private:
  static constexpr std::size_t kNewest = 5;  // odd
  struct Newest {
    std::array<double, kNewest> values{};
    std::size_t count = 0;  // of all that were added
    double median() const;
  };
  double at_usual_pace(int rows) const;

  std::map<int, Newest> times_;
  double* pace_;
};

// How often each draft of a chain was right of late.
class DraftRecord {
 public:
  // `others`: what all chains together saw; learns along with this one, speaks for what this one has not seen
  // yet, and must outlive it.
  explicit DraftRecord(int most, DraftRecord* others = nullptr)
      : seen_(static_cast<std::size_t>(most)), others_(others) {}
  // `tried` drafts were fed, the first `right` of them were right; the one behind them, if fed, was wrong.
  void add(int tried, int right);
  // Expected tokens of a cycle that feeds `drafts` of them.
  double expected_tokens(int drafts) const;

 private:
  struct Seen {
    double tried = 0, right = 0;  // both fade
  };
  double share(std::size_t draft, double guess) const;

  std::vector<Seen> seen_;
  DraftRecord* others_;
};

class BlockChoice {
 public:
  // `fixed`: always `most`. `most` counts the certain candidate: 1 is plain decoding.
  BlockChoice(int most, bool fixed)
      : most_(most), fixed_(fixed), all_(most), tries_since_(static_cast<std::size_t>(most) + 1) {}
  BlockChoice(const BlockChoice&) = delete;  // records refer to it
  BlockChoice& operator=(const BlockChoice&) = delete;

  int most() const noexcept { return most_; }
  StepTimes& steps() noexcept { return steps_; }
  StepTimes& drafts() noexcept { return drafts_; }
  // For a chain that begins.
  DraftRecord new_record() { return DraftRecord(most_, &all_); }

  // Candidates a row for the next cycle of the rows with these records.
  int choose(const std::vector<const DraftRecord*>& rows);

 private:
  // Of one cycle of all rows.
  struct Outlook {
    double tokens = 0, milliseconds = 0;
    double rate() const { return milliseconds <= 0 ? tokens : tokens / milliseconds; }
  };
  Outlook outlook(const std::vector<const DraftRecord*>& rows, int block) const;
  int trial(const std::vector<Outlook>& outlooks, int best);

  int most_;
  bool fixed_;
  double pace_ = 1;
  StepTimes steps_{&pace_}, drafts_{&pace_};
  DraftRecord all_;
  double savings_ = -1;           // milliseconds set aside for trials; below 0: the first are to be given
  std::vector<int> tries_since_;  // by block: trials of others since it was last chosen
};

}  // namespace ponder::decide
