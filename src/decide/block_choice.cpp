#include "decide/block_choice.hpp"

#include <algorithm>
#include <cmath>

namespace ponder::decide {
namespace {

constexpr double kMemory = 0.9;          // of a chain's record: some ten drafts
constexpr double kOthersMemory = 0.98;   // of all chains' record
constexpr double kFirstGuess = 0.7;      // how often a draft is right when nothing is known of any
constexpr double kGuessWeight = 2;       // drafts seen that a guess is worth
constexpr double kTrialShare = 0.01;     // of the time, for trying what seems worse
constexpr double kLeastLoss = 0.1;       // of a cycle, charged for any trial: what seems best is mostly taken
constexpr double kMostSavings = 3;       // cycles' worth: what there is at first, and ever
constexpr double kPaceShare = 0.3;       // of a surprise that is put down to the machine
constexpr double kDoubtOfOldAge = 0.25;  // how much better a block may be for each trial it was passed over

}  // namespace

void StepTimes::add(int rows, double milliseconds) {
  Newest& newest = times_[rows];
  if (pace_ != nullptr && newest.count > 0 && milliseconds > 0 && newest.median() > 0) {
    const double surprise = milliseconds / (newest.median() * *pace_);
    *pace_ *= std::pow(std::clamp(surprise, 0.5, 2.0), kPaceShare);
  }
  newest.values[newest.count++ % kNewest] = pace_ != nullptr ? milliseconds / *pace_ : milliseconds;
}

double StepTimes::Newest::median() const {
  std::array<double, kNewest> sorted = values;
  const std::size_t known = std::min(count, kNewest);
  std::sort(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(known));
  return sorted[(known - 1) / 2];  // of two the lower: what disturbs a step only makes it slower
}

double StepTimes::estimate(int rows) const {
  return at_usual_pace(rows) * (pace_ != nullptr ? *pace_ : 1);
}

double StepTimes::at_usual_pace(int rows) const {
  if (times_.empty()) return 0;
  const auto above = times_.lower_bound(rows);
  if (above == times_.end()) return times_.rbegin()->second.median();
  const double time = above->second.median();
  if (above->first == rows || above == times_.begin()) return time;
  const auto below = std::prev(above);
  const double less = below->second.median();
  return less + (time - less) * (rows - below->first) / (above->first - below->first);
}

void DraftRecord::add(int tried, int right) {
  if (others_ != nullptr) others_->add(tried, right);
  const double memory = others_ != nullptr ? kMemory : kOthersMemory;
  for (int i = 0; i < std::min(tried, right + 1) && i < static_cast<int>(seen_.size()); ++i) {
    Seen& seen = seen_[static_cast<std::size_t>(i)];
    seen.tried = memory * seen.tried + 1;
    seen.right = memory * seen.right + (i < right ? 1 : 0);
  }
}

double DraftRecord::share(std::size_t draft, double guess) const {
  const Seen& seen = seen_[draft];
  return (kGuessWeight * guess + seen.right) / (kGuessWeight + seen.tried);
}

// A draft of which nothing is known is taken to be as good as the one before it.
double DraftRecord::expected_tokens(int drafts) const {
  double tokens = 1, all_right = 1, guess = kFirstGuess;
  for (std::size_t i = 0; i < static_cast<std::size_t>(drafts) && i < seen_.size(); ++i) {
    if (others_ != nullptr) guess = others_->share(i, guess);
    const double mine = share(i, guess);
    if (others_ == nullptr) guess = mine;
    all_right *= mine;
    tokens += all_right;
  }
  return tokens;
}

BlockChoice::Outlook BlockChoice::outlook(const std::vector<const DraftRecord*>& rows, int block) const {
  const int count = static_cast<int>(rows.size());
  Outlook out;
  for (const DraftRecord* row : rows) out.tokens += row->expected_tokens(block - 1);
  out.milliseconds = steps_.estimate(count * block);
  if (block > 1) {
    const int masks = count * (block - 1);
    out.milliseconds += drafts_.empty() ? steps_.estimate(masks) : drafts_.estimate(masks);
  }
  return out;
}

int BlockChoice::choose(const std::vector<const DraftRecord*>& rows) {
  if (fixed_ || most_ == 1 || rows.empty()) return most_;
  std::vector<Outlook> outlooks(1);  // by block
  int best = 1;
  for (int block = 1; block <= most_; ++block) {
    outlooks.push_back(outlook(rows, block));
    if (outlooks.back().rate() > outlooks[static_cast<std::size_t>(best)].rate()) best = block;
  }
  const int chosen = trial(outlooks, best);
  tries_since_[static_cast<std::size_t>(chosen)] = 0;
  return chosen;
}

// `best`, or another block whose turn it is and for whose loss enough was set aside.
int BlockChoice::trial(const std::vector<Outlook>& outlooks, int best) {
  const Outlook& most = outlooks[static_cast<std::size_t>(best)];
  const double enough = kMostSavings * most.milliseconds;
  savings_ = savings_ < 0 ? enough : std::min(savings_ + kTrialShare * most.milliseconds, enough);
  const auto promise = [&](std::size_t block) {
    return outlooks[block].rate() * (1 + kDoubtOfOldAge * tries_since_[block]);
  };
  std::size_t other = 0;
  for (std::size_t block = 1; block < outlooks.size(); ++block) {
    if (static_cast<int>(block) == best) continue;
    if (other == 0 || promise(block) > promise(other)) other = block;
  }
  if (other == 0) return best;
  const double loss = std::max(outlooks[other].milliseconds - outlooks[other].tokens / most.rate(),
                               kLeastLoss * most.milliseconds);
  if (savings_ < loss) return best;
  savings_ -= loss;
  for (int& tries : tries_since_) ++tries;
  return static_cast<int>(other);
}

}  // namespace ponder::decide
