// Runs the questions of requests on an engine: shared prefixes, read-outs, hidden chains of thought.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "decide/chains.hpp"
#include "decide/encoder.hpp"
#include "decide/packing.hpp"
#include "decide/request.hpp"
#include "engine/engine.hpp"
#include "engine/prefix_store.hpp"
#include "models/hybrid/pointer_head.hpp"

namespace ponder::decide {

struct AnswerLimits {
  int max_rows = 8;             // questions answered side by side
  std::int64_t max_len = 8192;  // tokens of prompt, chain and remainder together
  int block = 4;                // most candidate rows of a draft cycle; part of a question's room
  bool fixed_block = false;     // always that many; otherwise as many as pay, see BlockChoice
  // Prompt and remainder tokens of all questions of a request together: what it may take of memory and time.
  std::int64_t max_request_tokens = std::int64_t{1} << 22;
  // Memory for prefixes of earlier prompts, to go on from; 0: none are kept. Answers do not depend on it.
  std::uint64_t prefix_cache_bytes = std::uint64_t{1} << 30;
};

struct QuestionResult {
  std::vector<double> probs;        // in option order
  bool thought = false;             // it got a thinking budget after the threshold
  bool closed = false;              // the chain ended in </think>
  bool deadline = false;            // stopped thinking because time ran out: probs are the no-think ones
  std::vector<std::int32_t> chain;  // the closing token included
  std::vector<int> accepted;        // tokens of the chain that each cycle gave
  std::optional<std::vector<double>>
      nothink_probs;               // where a threshold, a deadline or no budget asked for them
  std::int64_t prompt_tokens = 0;  // this question's share: the prefix of its group is counted once
  EncodedQuestion encoded;
};

// What one request came to: a result per question, or why it could not be answered.
struct RequestOutcome {
  std::vector<QuestionResult> questions;
  std::optional<Error> error;
};

struct AnswerCounters : CycleCounters {
  std::uint64_t prefill_tokens = 0;  // rows run for prompts, empty thinks and remainders
  std::uint64_t shared_tokens = 0;   // prompt rows that sharing a prefix saved
  std::uint64_t reused_tokens = 0;   // prompt rows that prefixes of earlier prompts saved
};

// Uses the engine while a call runs; one call at a time.
class Answerer {
 public:
  Answerer(engine::Engine& engine, const Encoder& encoder, const hybrid::PointerHead& head,
           const AnswerLimits& limits);

  // Answers requests together. Questions are packed into groups of at most max_rows, thinking and other
  // questions apart; what a question answers does not depend on its company. A request that cannot be
  // encoded, does not fit or meets a number that is none fails alone. Throws Error(cancelled) when `stop`
  // asks for it.
  std::vector<RequestOutcome> answer_batch(std::span<const Request> requests,
                                           const std::stop_token& stop = {});

  const AnswerCounters& counters() const noexcept { return counters_; }
  const engine::PrefixStore& prefixes() const noexcept { return prefixes_; }
  // Lets go of what earlier prompts left behind.
  void forget_prefixes() { prefixes_.clear(); }

 private:
  struct Row;
  struct Group;

  void encode(const Request& request, std::vector<QuestionResult>& results) const;
  void check_length(const Question& question, const EncodedQuestion& encoded) const;
  std::int64_t room(const EncodedQuestion& encoded) const;
  void plan_groups(std::span<const Request> requests, std::vector<RequestOutcome>& outcomes, bool thinking,
                   std::vector<Group>& groups);
  void share_prefix(Group& group, const std::stop_token& stop);
  void feed_prefix(Group& group, std::span<const std::int32_t> ids, const std::stop_token& stop);

  // Groups whose questions do not think.
  void read_without_thinking(Group& group, const std::stop_token& stop);

  // The others: rows wait in the order of their groups, at most max_rows of them are at work.
  void think(std::vector<Group>& groups, const std::stop_token& stop);
  void admit(std::span<Row*> rows, const std::stop_token& stop);
  void read_nothink(std::span<Row*> rows, const std::stop_token& stop);
  void cycle(std::span<Row*> rows, const std::stop_token& stop);
  void read_after_chains(std::span<Row*> rows, const std::stop_token& stop);
  bool out_of_time(Row& row) const;

  engine::Engine& engine_;
  const Encoder& encoder_;
  const hybrid::PointerHead& head_;
  AnswerLimits limits_;
  AnswerCounters counters_;
  std::vector<float> hidden_;  // hidden rows of the present engine call
  ChainCycles cycles_;
  engine::PrefixStore prefixes_;
  Stopwatch started_;  // of the present batch; deadlines count from here
};

}  // namespace ponder::decide
