// Metrics against numbers worked out by hand, and against plain second implementations.
#include "decide/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace ponder::decide::test {
namespace {

struct Given {
  std::vector<double> probs;
  std::size_t label;
};

std::size_t first_largest(const std::vector<double>& p) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < p.size(); ++i) best = p[i] > p[best] ? i : best;
  return best;
}

Metrics measure(const std::vector<Given>& all) {
  MetricSums sums;
  for (const Given& g : all) sums.add(g.probs, first_largest(g.probs), g.label);
  return sums.total();
}

TEST(Metrics, ThreeAnswersByHand) {
  const Metrics m = measure({{{0.7, 0.3}, 0}, {{0.2, 0.5, 0.3}, 2}, {{0.25, 0.25, 0.25, 0.25}, 0}});
  EXPECT_EQ(m.count, 3U);
  EXPECT_EQ(m.correct, 2U) << "of equals the first is the answer";
  EXPECT_NEAR(m.accuracy(), 2.0 / 3, 1e-15);
  EXPECT_NEAR(m.nll, -(std::log(0.7) + std::log(0.3) + std::log(0.25)) / 3, 1e-15);
  // 0.09 + 0.09; 0.04 + 0.25 + 0.49; 0.5625 + 3 * 0.0625
  EXPECT_NEAR(m.brier, (0.18 + 0.78 + 0.75) / 3, 1e-15);
  // Each in a bin of its own: |1 - 0.7|, |0 - 0.5|, |1 - 0.25|, a third each.
  EXPECT_NEAR(m.ece, (0.3 + 0.5 + 0.75) / 3, 1e-15);
}

TEST(Metrics, AnswersOfABinAreComparedTogether) {
  // Right half of the time at 0.55 and at 0.45: one gap cancels inside a bin, the other is alone in its own.
  const Metrics m = measure({{{0.56, 0.44}, 0}, {{0.54, 0.46}, 1}, {{0.42, 0.38, 0.2}, 0}});
  EXPECT_EQ(m.bins[5].count, 2U);
  EXPECT_EQ(m.bins[5].correct, 1U);
  EXPECT_NEAR(m.bins[5].confidence(), 0.55, 1e-15);
  EXPECT_NEAR(m.ece, 2.0 / 3 * 0.05 + 1.0 / 3 * 0.58, 1e-15);
}

TEST(Metrics, BinsHoldTheirUpperEdge) {
  for (std::size_t k = 1; k <= 10; ++k) {
    const double edge = static_cast<double>(k) / 10;
    EXPECT_EQ(reliability_bin(edge), k - 1) << edge;
    if (k < 10) {
      EXPECT_EQ(reliability_bin(std::nextafter(edge, 2)), k) << edge;
    }
  }
  EXPECT_EQ(reliability_bin(0), 0U);
  EXPECT_EQ(reliability_bin(1.0000001), 9U);
}

TEST(Metrics, WhatFailedIsWrongAndNothingElse) {
  MetricSums sums;
  sums.add(std::vector<double>{0.8, 0.2}, 0, 0);
  sums.add_failed();
  const Metrics m = sums.total();
  EXPECT_EQ(m.accuracy(), 0.5);
  EXPECT_EQ(m.failed, 1U);
  EXPECT_NEAR(m.nll, -std::log(0.8), 1e-15);
  EXPECT_NEAR(m.brier, 0.08, 1e-15);
  EXPECT_NEAR(m.ece, 0.2, 1e-15);
}

TEST(Metrics, AnImpossibleLabelCostsALimitedAmount) {
  EXPECT_NEAR(measure({{{1.0, 0.0}, 1}}).nll, 12 * std::log(10.0), 1e-12);
  EXPECT_EQ(measure({{{1.0, 0.0}, 1}}).brier, 2.0);
}

TEST(Metrics, NothingToMeasureIsNoNumber) {
  const Metrics m = measure({});
  EXPECT_TRUE(std::isnan(m.accuracy()));
  EXPECT_TRUE(std::isnan(m.nll));
  EXPECT_TRUE(std::isnan(m.ece));
}

TEST(Metrics, ManyAnswersAgreeWithAPlainImplementation) {
  Random random(3);
  std::vector<Given> all;
  for (int i = 0; i < 500; ++i) {
    std::vector<double> p(2 + random.below(5));
    double sum = 0;
    for (double& x : p) sum += x = std::pow(random.uniform(), 3);
    for (double& x : p) x /= sum;
    all.push_back({p, random.below(p.size())});
  }
  // By group of equal ceil(10 c): lists first, means at the end.
  std::map<int, std::vector<std::pair<double, double>>> groups;
  double right = 0, nll = 0, brier = 0;
  for (const Given& g : all) {
    const double c = *std::max_element(g.probs.begin(), g.probs.end());
    const bool hit = g.probs[g.label] == c;
    groups[static_cast<int>(std::ceil(c * 10))].emplace_back(c, hit ? 1 : 0);
    right += hit ? 1 : 0;
    nll += std::log(1 / g.probs[g.label]);
    // sum p^2 - 2 p(y) + 1
    brier +=
        std::inner_product(g.probs.begin(), g.probs.end(), g.probs.begin(), 0.0) - 2 * g.probs[g.label] + 1;
  }
  double ece = 0;
  for (const auto& [bin, members] : groups) {
    double confidence = 0, hits = 0;
    for (const auto& [c, hit] : members) {
      confidence += c;
      hits += hit;
    }
    const auto n = static_cast<double>(members.size());
    ece += n / 500 * std::abs(hits / n - confidence / n);
  }
  const Metrics m = measure(all);
  EXPECT_NEAR(m.accuracy(), right / 500, 1e-12);
  EXPECT_NEAR(m.nll, nll / 500, 1e-12);
  EXPECT_NEAR(m.brier, brier / 500, 1e-12);
  EXPECT_NEAR(m.ece, ece, 1e-12);
}

// The interval's ends are the shares p at which the observed one lies z standard errors away.
TEST(Metrics, WilsonIntervalSolvesItsEquation) {
  for (const auto& [k, n] : std::vector<std::pair<std::size_t, std::size_t>>{{3, 10}, {92, 100}, {1, 2000}}) {
    const double seen = static_cast<double>(k) / static_cast<double>(n);
    const Interval i = wilson_interval(k, n);
    for (const double p : {i.low, i.high}) {
      EXPECT_NEAR(std::abs(seen - p) / std::sqrt(p * (1 - p) / static_cast<double>(n)), 1.96, 1e-3);
    }
    EXPECT_LT(i.low, seen);
    EXPECT_GT(i.high, seen);
  }
  EXPECT_EQ(wilson_interval(0, 5).low, 0);
  EXPECT_EQ(wilson_interval(5, 5).high, 1);
}

TEST(Percentile, LiesBetweenTheNearestRanks) {
  const std::vector<double> v = {1, 2, 4, 8, 16};
  EXPECT_EQ(percentile(v, 0), 1);
  EXPECT_EQ(percentile(v, 0.5), 4);
  EXPECT_EQ(percentile(v, 1), 16);
  EXPECT_NEAR(percentile(v, 0.9), 8 + 0.6 * 8, 1e-12);
  EXPECT_NEAR(percentile(std::vector<double>{1, 3}, 0.5), 2, 1e-15);
  EXPECT_EQ(percentile(std::vector<double>{7}, 0.99), 7);
  EXPECT_TRUE(std::isnan(percentile({}, 0.5)));
}

TEST(RiskCoverage, SurestFirstAndTiesTogether) {
  const std::vector<Verdict> v = {{0.5, false}, {0.9, true}, {0.7, false}, {0.7, true}};
  const auto curve = risk_coverage(v);
  ASSERT_EQ(curve.size(), 3U);
  EXPECT_EQ(curve[0].coverage, 0.25);
  EXPECT_EQ(curve[0].risk, 0);
  EXPECT_EQ(curve[1].coverage, 0.75);
  EXPECT_NEAR(curve[1].risk, 1.0 / 3, 1e-15);
  EXPECT_EQ(curve[1].confidence, 0.7);
  EXPECT_EQ(curve[2].risk, 0.5);
  // Both orders of the tie: (0 + 1/2 + 1/3 + 1/2) / 4 and (0 + 0 + 1/3 + 1/2) / 4.
  EXPECT_NEAR(area_under_risk(v), (0.25 + 1.0 / 3 + 0.5) / 4, 1e-15);
}

const std::vector<Considered> kFour = {
    {0.95, true, true, true, 10},   // sure and right
    {0.9, true, false, true, 20},   // exactly as sure as the threshold: not thought about
    {0.6, true, false, true, 30},   // thinking helps
    {0.5, false, false, false, 40}  // no label: costs tokens, counts for no accuracy
};

TEST(Selective, AThresholdTradesTokensForAccuracy) {
  const SelectivePoint p = selective_point(kFour, 0.9);
  EXPECT_NEAR(p.accuracy, 2.0 / 3, 1e-15);
  EXPECT_NEAR(p.of_thinking, 2.0 / 3, 1e-15);
  EXPECT_EQ(p.thinking, 0.5);
  EXPECT_EQ(p.token_share, 0.7);
  const SelectivePoint never = selective_point(kFour, 0.0), always = selective_point(kFour, 1.0);
  EXPECT_NEAR(never.accuracy, 1.0 / 3, 1e-15);
  EXPECT_EQ(never.token_share, 0);
  EXPECT_EQ(always.accuracy, 1);
  EXPECT_EQ(always.token_share, 1);
}

TEST(Selective, TheCurveRunsFromNeverToAlways) {
  const auto curve = selective_curve(kFour);
  ASSERT_EQ(curve.size(), 5U);
  EXPECT_EQ(curve.front().token_share, 0);
  EXPECT_EQ(curve[1].token_share, 0.4);
  EXPECT_EQ(curve.back().token_share, 1);
  const auto thin = selective_curve(kFour, 2);
  ASSERT_EQ(thin.size(), 2U);
  EXPECT_EQ(thin.front().token_share, 0);
  EXPECT_EQ(thin.back().token_share, 1);
}

}  // namespace
}  // namespace ponder::decide::test
