#include "cli/eval_report.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/error.hpp"

namespace ponder::cli {

using namespace decide;

namespace {

constexpr double kThresholds[] = {0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99};
constexpr std::size_t kNameWidth = 24;

std::string plural(std::size_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string name_cell(const std::string& name) {
  return fmt::format("{:<{}}", printable(name, kNameWidth - 3), kNameWidth);
}

std::string metrics_row(const GroupSummary& group) {
  const Metrics& m = group.metrics;
  const Interval sure = wilson_interval(m.correct, m.count);
  return fmt::format("{}{:>7}  {:>6}  {:>6} to {:<6}  {:>6}  {:>6}  {:>6}\n", name_cell(group.name), m.count,
                     fixed(m.accuracy()), fixed(sure.low), fixed(sure.high), fixed(m.nll), fixed(m.brier),
                     fixed(m.ece));
}

std::string metrics_head(const std::string& what) {
  return fmt::format("\n{:<{}}{:>7}  {:>6}  {:^16}  {:>6}  {:>6}  {:>6}\n", what, kNameWidth, "count", "acc",
                     "95 %", "nll", "brier", "ece");
}

// Groups in rows, the ways of asking side by side.
std::string group_table(const EvalReport& report, const char* what,
                        std::vector<GroupSummary> ModeSummary::*groups) {
  std::string out = fmt::format("\n{:<{}}{:>7}", what, kNameWidth, "count");
  for (const ModeSummary& mode : report.modes)
    out += fmt::format("  {:>19}", printable(mode.name(), 14) + " acc, ece");
  out += '\n';
  const std::size_t count = (report.modes.front().*groups).size();
  for (std::size_t g = 0; g < count; ++g) {
    const GroupSummary& first = (report.modes.front().*groups)[g];
    out += fmt::format("{}{:>7}", name_cell(first.name), first.metrics.count);
    for (const ModeSummary& mode : report.modes) {
      const Metrics& m = (mode.*groups)[g].metrics;
      out += fmt::format("  {:>12}, {}", fixed(m.accuracy()), fixed(m.ece));
    }
    out += '\n';
  }
  return out;
}

std::string cost_table(const EvalReport& report) {
  std::string out =
      fmt::format("\n{:<{}}{:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>8}\n", "a question", kNameWidth,
                  "input", "reasoning", "thinking", "closed", "accepted", "cycles", "a second");
  for (const ModeSummary& mode : report.modes) {
    const Tokens& t = mode.tokens;
    const auto n = static_cast<double>(t.questions);
    out += fmt::format(
        "{}{:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>9}  {:>8}\n", name_cell(mode.name()),
        fixed(static_cast<double>(t.input) / n, 1), fixed(static_cast<double>(t.reasoning) / n, 1),
        percent(static_cast<double>(t.thought) / n),
        percent(static_cast<double>(t.closed) / static_cast<double>(t.thought)), fixed(t.accepted(), 2),
        fixed(static_cast<double>(t.cycles) / n, 1), fixed(mode.per_second(), 1));
  }
  if (report.batch > 1) {
    return out + fmt::format("latency is not measured: {} requests were answered together\n", report.batch);
  }
  out += fmt::format("\n{:<{}}{:>9}  {:>9}  {:>9}  {:>9}\n", "latency of a request, ms", kNameWidth, "p50",
                     "p90", "p95", "p99");
  for (const ModeSummary& mode : report.modes) {
    const Percentiles& p = *mode.latency;
    out += fmt::format("{}{:>9}  {:>9}  {:>9}  {:>9}\n", name_cell(mode.name()), milliseconds(p.p50),
                       milliseconds(p.p90), milliseconds(p.p95), milliseconds(p.p99));
  }
  return out;
}

std::string unanswerable_table(const EvalReport& report) {
  const std::size_t count = report.modes.front().overall.unanswerable;
  if (count == 0) return "";
  std::string out = fmt::format("\n{} whose state does not say; answers at least {} sure:\n",
                                plural(count, "question"), sure_from);
  for (const ModeSummary& mode : report.modes) {
    out += fmt::format("{}{:>7}  {:>7}\n", name_cell(mode.name()), mode.overall.sure,
                       percent(static_cast<double>(mode.overall.sure) / static_cast<double>(count)));
  }
  return out;
}

std::string selective_table(const EvalReport& report) {
  if (report.selective.empty()) return "";
  std::string out =
      "\nthinking only where the direct answer is less sure than a threshold, from the answers above:\n";
  out += fmt::format("{:<12}{:>9}  {:>16}  {:>9}  {:>14}\n", "threshold", "acc", "of thinking's", "thinking",
                     "of its tokens");
  for (const SelectivePoint& p : report.selective) {
    out +=
        fmt::format("{:<12}{:>9}  {:>16}  {:>9}  {:>14}\n", fmt::format("{:.6g}", p.threshold),
                    fixed(p.accuracy), percent(p.of_thinking), percent(p.thinking), percent(p.token_share));
  }
  return out;
}

std::string difference_row(const std::string& name, const Difference& d) {
  return fmt::format("{:<40}{:>7}  {:>8}  {:>9}  {:>8}  {:>7} {:>7}\n", name, d.questions,
                     percent(d.flip_rate()), fixed(d.mean_change(), 4), fixed(d.largest, 4),
                     fixed(static_cast<double>(d.right_before) / static_cast<double>(d.labelled)),
                     fixed(static_cast<double>(d.right_after) / static_cast<double>(d.labelled)));
}

std::string checks_table(const CheckResults& checks) {
  std::string out =
      fmt::format("\n{:<40}{:>7}  {:>8}  {:>9}  {:>8}  {:>15}\n", "the same put another way, no-think",
                  "count", "flips", "mean |dp|", "largest", "acc, before and");
  for (std::size_t v = 0; v < kVariants.size(); ++v) {
    if (checks.variants[v].questions > 0)
      out += difference_row(variant_text(kVariants[v]), checks.variants[v]);
  }
  if (checks.question_order.questions > 0)
    out += difference_row("questions in reverse", checks.question_order);
  return out;
}

std::string against_table(const EvalReport& report) {
  const Against& against = *report.against;
  std::string out = fmt::format("\n{:<{}}{:>7}  {:>8}  {:>9}  {:>16}  {:>16}\n",
                                fmt::format("{} to {}", report.type, against.type), kNameWidth, "count",
                                "flips", "mean |dp|", "acc, change", "ece, change");
  for (const AgainstMode& m : against.modes) {
    out +=
        fmt::format("{}{:>7}  {:>8}  {:>9}  {:>7}, {:>+7.3f}  {:>7}, {:>+7.3f}\n", name_cell(m.mode),
                    m.difference.questions, percent(m.difference.flip_rate(), 2),
                    fixed(m.difference.mean_change(), 4), fixed(m.after.accuracy()),
                    m.after.accuracy() - m.before.accuracy(), fixed(m.after.ece), m.after.ece - m.before.ece);
  }
  return out;
}

std::string benchmark_table(const EvalReport& report) {
  std::string out;
  for (const ModeSummary& mode : report.modes) {
    if (!mode.benchmark) continue;
    const BenchmarkScore& s = *mode.benchmark;
    out += fmt::format("\nJevBench, {:<14}{:>7}  {:>6}  {:>6}  {:>9}  {:>6}  {:>7}\n", mode.name(), "count",
                       "acc", "chance", "corrected", "ece", "invalid");
    for (const TierScore& t : s.tiers) {
      out += fmt::format("{}{:>7}  {:>6}  {:>6}  {:>9}  {:>6}  {:>7}\n", name_cell(tier_name(t.tier)),
                         t.metrics.count, fixed(t.metrics.accuracy()), fixed(t.chance), fixed(t.corrected),
                         fixed(t.metrics.ece), t.invalid);
    }
    const auto points = [](const std::optional<double>& axis) { return axis ? fixed(*axis, 1) : "-"; };
    out += fmt::format(
        "intelligence {} (tiers of {} of the weight), calibration {}, speed {}, cost {}, together {}\n",
        fixed(s.intelligence, 1), percent(s.weight, 0), points(s.calibration), points(s.speed),
        points(s.cost), points(s.composite));
  }
  if (!out.empty()) out += "public items only: no score of the board, which takes sealed ones in\n";
  return out;
}

}  // namespace

const char* variant_text(Variant variant) {
  switch (variant) {
    case Variant::options_reversed:
      return "options in reverse";
    case Variant::labels_replaced:
      return "described labels become A, B, C";
    case Variant::label_case_changed:
      break;
  }
  return "first letters of labels in other case";
}

std::string fixed(double number, int decimals) {
  return std::isfinite(number) ? fmt::format("{:.{}f}", number, decimals) : "-";
}

std::string percent(double share, int decimals) {
  return std::isfinite(share) ? fmt::format("{:.{}f} %", 100 * share, decimals) : "-";
}

std::string milliseconds(double ms) {
  return fixed(ms, ms < 10 ? 2 : ms < 100 ? 1 : 0);
}

double ModeSummary::per_second() const {
  return static_cast<double>(tokens.questions) / answers->seconds;
}

void EvalReport::summarize() {
  std::vector<Tier> tiers;
  if (evaluation.form == RecordForm::jevbench) {
    for (const EvaluatedQuestion& q : evaluation.questions)
      tiers.push_back(tier_of(evaluation.sources[q.source], files[q.file]));
  }
  modes.clear();
  for (const ModeAnswers& answers : evaluation.modes) {
    ModeSummary mode;
    mode.answers = &answers;
    mode.overall = decide::summarize(evaluation, answers, answers.mode.name);
    mode.sources = by_source(evaluation, answers);
    mode.types = by_type(evaluation, answers);
    mode.tokens = count_tokens(answers.sheet);
    mode.aurc = area_under_risk(verdicts(evaluation, answers));
    mode.latencies_ms = answers.latencies_ms;
    std::sort(mode.latencies_ms.begin(), mode.latencies_ms.end());
    const auto at = [&](double q) { return percentile(mode.latencies_ms, q); };
    if (!mode.latencies_ms.empty()) mode.latency = {at(0.5), at(0.9), at(0.95), at(0.99)};
    if (!tiers.empty()) mode.benchmark = score_benchmark(evaluation, answers, tiers, dollars_per_hour);
    modes.push_back(std::move(mode));
  }
  const ModeAnswers *direct = evaluation.find("no-think"), *thought = evaluation.find("think");
  if (direct == nullptr || thought == nullptr) return;
  const std::vector<Considered> both = considered(evaluation, *direct, *thought);
  std::set<double> thresholds(std::begin(kThresholds), std::end(kThresholds));
  for (const ModeAnswers& m : evaluation.modes) {
    if (m.mode.threshold) thresholds.insert(*m.mode.threshold);
  }
  selective.clear();
  for (const double t : thresholds) selective.push_back(selective_point(both, t));
  selective_curve = decide::selective_curve(both);
}

const ModeSummary* EvalReport::find(const std::string& mode) const {
  for (const ModeSummary& m : modes) {
    if (m.name() == mode) return &m;
  }
  return nullptr;
}

std::string EvalReport::text() const {
  const Metrics& first = modes.front().overall.metrics;
  std::string out = fmt::format("{}, weights {}: {}\n{}: {}, {}, {} with an answer\n", model, type, backend,
                                printable(fmt::format("{}", fmt::join(files, ", ")), 4000),
                                plural(evaluation.records, "record"),
                                plural(evaluation.questions.size(), "question"), first.count);
  out += metrics_head("");
  for (const ModeSummary& mode : modes) out += metrics_row(mode.overall);
  out += group_table(*this, "by source", &ModeSummary::sources);
  out += group_table(*this, "by type", &ModeSummary::types);
  out += unanswerable_table(*this);
  out += cost_table(*this);
  out += selective_table(*this);
  if (checks) out += checks_table(*checks);
  if (against) out += against_table(*this);
  out += benchmark_table(*this);
  if (failures > 0) {
    out += fmt::format("\n{} without an answer, counted as wrong; the first: {}\n",
                       plural(failures, "request"), printable(first_failure, 1000));
  }
  return out;
}

}  // namespace ponder::cli
