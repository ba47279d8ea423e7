// What the files of the answerer share: the questions at work and their read-outs.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "decide/answerer.hpp"

namespace ponder::decide {

inline std::span<const std::int32_t> tail(const std::vector<std::int32_t>& ids, std::size_t from) {
  return std::span<const std::int32_t>(ids).subspan(from);
}

inline void append(std::vector<std::int32_t>& to, std::span<const std::int32_t> more) {
  to.insert(to.end(), more.begin(), more.end());
}

// One question of a group.
struct Answerer::Row {
  explicit Row(Chain fresh) : chain(std::move(fresh)) {}

  const Options* options = nullptr;
  const Question* question = nullptr;
  QuestionResult* result = nullptr;
  std::optional<Error>* error = nullptr;  // of the whole request
  std::size_t prefix = 0;                 // prompt tokens that its group's prefix sequence holds
  Chain chain;

  const EncodedQuestion& encoded() const { return result->encoded; }
  bool failed() const { return error->has_value(); }
  void fail_with(const Error& e) const {
    *error = Error(e.kind(), fmt::format("question '{}': {}", printable(question->id), e.what()));
  }
  void keep_chain() {
    result->chain = std::move(chain.tokens);
    result->accepted = std::move(chain.accepted);
    result->closed = chain.closed;
  }
  bool wants_nothink() const {
    return chain.cap == 0 || options->nothink_threshold.has_value() || options->deadline_ms.has_value();
  }
};

// Questions answered together as far as accounting goes: their longest common prefix is computed once.
struct Answerer::Group {
  std::vector<Row> rows;
  std::optional<engine::Sequence> prefix;  // while rows wait for it
  std::size_t started = 0;                 // rows that have left it

  bool anyone() const {
    return std::any_of(rows.begin(), rows.end(), [](const Row& row) { return row.chain.cap > 0; });
  }
};

// A remainder to read in some state: which ids a row feeds, and where its options end.
struct ReadOut {
  std::vector<std::int32_t> ids;
  std::vector<int> wanted;  // option ends, then the decide row
};

inline ReadOut make_read_out(std::vector<std::int32_t> before, const EncodedQuestion& encoded,
                             std::size_t skip) {
  ReadOut out;
  out.ids = std::move(before);
  const std::size_t base = out.ids.size();
  append(out.ids, tail(encoded.remainder, skip));
  for (const std::size_t end : encoded.option_ends) out.wanted.push_back(static_cast<int>(base + end - skip));
  out.wanted.push_back(static_cast<int>(out.ids.size()) - 1);
  return out;
}

// Feeds every read-out to its sequence and turns the hidden rows into probabilities; `done(i, probs)` gets
// them, `failed(i, error)` a read-out that is no number.
template <class Done, class Failed>
void run_read_outs(engine::Engine& engine, const hybrid::PointerHead& head, std::vector<float>& hidden,
                   std::span<const ReadOut> read_outs, std::span<engine::Sequence> sequences,
                   const std::stop_token& stop, Done&& done, Failed&& failed) {
  if (read_outs.empty()) return;
  const auto width = static_cast<std::size_t>(engine.model().hidden_size());
  std::size_t rows = 0;
  for (const ReadOut& r : read_outs) rows += r.wanted.size();
  hidden.resize(rows * width);
  std::vector<engine::ExtendJob> jobs;
  float* at = hidden.data();
  for (std::size_t i = 0; i < read_outs.size(); ++i) {
    jobs.push_back(
        {&sequences[i], read_outs[i].ids, read_outs[i].wanted, {at, static_cast<std::int64_t>(width)}});
    at += read_outs[i].wanted.size() * width;
  }
  engine.extend(jobs, stop);
  for (std::size_t i = 0; i < read_outs.size(); ++i) {
    const int options = static_cast<int>(read_outs[i].wanted.size()) - 1;
    try {
      done(i, head.probabilities(jobs[i].hidden, options, jobs[i].hidden[options]));
    } catch (const Error& error) {
      failed(i, error);
    }
  }
}

}  // namespace ponder::decide
