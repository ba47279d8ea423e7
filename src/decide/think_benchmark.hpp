// How fast chains of thought come: plainly, with blocks of fixed sizes, and with blocks chosen by cost.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "decide/chains.hpp"
#include "engine/benchmark.hpp"
#include "engine/engine.hpp"

namespace ponder::decide {

// How a chain is come by.
struct ThinkWay {
  bool drafter = false;  // plain decoding; with one, block 1 is that and keeps what drafts would see
  int block = 1;
  bool fixed = true;  // else as many as pay, up to `block`
};

// All chains together.
struct ThinkFigure {
  ThinkWay way;
  double tokens = 0;             // of one run
  engine::Spread seconds;        // of one run
  engine::Spread of_plain;       // tokens a second over those of plain decoding in the same round
  CycleCounters counters;        // of all timed runs
  std::uint64_t page_bytes = 0;  // what the chains hold at their end
  std::uint64_t draft_bytes = 0, state_bytes = 0;

  double tokens_per_second() const { return tokens / seconds.median; }
  double accepted() const {  // tokens a cycle
    return static_cast<double>(counters.thought_tokens) / static_cast<double>(counters.cycles);
  }
};

struct ThinkFigures {
  int questions = 0;
  std::vector<ThinkFigure> ways;  // plain, the fixed blocks in order, chosen by cost
  std::size_t best_fixed = 0;     // of `ways`; plain is one of them
  engine::Spread
      of_best_fixed;  // tokens a second of the last over those of the best fixed, in the same round
};

struct ThinkSettings {
  std::vector<int> blocks = {2, 4, 8};  // ascending; the last one limits the choice by cost
  int tokens = 64;                      // of each chain
  int context = 32;                     // random ids before it
  int repeat = 5;                       // timed rounds of all ways
  // Guesses are right with this probability, whatever the drafter says, which runs all the same.
  std::optional<double> accept;
};

class ThinkBenchmark {
 public:
  // The same weights, with a drafter and without.
  ThinkBenchmark(engine::Engine& plain, engine::Engine& drafting, ThinkSettings settings)
      : plain_(plain), drafting_(drafting), settings_(std::move(settings)) {}

  // Rounds of all ways in turn, after one that is not counted, in which blocks are first chosen. Throws
  // Error(internal) when drafted chains are not the plain ones.
  ThinkFigures measure(int questions);

 private:
  struct Contexts {
    std::vector<engine::Sequence> sequences;
    std::vector<std::int32_t> next;  // the choice behind each
  };
  struct Way;

  Contexts read_contexts(engine::Engine& engine, int questions) const;
  double run(Way& way, int round);
  void guess(std::vector<Chain*>& chains, const std::vector<Chain>& all, int round) const;
  void check(const std::vector<Chain>& chains);

  engine::Engine& plain_;
  engine::Engine& drafting_;
  ThinkSettings settings_;
  std::vector<std::vector<std::int32_t>> known_;  // the plain chains
};

}  // namespace ponder::decide
