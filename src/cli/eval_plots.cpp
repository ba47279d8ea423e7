#include "cli/eval_plots.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "cli/svg_plot.hpp"
#include "text/utf8.hpp"

namespace ponder::cli {

using namespace decide;

namespace {

using Points = std::vector<std::pair<double, double>>;

// So many points draw a curve as well as all of them.
constexpr std::size_t kCurvePoints = 400;

// At most 26 characters, whole ones.
std::string shortened(std::string_view name) {
  constexpr int most = 26, kept = 23;
  std::size_t end = 0, cut = 0;
  for (int n = 0; end < name.size(); ++n) {
    if (n == kept) cut = end;
    if (n == most) return std::string(name.substr(0, cut)) + "...";
    end += text::scan_utf8(name.substr(end)).length;
  }
  return std::string(name);
}

std::string reliability(const EvalReport& report) {
  Plot plot({"Reliability", "largest probability", "share that is right"}, {0, 1}, {0, 1});
  plot.line({{0, 0}, {1, 1}}, "#888", true);
  for (std::size_t m = 0; m < report.modes.size(); ++m) {
    const Metrics& metrics = report.modes[m].overall.metrics;
    const auto answered = static_cast<double>(metrics.count - metrics.failed);
    Points line;
    for (const ReliabilityBin& bin : metrics.bins) {
      if (bin.count == 0) continue;
      const double share = static_cast<double>(bin.count) / answered;
      line.emplace_back(bin.confidence(), bin.accuracy());
      plot.point(bin.confidence(), bin.accuracy(), series_color(m), 2.5 + 14 * std::sqrt(share));
    }
    plot.line(line, series_color(m));
    plot.legend(fmt::format("{}: ECE {}", report.modes[m].name(), fixed(metrics.ece)), series_color(m));
  }
  return plot.svg();
}

std::string risk_and_coverage(const EvalReport& report) {
  std::vector<Points> lines;
  double most = 0.05;
  for (const ModeSummary& mode : report.modes) {
    const auto curve = risk_coverage(verdicts(report.evaluation, *mode.answers));
    Points line;
    const std::size_t step = curve.size() / kCurvePoints + 1;
    for (std::size_t i = 0; i < curve.size(); i += step) line.emplace_back(curve[i].coverage, curve[i].risk);
    if (!curve.empty()) line.emplace_back(curve.back().coverage, curve.back().risk);
    for (const auto& [x, y] : line) most = std::max(most, y);
    lines.push_back(std::move(line));
  }
  Plot plot(
      {"Risk and coverage", "share of questions answered, surest first", "share of these that is wrong"},
      {0, 1}, {0, std::min(1.0, most * 1.25)});
  for (std::size_t m = 0; m < lines.size(); ++m) {
    plot.line(lines[m], series_color(m));
    plot.legend(fmt::format("{}: area {}", report.modes[m].name(), fixed(report.modes[m].aurc)),
                series_color(m));
  }
  return plot.svg();
}

std::string accuracy_by_source(const EvalReport& report) {
  std::vector<std::string> series;
  for (const ModeSummary& mode : report.modes) series.push_back(mode.name());
  std::vector<BarRow> rows;
  for (std::size_t s = 0; s < report.evaluation.sources.size(); ++s) {
    BarRow row;
    const std::string name = shortened(report.evaluation.sources[s]);
    const std::size_t count = report.modes.front().sources[s].metrics.count;
    row.name = fmt::format("{} ({})", name, count);
    for (const ModeSummary& mode : report.modes) row.values.push_back(mode.sources[s].metrics.accuracy());
    if (count > 0) rows.push_back(std::move(row));
  }
  return bar_chart("Accuracy by source", series, rows);
}

std::string thinking_when_unsure(const EvalReport& report) {
  double least = 1, most = 0;
  Points line;
  for (const SelectivePoint& p : report.selective_curve) {
    if (!std::isfinite(p.accuracy) || !std::isfinite(p.token_share)) continue;
    line.emplace_back(p.token_share, p.accuracy);
    least = std::min(least, p.accuracy);
    most = std::max(most, p.accuracy);
  }
  if (line.empty()) return "";
  const double room = std::max(0.02, (most - least) / 8);
  Plot plot({"Thinking only when unsure", "share of the tokens of always thinking", "accuracy"}, {0, 1},
            {std::max(0.0, least - room), std::min(1.0, most + room)});
  plot.line(line, series_color(0));
  for (const SelectivePoint& p : report.selective) {
    if (std::isfinite(p.accuracy) && std::isfinite(p.token_share)) {
      plot.point(p.token_share, p.accuracy, series_color(1), 4, fmt::format("{:.4g}", p.threshold));
    }
  }
  plot.legend("threshold for the direct answer's probability", series_color(1));
  return plot.svg();
}

std::string latency(const EvalReport& report) {
  double least = 1e300, most = 0;
  for (const ModeSummary& mode : report.modes) {
    if (mode.latencies_ms.empty()) return "";
    least = std::min(least, std::max(1e-3, mode.latencies_ms.front()));
    most = std::max(most, mode.latencies_ms.back());
  }
  most = std::max(most, least);
  Plot plot({"Latency", "share of requests", "answered within, ms"}, {0, 1}, {least * 0.8, most * 1.25},
            true);
  for (std::size_t m = 0; m < report.modes.size(); ++m) {
    const std::vector<double>& sorted = report.modes[m].latencies_ms;
    Points line;
    for (int i = 0; i <= 100; ++i) line.emplace_back(i / 100.0, percentile(sorted, i / 100.0));
    plot.line(line, series_color(m));
    plot.legend(
        fmt::format("{}: median {} ms", report.modes[m].name(), milliseconds(report.modes[m].latency->p50)),
        series_color(m));
  }
  return plot.svg();
}

// How long chains of thought are.
std::string tokens(const EvalReport& report) {
  constexpr int bins = 25;
  std::uint32_t longest = 0;
  for (const ModeSummary& mode : report.modes) {
    const AnswerSheet& sheet = mode.answers->sheet;
    for (std::size_t i = 0; i < sheet.size(); ++i) longest = std::max(longest, sheet[i].chain_tokens);
  }
  if (longest == 0) return "";
  const double width = std::max(1.0, std::ceil(static_cast<double>(longest + 1) / bins));
  std::vector<std::vector<double>> shares;
  double most = 0;
  for (const ModeSummary& mode : report.modes) {
    const AnswerSheet& sheet = mode.answers->sheet;
    std::vector<double> share(bins, 0.0);
    for (std::size_t i = 0; i < sheet.size(); ++i) {
      if (!sheet[i].thought) continue;
      share[static_cast<std::size_t>(sheet[i].chain_tokens / width)] += 1 / static_cast<double>(sheet.size());
    }
    most = std::max(most, *std::max_element(share.begin(), share.end()));
    shares.push_back(std::move(share));
  }
  Plot plot({"Tokens of thought", "tokens of a chain", "share of all questions"}, {0, bins * width},
            {0, most * 1.2});
  for (std::size_t m = 0; m < report.modes.size(); ++m) {
    if (!report.modes[m].answers->mode.think) continue;
    for (int b = 0; b < bins; ++b) {
      const double share = shares[m][static_cast<std::size_t>(b)];
      if (share > 0) plot.bar(b * width, (b + 1) * width, 0, share, series_color(m));
    }
    const Tokens& t = report.modes[m].tokens;
    plot.legend(fmt::format("{}: {} a question", report.modes[m].name(),
                            fixed(static_cast<double>(t.reasoning) / static_cast<double>(t.questions), 1)),
                series_color(m));
  }
  return plot.svg();
}

}  // namespace

std::vector<NamedPlot> eval_plots(const EvalReport& report) {
  std::vector<NamedPlot> all = {
      {"reliability.svg",
       "Answers in ten groups by their largest probability: how sure they are and how often they are right. "
       "On the "
       "dashed line both are the same. The area of a point is the share of answers.",
       reliability(report)},
      {"risk-coverage.svg", "What share of the answers is wrong when only the surest ones are given.",
       risk_and_coverage(report)},
      {"sources.svg", "Accuracy of each source of questions, with the number of labelled ones.",
       accuracy_by_source(report)},
      {"selective.svg",
       "The direct answer stands where it is at least as sure as a threshold, else the model thinks: "
       "accuracy and "
       "share of thinking's tokens.",
       thinking_when_unsure(report)},
      {"latency.svg", "Requests asked one at a time, from the fastest to the slowest.", latency(report)},
      {"tokens.svg", "Lengths of chains of thought.", tokens(report)}};
  std::erase_if(all, [](const NamedPlot& p) { return p.svg.empty(); });
  return all;
}

}  // namespace ponder::cli
