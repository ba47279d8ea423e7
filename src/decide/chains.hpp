// Chains of thought of several sequences, token by token: plain greedy decoding, sped up by drafts.
//
// A cycle feeds each chain its certain token and some drafts on probation, keeps those that the model itself
// would have chosen, and then asks mask rows behind what was kept for the next drafts. So a draft is only
// ever made for the place where it is needed, and a wrong one costs its rows and nothing else.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <vector>

#include "decide/block_choice.hpp"
#include "engine/engine.hpp"

namespace ponder::decide {

// Which tokens a chain may choose, and which one ends it.
struct ChainRules {
  std::int64_t limit = 0;                 // ids below this
  const std::uint64_t* banned = nullptr;  // but not these: a bit set, or null
  std::int32_t end = -1;                  // -1: nothing ends a chain but its cap
};

struct Chain {
  explicit Chain(DraftRecord drafts) : record(std::move(drafts)) {}

  std::optional<engine::Sequence> sequence;  // what was fed so far
  std::int64_t cap = 0;                      // most tokens
  // Of the next cycle: the first is certain, the others are drafts. -1: no logit was a number.
  std::vector<std::int32_t> candidates;
  std::vector<std::int32_t> tokens;  // the closing one included
  std::vector<int> accepted;         // tokens that each cycle gave
  bool closed = false;               // it came to ChainRules::end
  bool active = false;               // it goes on
  DraftRecord record;

  std::int64_t left() const { return cap - static_cast<std::int64_t>(tokens.size()); }
};

struct CycleCounters {
  std::uint64_t cycles = 0;             // of all chains together
  std::vector<std::uint64_t> accepted;  // [j - 1]: cycles that gave j tokens
  std::uint64_t thought_tokens = 0;
  std::uint64_t candidate_rows = 0;  // certain tokens and drafts fed
  std::uint64_t draft_rows = 0;      // mask rows run
};

class ChainCycles {
 public:
  // Adds to `counters` as it goes. Uses the engine while a call runs.
  ChainCycles(engine::Engine& engine, const ChainRules& rules, int most, bool fixed, CycleCounters& counters);

  // A chain that has yet to get its sequence, its cap and its first candidate.
  Chain new_chain() { return Chain(choice_.new_record()); }

  // One cycle of chains that are active and whose first candidate is a token; those that end with it are no
  // longer active.
  void run(std::span<Chain* const> chains, const std::stop_token& stop = {});

  // Greedy choices for hidden rows, valid until the next call; -1 where no logit is a number.
  std::span<const std::int32_t> pick(ops::ConstRows hidden, std::size_t rows);

  BlockChoice& choice() noexcept { return choice_; }

 private:
  void feed_candidates(std::span<Chain* const> chains, const std::stop_token& stop);
  void accept(Chain& chain, std::size_t fed, const std::int32_t* predictions);
  void make_drafts(std::span<Chain* const> chains);

  engine::Engine& engine_;
  ChainRules rules_;
  CycleCounters& counters_;
  BlockChoice choice_;
  std::vector<float> hidden_;      // hidden rows of the present engine call
  std::vector<std::int32_t> ids_;  // what pick() chose
  std::vector<std::size_t> fed_;   // candidates of each chain in the present cycle
};

}  // namespace ponder::decide
