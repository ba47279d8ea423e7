// JevBench's public scoring rules (version 1.3, which 1.4 keeps for the public items).
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "decide/evaluation.hpp"

namespace ponder::decide {

enum class Tier { easy, standard, judge, hard, other };
inline constexpr std::size_t tier_count = 5;

const char* tier_name(Tier tier);
double tier_weight(Tier tier);  // 0 for `other`

// A record does not say its tier: families of the hard tier are its own, the rest is told by the file, named
// as the benchmark names it (easy, original or standard, judge, hard).
Tier tier_of(std::string_view family, std::string_view file);

struct BenchmarkAnswer {
  bool strict = false;  // probabilities sum to 1 within 0.001
  bool valid = false;   // within 0.02; otherwise the answer is wrong
  std::size_t predicted = 0;
};

// Of probabilities as a client gets them, with six decimals. Of equal ones the label that sorts first wins.
BenchmarkAnswer judge_answer(const Question& question, std::span<const double> probs);

// Points of an axis, 0 to 100.
double speed_points(double seconds);          // 100 - 20 log10(s / 0.1)
double cost_points(double dollars_per_1000);  // 100 - 30 log10(d / 0.001)
double calibration_points(double ece);        // 100 at 0, 0 from 0.5 on
// What a self-hosted latency counts as.
double adjusted_latency(double seconds);  // 2 s + 0.15

struct TierScore {
  Tier tier = Tier::other;
  Metrics metrics;
  std::size_t invalid = 0, not_strict = 0;
  double chance = 0;     // mean of 1 / options
  double corrected = 0;  // max(0, (accuracy - chance) / (1 - chance))
};

struct BenchmarkScore {
  std::vector<TierScore> tiers;       // those that occur
  double weight = 0;                  // of them, of 1
  double intelligence = 0;            // 0 to 100, weights scaled to those present; NaN when none has one
  std::optional<double> calibration;  // from the ECE of the hard tier
  std::optional<double> speed;        // of p50 and p95, adjusted
  std::optional<double> cost;
  std::optional<double> composite;  // harmonic mean of the four with its gates
};

// `tiers`: one a question. `dollars_per_hour`: what the machine costs.
BenchmarkScore score_benchmark(const Evaluation& evaluation, const ModeAnswers& answers,
                               std::span<const Tier> tiers, std::optional<double> dollars_per_hour);

// Harmonic mean, times (axis / 50)^2 for each of intelligence, speed and cost below 50.
double composite_score(double intelligence, double calibration, double speed, double cost);

}  // namespace ponder::decide
