// The HTML report of `ponder eval`.
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/eval_plots.hpp"
#include "cli/svg_plot.hpp"

namespace ponder::cli {

using namespace decide;

namespace {

using Cells = std::vector<std::string>;

constexpr const char* kStyle =
    "body{font:15px/1.45 sans-serif;color:#222;background:#fff;max-width:1120px;margin:2em auto;padding:0 "
    "1em}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em}"
    "table{border-collapse:collapse;margin:.6em 0}td,th{padding:.22em "
    ".8em;text-align:right;border-bottom:1px solid "
    "#ddd}td:first-child,th:first-child{text-align:left}"
    ".plots{display:flex;flex-wrap:wrap;gap:1em}figure{margin:0;max-width:520px}figcaption{font-size:.85em;"
    "color:#555}"
    "svg{max-width:100%;height:auto}.note{color:#555}.scroll{overflow-x:auto}";

// Cells are plain text; everything is escaped here.
class Table {
 public:
  explicit Table(const Cells& head) { row(head, "th"); }
  void row(const Cells& cells) { row(cells, "td"); }
  std::string html() const { return "<div class=\"scroll\"><table>" + rows_ + "</table></div>\n"; }

 private:
  void row(const Cells& cells, const char* tag) {
    rows_ += "<tr>";
    for (const std::string& cell : cells) rows_ += fmt::format("<{0}>{1}</{0}>", tag, escape_markup(cell));
    rows_ += "</tr>\n";
  }
  std::string rows_;
};

std::string heading(std::string_view text) {
  return fmt::format("<h2>{}</h2>\n", escape_markup(text));
}

std::string note(std::string_view text) {
  return fmt::format("<p class=\"note\">{}</p>\n", escape_markup(text));
}

double over(std::uint64_t part, std::uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

std::string overview(const EvalReport& report) {
  Table table({"way", "questions", "accuracy", "95 %", "NLL", "Brier", "ECE", "area under risk",
               "sure where the state does not say"});
  for (const ModeSummary& mode : report.modes) {
    const Metrics& m = mode.overall.metrics;
    const Interval i = wilson_interval(m.correct, m.count);
    table.row({mode.name(), std::to_string(m.count), fixed(m.accuracy()),
               fixed(i.low) + " to " + fixed(i.high), fixed(m.nll), fixed(m.brier), fixed(m.ece),
               fixed(mode.aurc),
               mode.overall.unanswerable == 0
                   ? "-"
                   : fmt::format("{} of {}, {}", mode.overall.sure, mode.overall.unanswerable,
                                 percent(over(mode.overall.sure, mode.overall.unanswerable)))});
  }
  return heading("Answers") + table.html() +
         note(
             "NLL is the mean of -log p of the right option, Brier the mean squared distance to it over all "
             "options "
             "(0 to 2), ECE the mean gap between confidence and accuracy in ten groups. Questions whose "
             "state does "
             "not say are in none of these.");
}

std::string groups(const EvalReport& report, const char* what,
                   std::vector<GroupSummary> ModeSummary::*member) {
  Cells head = {what, "labelled"};
  for (const ModeSummary& mode : report.modes) {
    head.push_back(mode.name() + ": accuracy");
    head.push_back("ECE");
    head.push_back("NLL");
  }
  Table table(head);
  for (std::size_t g = 0; g < (report.modes.front().*member).size(); ++g) {
    const GroupSummary& first = (report.modes.front().*member)[g];
    Cells cells = {first.name, std::to_string(first.metrics.count)};
    for (const ModeSummary& mode : report.modes) {
      const Metrics& m = (mode.*member)[g].metrics;
      cells.insert(cells.end(), {fixed(m.accuracy()), fixed(m.ece), fixed(m.nll)});
    }
    table.row(cells);
  }
  return table.html();
}

std::string cost(const EvalReport& report) {
  Table table({"way", "input tokens a question", "reasoning tokens a question", "thought about",
               "chains closed", "tokens a cycle", "questions a second", "p50 ms", "p90", "p95", "p99"});
  for (const ModeSummary& mode : report.modes) {
    const Tokens& t = mode.tokens;
    Cells cells = {mode.name(),
                   fixed(over(t.input, t.questions), 1),
                   fixed(over(t.reasoning, t.questions), 1),
                   percent(over(t.thought, t.questions)),
                   percent(over(t.closed, t.thought)),
                   fixed(t.accepted(), 2),
                   fixed(mode.per_second(), 1)};
    if (mode.latency) {
      const Percentiles& p = *mode.latency;
      cells.insert(cells.end(),
                   {milliseconds(p.p50), milliseconds(p.p90), milliseconds(p.p95), milliseconds(p.p99)});
    } else {
      cells.insert(cells.end(), {"-", "-", "-", "-"});
    }
    table.row(cells);
  }
  return heading("Latency and tokens") + table.html() +
         note(report.batch > 1
                  ? fmt::format("{} requests were answered together, so latency was not measured.",
                                report.batch)
                  : "Latency is of a whole request, asked alone, nothing kept from earlier ones.");
}

std::string selective(const EvalReport& report) {
  if (report.selective.empty()) return "";
  Table table({"threshold", "accuracy", "of thinking's accuracy", "thought about", "of thinking's tokens"});
  for (const SelectivePoint& p : report.selective) {
    table.row({fmt::format("{:.6g}", p.threshold), fixed(p.accuracy), percent(p.of_thinking),
               percent(p.thinking), percent(p.token_share)});
  }
  return heading("Thinking only when unsure") + table.html();
}

Cells difference_cells(const std::string& name, const Difference& d) {
  return {name,
          std::to_string(d.questions),
          percent(d.flip_rate()),
          fixed(d.mean_change(), 4),
          fixed(d.largest, 4),
          fixed(over(d.right_before, d.labelled)),
          fixed(over(d.right_after, d.labelled))};
}

std::string checks(const EvalReport& report) {
  if (!report.checks) return "";
  Table table({"put another way", "questions", "another answer", "mean |dp|", "largest |dp|",
               "accuracy before", "after"});
  for (std::size_t v = 0; v < kVariants.size(); ++v) {
    const Difference& d = report.checks->variants[v];
    if (d.questions > 0) table.row(difference_cells(variant_text(kVariants[v]), d));
  }
  const Difference& order = report.checks->question_order;
  if (order.questions > 0) table.row(difference_cells("questions in reverse", order));
  return heading("Does the answer hang on how it is asked?") + table.html() +
         note("Direct answers. |dp| is the change of an option's probability.");
}

std::string against(const EvalReport& report) {
  if (!report.against) return "";
  Table table({"way", "questions", "another answer", "mean |dp|", "largest |dp|", "accuracy", "change", "ECE",
               "change"});
  for (const AgainstMode& m : report.against->modes) {
    table.row({m.mode, std::to_string(m.difference.questions), percent(m.difference.flip_rate(), 2),
               fixed(m.difference.mean_change(), 4), fixed(m.difference.largest, 4),
               fixed(m.after.accuracy()), fmt::format("{:+.4f}", m.after.accuracy() - m.before.accuracy()),
               fixed(m.after.ece), fmt::format("{:+.4f}", m.after.ece - m.before.ece)});
  }
  return heading(fmt::format("Weights held as {} instead of {}", report.against->type, report.type)) +
         table.html();
}

std::string benchmark(const EvalReport& report) {
  if (!report.modes.front().benchmark) return "";
  std::string out = heading("JevBench, public items");
  for (const ModeSummary& mode : report.modes) {
    const BenchmarkScore& s = *mode.benchmark;
    Table table({mode.name(), "questions", "accuracy", "chance", "corrected", "ECE", "invalid"});
    for (const TierScore& t : s.tiers) {
      table.row({tier_name(t.tier), std::to_string(t.metrics.count), fixed(t.metrics.accuracy()),
                 fixed(t.chance), fixed(t.corrected), fixed(t.metrics.ece), std::to_string(t.invalid)});
    }
    const auto points = [](const std::optional<double>& axis) { return axis ? fixed(*axis, 1) : "-"; };
    out += table.html();
    out += note(fmt::format(
        "Intelligence {} (tiers of {} of the weight), calibration {}, speed {}, cost {}, together "
        "{}. No score of the board, which takes sealed items in.",
        fixed(s.intelligence, 1), percent(s.weight, 0), points(s.calibration), points(s.speed),
        points(s.cost), points(s.composite)));
  }
  return out;
}

}  // namespace

std::string eval_page(const EvalReport& report, const std::vector<NamedPlot>& plots) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>ponder eval: {0}</title><style>{1}</style></head><body>\n"
      "<h1>ponder eval: {0}</h1>\n",
      escape_markup(report.model), kStyle);
  out += fmt::format(
      "<p>{} records with {} questions from {}. Weights {}; {}. Up to {} tokens of thought, {}. {}.</p>\n",
      report.evaluation.records, report.evaluation.questions.size(),
      escape_markup(fmt::format("{}", fmt::join(report.files, ", "))), escape_markup(report.type),
      escape_markup(report.backend), report.max_think, report.drafting ? "drafted" : "token by token",
      escape_markup(report.date));
  if (report.failures > 0) {
    out += note(fmt::format("{} requests have no answer and count as wrong; the first: {}", report.failures,
                            report.first_failure));
  }
  out += overview(report);
  out += "<div class=\"plots\">\n";
  for (const NamedPlot& plot : plots) {
    out += fmt::format("<figure>{}<figcaption>{}</figcaption></figure>\n", plot.svg,
                       escape_markup(plot.caption));
  }
  out += "</div>\n";
  out += heading("By source and type") + groups(report, "source", &ModeSummary::sources) +
         groups(report, "type", &ModeSummary::types);
  out += cost(report) + selective(report) + checks(report) + against(report) + benchmark(report);
  return out + "</body></html>\n";
}

}  // namespace ponder::cli
