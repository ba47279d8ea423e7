// The report of `ponder eval` as JSON.
#include <cmath>

#include <fmt/format.h>

#include "cli/eval_report.hpp"

namespace ponder::cli {

using namespace decide;

namespace {

Value number(double x) {
  return std::isfinite(x) ? Value(x) : Value();
}

template <class T>
Value optional_number(const std::optional<T>& x) {
  if (!x) return nullptr;
  if constexpr (std::is_floating_point_v<T>) return number(*x);
  return whole(*x);
}

Object metrics_json(const Metrics& m) {
  Object out;
  out.append("count", whole(m.count));
  out.append("failed", whole(m.failed));
  out.append("correct", whole(m.correct));
  out.append("accuracy", number(m.accuracy()));
  const Interval interval = wilson_interval(m.correct, m.count);
  out.append("accuracy_95", Array{number(interval.low), number(interval.high)});
  out.append("nll", number(m.nll));
  out.append("brier", number(m.brier));
  out.append("ece", number(m.ece));
  return out;
}

Value group_json(const GroupSummary& group) {
  Object out = metrics_json(group.metrics);
  Object open;
  const auto n = static_cast<double>(group.unanswerable);
  open.append("count", whole(group.unanswerable));
  open.append("sure", whole(group.sure));
  open.append("sure_share", number(static_cast<double>(group.sure) / n));
  open.append("distance_from_even", number(group.unanswerable_change / n));
  out.append("unanswerable", std::move(open));
  return out;
}

Value groups_json(const std::vector<GroupSummary>& groups) {
  Object out;
  for (const GroupSummary& g : groups) out.append(g.name, group_json(g));
  return out;
}

Value bins_json(const Metrics& m) {
  Array out;
  for (std::size_t b = 0; b < m.bins.size(); ++b) {
    const ReliabilityBin& bin = m.bins[b];
    Object o;
    o.append("above", static_cast<double>(b) / reliability_bins);
    o.append("up_to", static_cast<double>(b + 1) / reliability_bins);
    o.append("count", whole(bin.count));
    o.append("confidence", number(bin.confidence()));
    o.append("accuracy", number(bin.accuracy()));
    out.emplace_back(std::move(o));
  }
  return out;
}

Value tokens_json(const Tokens& t) {
  Object out;
  out.append("questions", whole(t.questions));
  out.append("input", whole(t.input));
  out.append("reasoning", whole(t.reasoning));
  out.append("thought", whole(t.thought));
  out.append("closed", whole(t.closed));
  out.append("cycles", whole(t.cycles));
  out.append("accepted_length", number(t.accepted()));
  return out;
}

Value latency_json(const std::optional<Percentiles>& p) {
  if (!p) return nullptr;
  Object out;
  out.append("p50", number(p->p50));
  out.append("p90", number(p->p90));
  out.append("p95", number(p->p95));
  out.append("p99", number(p->p99));
  return out;
}

Value benchmark_json(const BenchmarkScore& s) {
  Object tiers;
  for (const TierScore& t : s.tiers) {
    Object o = metrics_json(t.metrics);
    o.append("invalid", whole(t.invalid));
    o.append("not_strict", whole(t.not_strict));
    o.append("chance", number(t.chance));
    o.append("corrected", number(t.corrected));
    tiers.append(tier_name(t.tier), std::move(o));
  }
  Object out;
  out.append("tiers", std::move(tiers));
  out.append("weight", number(s.weight));
  out.append("intelligence", number(s.intelligence));
  out.append("calibration", optional_number(s.calibration));
  out.append("speed", optional_number(s.speed));
  out.append("cost", optional_number(s.cost));
  out.append("public_composite", optional_number(s.composite));
  return out;
}

Value mode_json(const ModeSummary& mode) {
  Object out;
  out.append("think", mode.answers->mode.think);
  out.append("nothink_threshold", optional_number(mode.answers->mode.threshold));
  out.append("overall", group_json(mode.overall));
  out.append("by_source", groups_json(mode.sources));
  out.append("by_type", groups_json(mode.types));
  out.append("reliability", bins_json(mode.overall.metrics));
  out.append("area_under_risk_coverage", number(mode.aurc));
  out.append("tokens", tokens_json(mode.tokens));
  out.append("seconds", number(mode.answers->seconds));
  out.append("latency_ms", latency_json(mode.latency));
  if (mode.benchmark) out.append("jevbench", benchmark_json(*mode.benchmark));
  return out;
}

Value selective_json(const std::vector<SelectivePoint>& points) {
  Array out;
  for (const SelectivePoint& p : points) {
    Object o;
    o.append("threshold", number(p.threshold));
    o.append("accuracy", number(p.accuracy));
    o.append("accuracy_of_thinking", number(p.of_thinking));
    o.append("thinking", number(p.thinking));
    o.append("tokens_of_thinking", number(p.token_share));
    out.emplace_back(std::move(o));
  }
  return out;
}

Object difference_json(const Difference& d) {
  Object out;
  const auto labelled = static_cast<double>(d.labelled);
  out.append("questions", whole(d.questions));
  out.append("flips", whole(d.flips));
  out.append("flip_rate", number(d.flip_rate()));
  out.append("mean_change", number(d.mean_change()));
  out.append("largest_change", number(d.largest));
  out.append("accuracy_before", number(static_cast<double>(d.right_before) / labelled));
  out.append("accuracy_after", number(static_cast<double>(d.right_after) / labelled));
  return out;
}

Value checks_json(const CheckResults& checks) {
  Object out;
  out.append("options_reversed", difference_json(checks.variants[0]));
  out.append("labels_replaced", difference_json(checks.variants[1]));
  out.append("label_case_changed", difference_json(checks.variants[2]));
  out.append("questions_reversed", difference_json(checks.question_order));
  return out;
}

Value against_json(const Against& against) {
  Object out, modes;
  for (const AgainstMode& m : against.modes) {
    Object o = difference_json(m.difference);
    o.append("accuracy_change", number(m.after.accuracy() - m.before.accuracy()));
    o.append("ece_change", number(m.after.ece - m.before.ece));
    o.append("nll_change", number(m.after.nll - m.before.nll));
    o.append("after", metrics_json(m.after));
    modes.append(m.mode, std::move(o));
  }
  out.append("type", against.type);
  out.append("modes", std::move(modes));
  return out;
}

Value settings_json(const EvalReport& r) {
  Object out;
  out.append("max_think", r.max_think);
  out.append("max_rows", r.max_rows);
  out.append("batch", r.batch);
  out.append("limit", optional_number(r.limit));
  out.append("sample", optional_number(r.sample));
  out.append("seed", r.seed);
  out.append("drafting", r.drafting);
  out.append("dollars_per_hour", optional_number(r.dollars_per_hour));
  return out;
}

}  // namespace

Value EvalReport::json() const {
  Object out;
  out.append("model", model);
  out.append("type", type);
  out.append("backend", backend);
  out.append("date", date);
  out.append("files", Array(files.begin(), files.end()));
  out.append("form", evaluation.form == RecordForm::requests ? "requests" : "jevbench");
  out.append("records", whole(evaluation.records));
  out.append("questions", whole(evaluation.questions.size()));
  out.append("settings", settings_json(*this));
  Object by_mode;
  for (const ModeSummary& mode : modes) by_mode.append(mode.name(), mode_json(mode));
  out.append("modes", std::move(by_mode));
  out.append("selective", selective_json(selective));
  out.append("checks", checks ? checks_json(*checks) : Value());
  out.append("against", against ? against_json(*against) : Value());
  out.append("failures", whole(failures));
  out.append("first_failure", failures > 0 ? Value(first_failure) : Value());
  return out;
}

}  // namespace ponder::cli
