#include "cli/think_report.hpp"

#include <fmt/format.h>

#include "base/format_bytes.hpp"

namespace ponder::cli {

using decide::Array;
using decide::Object;
using decide::ThinkFigure;
using decide::ThinkFigures;
using decide::Value;
using decide::whole;

namespace {

std::string name_of(const decide::ThinkWay& way) {
  if (!way.fixed) return "by cost";
  return !way.drafter ? "plain" : fmt::format("K = {}", way.block);
}

engine::Spread rate(const ThinkFigure& f) {
  return {f.tokens / f.seconds.median, f.tokens / f.seconds.max, f.tokens / f.seconds.min};
}

// Candidate rows of a cycle.
double candidates(const ThinkFigure& f) {
  return static_cast<double>(f.counters.candidate_rows) / static_cast<double>(f.counters.cycles);
}

std::string table(const ThinkFigures& figures) {
  std::string out =
      fmt::format("\n{:<11} {:>9} {:>17} {:>9} {:>13} {:>9} {:>9} {:>7} {:>9} {:>9} {:>9} {:>9}\n",
                  fmt::format("{} question{}", figures.questions, figures.questions == 1 ? "" : "s"), "tok/s",
                  "min - max", "of plain", "min - max", "accepted", "rows", "cycles", "masks", "pages",
                  "drafts", "states");
  for (const ThinkFigure& f : figures.ways) {
    const engine::Spread tokens = rate(f);
    out += fmt::format(
        "{:<11} {:>9.2f} {:>17} {:>9.3f} {:>13} {:>9.2f} {:>9.2f} {:>7} {:>9} {:>9} {:>9} {:>9}\n",
        name_of(f.way), tokens.median, fmt::format("{:.2f} - {:.2f}", tokens.min, tokens.max),
        f.of_plain.median, fmt::format("{:.2f} - {:.2f}", f.of_plain.min, f.of_plain.max), f.accepted(),
        candidates(f), f.counters.cycles, f.counters.draft_rows, format_bytes(f.page_bytes),
        format_bytes(f.draft_bytes), format_bytes(f.state_bytes));
  }
  const ThinkFigure& best = figures.ways[figures.best_fixed];
  const engine::Spread& share = figures.of_best_fixed;
  return out + fmt::format("by cost over the best fixed, {}: {:.3f} ({:.2f} - {:.2f})\n", name_of(best.way),
                           share.median, share.min, share.max);
}

Value way_json(const ThinkFigure& f) {
  Object o;
  o.append("way", !f.way.fixed ? "by cost" : !f.way.drafter ? "plain" : "fixed");
  o.append("block", f.way.block);
  o.append("tokens_per_s", spread_json(rate(f)));
  o.append("seconds", spread_json(f.seconds));
  o.append("of_plain", spread_json(f.of_plain));
  o.append("accepted_per_cycle", f.accepted());
  o.append("candidates_per_cycle", candidates(f));
  o.append("tokens", whole(f.counters.thought_tokens));
  o.append("cycles", whole(f.counters.cycles));
  Array by_size;
  for (const std::uint64_t cycles : f.counters.accepted) by_size.emplace_back(whole(cycles));
  o.append("cycles_by_accepted", std::move(by_size));
  o.append("candidate_rows", whole(f.counters.candidate_rows));
  o.append("mask_rows", whole(f.counters.draft_rows));
  Object memory;
  memory.append("pages", whole(f.page_bytes));
  memory.append("draft_pages", whole(f.draft_bytes));
  memory.append("states", whole(f.state_bytes));
  o.append("memory_bytes", std::move(memory));
  return o;
}

}  // namespace

Value spread_json(const engine::Spread& s) {
  Object o;
  o.append("median", s.median);
  o.append("min", s.min);
  o.append("max", s.max);
  return o;
}

std::string ThinkReport::text() const {
  if (figures.empty()) return {};
  std::string out = fmt::format(
      "\nthinking {} tokens behind {}; drafts see the newest {} and the first {} in {}{}\n", settings.tokens,
      settings.context, memory.window, memory.sinks, draft_kv,
      settings.accept ? fmt::format("; guesses made right with probability {}", *settings.accept) : "");
  for (const ThinkFigures& f : figures) out += table(f);
  return out;
}

Value ThinkReport::json() const {
  Object about;
  about.append("tokens", settings.tokens);
  about.append("context", settings.context);
  about.append("accept", settings.accept ? Value(*settings.accept) : Value());
  about.append("draft_window", memory.window);
  about.append("draft_sinks", memory.sinks);
  about.append("draft_kv", draft_kv);
  Array list;
  for (const ThinkFigures& f : figures) {
    Object o;
    o.append("questions", f.questions);
    Array ways;
    for (const ThinkFigure& way : f.ways) ways.emplace_back(way_json(way));
    o.append("ways", std::move(ways));
    o.append("best_fixed", f.ways[f.best_fixed].way.block);
    o.append("by_cost_of_best_fixed", spread_json(f.of_best_fixed));
    list.emplace_back(std::move(o));
  }
  Object out;
  out.append("settings", std::move(about));
  out.append("figures", std::move(list));
  return out;
}

}  // namespace ponder::cli
