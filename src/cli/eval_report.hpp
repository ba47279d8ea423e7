// What `ponder eval` found, for people and for programs.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "decide/evaluation.hpp"
#include "decide/evaluator.hpp"
#include "decide/jevbench.hpp"
#include "decide/json_value.hpp"

namespace ponder::cli {

struct Percentiles {
  double p50 = 0, p90 = 0, p95 = 0, p99 = 0;  // ms
};

// Everything said about one way of asking.
struct ModeSummary {
  const decide::ModeAnswers* answers = nullptr;
  decide::GroupSummary overall;
  std::vector<decide::GroupSummary> sources, types;
  decide::Tokens tokens;
  std::optional<Percentiles> latency;  // none where requests were answered together
  std::vector<double> latencies_ms;    // ascending
  double aurc = 0;                     // area under risk and coverage
  std::optional<decide::BenchmarkScore> benchmark;

  const std::string& name() const { return answers->mode.name; }
  double per_second() const;  // questions
};

// What holding weights in another type changes.
struct AgainstMode {
  std::string mode;
  decide::Difference difference;
  decide::Metrics before, after;
};
struct Against {
  std::string type;
  std::vector<AgainstMode> modes;
};

struct EvalReport {
  std::string model, type, backend;  // one line each
  std::vector<std::string> files;
  std::string date;  // of the run, UTC
  std::int64_t max_think = 0;
  std::optional<std::size_t> limit, sample;
  std::int64_t seed = 1;
  int batch = 1, max_rows = 0;
  bool drafting = false;
  std::optional<double> dollars_per_hour;

  decide::Evaluation evaluation;
  std::optional<decide::CheckResults> checks;
  std::optional<Against> against;
  std::size_t failures = 0;
  std::string first_failure;

  // Filled by summarize() from what is above.
  std::vector<ModeSummary> modes;
  std::vector<decide::SelectivePoint> selective;        // at fixed thresholds, and at one that was asked for
  std::vector<decide::SelectivePoint> selective_curve;  // over all of them

  void summarize();
  const ModeSummary* find(const std::string& mode) const;
  std::string text() const;
  decide::Value json() const;
};

// Words that several reports use.
const char* variant_text(decide::Variant variant);
std::string percent(double share, int decimals = 1);  // "12.3 %", "-" for none
std::string fixed(double number, int decimals = 3);   // "-" for none
std::string milliseconds(double ms);

}  // namespace ponder::cli
