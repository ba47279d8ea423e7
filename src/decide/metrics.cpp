#include "decide/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ponder::decide {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double share(double part, double whole) {
  return whole > 0 ? part / whole : kNone;
}

void sort_surest_first(std::vector<Verdict>& verdicts) {
  std::stable_sort(verdicts.begin(), verdicts.end(),
                   [](const Verdict& a, const Verdict& b) { return a.confidence > b.confidence; });
}

// Calls visit(first, last, wrong) for each run of equally sure answers.
template <class Visit>
void for_each_tie(const std::vector<Verdict>& sorted, Visit&& visit) {
  for (std::size_t first = 0; first < sorted.size();) {
    std::size_t last = first, wrong = 0;
    while (last < sorted.size() && sorted[last].confidence == sorted[first].confidence) {
      wrong += sorted[last].correct ? 0 : 1;
      ++last;
    }
    visit(first, last, wrong);
    first = last;
  }
}

}  // namespace

std::size_t reliability_bin(double confidence) {
  std::size_t bin = 0;
  while (bin + 1 < reliability_bins &&
         confidence > static_cast<double>(bin + 1) / static_cast<double>(reliability_bins)) {
    ++bin;
  }
  return bin;
}

void MetricSums::add(std::span<const double> probs, std::size_t predicted, std::size_t label) {
  const bool correct = predicted == label;
  ++sums_.count;
  sums_.correct += correct ? 1 : 0;
  sums_.nll -= std::log(std::max(probs[label], least_probability));
  for (std::size_t i = 0; i < probs.size(); ++i) {
    const double off = probs[i] - (i == label ? 1.0 : 0.0);
    sums_.brier += off * off;
  }
  ReliabilityBin& bin = sums_.bins[reliability_bin(probs[predicted])];
  ++bin.count;
  bin.correct += correct ? 1 : 0;
  bin.confidence_sum += probs[predicted];
}

void MetricSums::add_failed() {
  ++sums_.count;
  ++sums_.failed;
}

Metrics MetricSums::total() const {
  Metrics out = sums_;
  const auto answered = static_cast<double>(out.count - out.failed);
  out.nll = share(out.nll, answered);
  out.brier = share(out.brier, answered);
  double gaps = 0;
  for (const ReliabilityBin& bin : out.bins) {
    gaps += std::abs(static_cast<double>(bin.correct) - bin.confidence_sum);
  }
  out.ece = share(gaps, answered);
  return out;
}

// E. B. Wilson (1927), with z = 1.959964.
Interval wilson_interval(std::size_t correct, std::size_t count) {
  if (count == 0) return {kNone, kNone};
  constexpr double z = 1.959963984540054;
  const auto n = static_cast<double>(count);
  const double p = static_cast<double>(correct) / n;
  const double middle = p + z * z / (2 * n);
  const double reach = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  return {std::max(0.0, (middle - reach) / scale), std::min(1.0, (middle + reach) / scale)};
}

double percentile(std::span<const double> ascending, double q) {
  if (ascending.empty()) return kNone;
  const double place = q * static_cast<double>(ascending.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, ascending.size() - 1);
  return ascending[below] + (place - static_cast<double>(below)) * (ascending[above] - ascending[below]);
}

std::vector<CoveragePoint> risk_coverage(std::vector<Verdict> verdicts) {
  sort_surest_first(verdicts);
  std::vector<CoveragePoint> out;
  std::size_t wrong = 0;
  for_each_tie(verdicts, [&](std::size_t first, std::size_t last, std::size_t wrong_here) {
    wrong += wrong_here;
    out.push_back({static_cast<double>(last) / static_cast<double>(verdicts.size()),
                   static_cast<double>(wrong) / static_cast<double>(last), verdicts[first].confidence});
  });
  return out;
}

double area_under_risk(std::vector<Verdict> verdicts) {
  sort_surest_first(verdicts);
  double sum = 0;
  std::size_t wrong = 0;
  for_each_tie(verdicts, [&](std::size_t first, std::size_t last, std::size_t wrong_here) {
    const double each = static_cast<double>(wrong_here) / static_cast<double>(last - first);
    for (std::size_t i = first; i < last; ++i) {
      sum += (static_cast<double>(wrong) + each * static_cast<double>(i - first + 1)) /
             static_cast<double>(i + 1);
    }
    wrong += wrong_here;
  });
  return share(sum, static_cast<double>(verdicts.size()));
}

SelectivePoint selective_point(std::span<const Considered> questions, double threshold) {
  double labelled = 0, right = 0, right_thinking = 0, thinking = 0, tokens = 0, all_tokens = 0;
  for (const Considered& q : questions) {
    const bool thinks = q.confidence < threshold;
    all_tokens += static_cast<double>(q.tokens);
    if (thinks) {
      ++thinking;
      tokens += static_cast<double>(q.tokens);
    }
    if (!q.labelled) continue;
    ++labelled;
    right += (thinks ? q.thought_correct : q.direct_correct) ? 1 : 0;
    right_thinking += q.thought_correct ? 1 : 0;
  }
  return {threshold, share(right, labelled), share(right, right_thinking),
          share(thinking, static_cast<double>(questions.size())), share(tokens, all_tokens)};
}

std::vector<SelectivePoint> selective_curve(std::span<const Considered> questions, std::size_t most) {
  std::vector<double> thresholds;
  for (const Considered& q : questions) thresholds.push_back(q.confidence);
  thresholds.push_back(std::nextafter(1.0, 2.0));  // above every confidence: always thinking
  std::sort(thresholds.begin(), thresholds.end());
  thresholds.erase(std::unique(thresholds.begin(), thresholds.end()), thresholds.end());
  std::vector<SelectivePoint> out;
  const std::size_t count = std::min(most, thresholds.size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t at = count == 1 ? 0 : i * (thresholds.size() - 1) / (count - 1);
    out.push_back(selective_point(questions, thresholds[at]));
  }
  return out;
}

}  // namespace ponder::decide
