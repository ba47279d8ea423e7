#include "decide/block_choice.hpp"

#include <algorithm>

namespace ponder::decide {
namespace {

constexpr double kMemory = 0.9;  // weight of the past in a draft's record
constexpr double kRelax = 0.02;  // how fast a step's time forgets its least
constexpr int kMostPatience =
    1024;  // a useless drafter is tried once in so many cycles: a fraction of a percent

}  // namespace

void StepTimes::add(int rows, double milliseconds) {
  const auto [at, fresh] = times_.emplace(rows, milliseconds);
  if (fresh) return;
  // Another process may slow a step down at any time; nothing makes one faster than it is.
  at->second = milliseconds < at->second ? milliseconds : at->second + kRelax * (milliseconds - at->second);
}

double StepTimes::estimate(int rows) const {
  if (times_.empty()) return 0;
  const auto above = times_.lower_bound(rows);
  if (above == times_.end()) {
    const auto& [most, time] = *times_.rbegin();
    return time * rows / most;
  }
  if (above->first == rows || above == times_.begin()) return above->second;
  const auto below = std::prev(above);
  const double share = static_cast<double>(rows - below->first) / (above->first - below->first);
  return below->second + share * (above->second - below->second);
}

void DraftRecord::add(int tried, int right) {
  for (int i = 0; i < std::min(tried, right + 1) && i < static_cast<int>(right_.size()); ++i) {
    double& r = right_[static_cast<std::size_t>(i)];
    r = kMemory * r + (i < right ? 1 - kMemory : 0);
  }
}

double DraftRecord::expected_tokens(int drafts) const {
  double tokens = 1, all_right = 1;
  for (int i = 0; i < drafts && i < static_cast<int>(right_.size()); ++i) {
    all_right *= right_[static_cast<std::size_t>(i)];
    tokens += all_right;
  }
  return tokens;
}

// Tokens a millisecond of all rows together.
double BlockChoice::rate(const std::vector<const DraftRecord*>& rows, int block) const {
  const int count = static_cast<int>(rows.size());
  double tokens = 0;
  for (const DraftRecord* row : rows) tokens += row->expected_tokens(block - 1);
  double time = steps_.estimate(count * block);
  if (block > 1) {
    const int masks = count * (block - 1);
    time += drafts_.empty() ? steps_.estimate(masks) : drafts_.estimate(masks);
  }
  return time <= 0 ? tokens : tokens / time;
}

int BlockChoice::choose(const std::vector<const DraftRecord*>& rows) {
  if (fixed_ || most_ == 1 || rows.empty()) return most_;
  int best = 1;
  double best_rate = rate(rows, 1);
  for (int block = 2; block <= most_; ++block) {
    const double r = rate(rows, block);
    if (r > best_rate) {
      best = block;
      best_rate = r;
    }
  }
  if (best > 1) {
    plain_cycles_ = 0;
    return best;
  }
  // What drafts are worth is only seen by making some.
  if (++plain_cycles_ < patience_) return 1;
  plain_cycles_ = 0;
  patience_ = std::min(2 * patience_, kMostPatience);
  return std::min(2, most_);
}

}  // namespace ponder::decide
