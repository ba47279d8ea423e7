#include "decide/jevbench.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "decide/answer.hpp"

namespace ponder::decide {
namespace {

constexpr std::array kHardFamilies = {std::string_view("adversarial"), std::string_view("routing_hard"),
                                      std::string_view("trap"),        std::string_view("multi_hop"),
                                      std::string_view("ambiguous"),   std::string_view("judge_hard"),
                                      std::string_view("tradeoff"),    std::string_view("probability"),
                                      std::string_view("long_policy"), std::string_view("temporal_numeric")};

constexpr int kSentDecimals = 6;

double points(double value) {
  return std::clamp(value, 0.0, 100.0);
}

TierScore score_tier(const Evaluation& evaluation, const ModeAnswers& answers, std::span<const Tier> tiers,
                     Tier tier) {
  TierScore out;
  out.tier = tier;
  MetricSums sums;
  double chances = 0;
  for (std::size_t i = 0; i < evaluation.questions.size(); ++i) {
    const EvaluatedQuestion& q = evaluation.questions[i];
    if (tiers[i] != tier || !q.label) continue;
    const AnsweredQuestion& a = answers.sheet[i];
    chances += 1.0 / q.options;
    out.invalid += a.answered && a.valid ? 0 : 1;
    out.not_strict += a.answered && a.strict ? 0 : 1;
    answers.sheet.score(i, *q.label, sums);
  }
  out.metrics = sums.total();
  out.chance = chances / static_cast<double>(out.metrics.count);
  // Questions with one option have no chance to be better than.
  out.corrected =
      out.chance < 1 ? std::max(0.0, (out.metrics.accuracy() - out.chance) / (1 - out.chance)) : 0;
  return out;
}

}  // namespace

const char* tier_name(Tier tier) {
  switch (tier) {
    case Tier::easy:
      return "easy";
    case Tier::standard:
      return "standard";
    case Tier::judge:
      return "judge";
    case Tier::hard:
      return "hard";
    case Tier::other:
      break;
  }
  return "other";
}

double tier_weight(Tier tier) {
  switch (tier) {
    case Tier::easy:
      return 0.14;
    case Tier::standard:
      return 0.28;
    case Tier::judge:
      return 0.28;
    case Tier::hard:
      return 0.30;
    case Tier::other:
      break;
  }
  return 0;
}

Tier tier_of(std::string_view family, std::string_view file) {
  if (std::find(kHardFamilies.begin(), kHardFamilies.end(), family) != kHardFamilies.end()) return Tier::hard;
  std::string_view name = file.substr(file.rfind('/') + 1);  // npos + 1 is 0
  name = name.substr(0, name.rfind('.'));
  if (name == "easy") return Tier::easy;
  if (name == "original" || name == "standard") return Tier::standard;
  if (name == "judge") return Tier::judge;
  if (name == "hard") return Tier::hard;
  return Tier::other;
}

BenchmarkAnswer judge_answer(const Question& question, std::span<const double> probs) {
  const std::vector<double> sent = rounded_probabilities(probs, kSentDecimals);
  // false and true are called no and yes there: the same order.
  const std::vector<std::string> labels = option_keys(question);
  BenchmarkAnswer out;
  const double off = std::abs(std::accumulate(sent.begin(), sent.end(), 0.0) - 1);
  out.strict = off <= 1e-3;
  out.valid = off <= 0.02;
  for (std::size_t i = 1; i < sent.size(); ++i) {
    const bool tie = sent[i] == sent[out.predicted];
    if (sent[i] > sent[out.predicted] || (tie && labels[i] < labels[out.predicted])) out.predicted = i;
  }
  return out;
}

double speed_points(double seconds) {
  return points(100 - 20 * std::log10(seconds / 0.1));
}

double cost_points(double dollars_per_1000) {
  return points(100 - 30 * std::log10(dollars_per_1000 / 0.001));
}

double calibration_points(double ece) {
  return points(100 * (1 - ece / 0.5));
}

double adjusted_latency(double seconds) {
  return 2 * seconds + 0.15;
}

double composite_score(double intelligence, double calibration, double speed, double cost) {
  double inverse = 0;
  for (const double axis : {intelligence, calibration, speed, cost}) {
    if (axis <= 0) return 0;
    inverse += 1 / axis;
  }
  double score = 4 / inverse;
  for (const double axis : {intelligence, speed, cost}) {
    if (axis < 50) score *= axis / 50 * (axis / 50);
  }
  return score;
}

BenchmarkScore score_benchmark(const Evaluation& evaluation, const ModeAnswers& answers,
                               std::span<const Tier> tiers, std::optional<double> dollars_per_hour) {
  BenchmarkScore out;
  for (const Tier tier : {Tier::easy, Tier::standard, Tier::judge, Tier::hard, Tier::other}) {
    TierScore score = score_tier(evaluation, answers, tiers, tier);
    if (score.metrics.count == 0) continue;
    if (tier == Tier::hard && score.metrics.failed < score.metrics.count) {
      out.calibration = calibration_points(score.metrics.ece);
    }
    out.weight += tier_weight(tier);
    out.intelligence += 100 * tier_weight(tier) * score.corrected;
    out.tiers.push_back(score);
  }
  out.intelligence =
      out.weight > 0 ? out.intelligence / out.weight : std::numeric_limits<double>::quiet_NaN();
  if (!answers.latencies_ms.empty()) {
    std::vector<double> sorted = answers.latencies_ms;
    std::sort(sorted.begin(), sorted.end());
    out.speed = (speed_points(adjusted_latency(percentile(sorted, 0.5) / 1000)) +
                 speed_points(adjusted_latency(percentile(sorted, 0.95) / 1000))) /
                2;
    if (dollars_per_hour) {
      const double mean_s =
          std::accumulate(sorted.begin(), sorted.end(), 0.0) / static_cast<double>(sorted.size()) / 1000;
      out.cost = cost_points(*dollars_per_hour * mean_s * 1000 / 3600);
    }
  }
  if (out.weight > 0 && out.calibration && out.speed && out.cost) {
    out.composite = composite_score(out.intelligence, *out.calibration, *out.speed, *out.cost);
  }
  return out;
}

}  // namespace ponder::decide
