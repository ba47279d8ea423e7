// Hidden chains of thought: rows come to work as others finish.
#include <algorithm>

#include "decide/answerer_rows.hpp"

namespace ponder::decide {
namespace {

// How much of its time budget a question may think away: reading the answer comes after.
constexpr double kThinkingShare = 0.9;

}  // namespace

void Answerer::think(std::vector<Group>& groups, const std::stop_token& stop) {
  std::vector<Row*> working;
  std::size_t at = 0;  // the first group with rows that wait
  const auto width = static_cast<std::size_t>(limits_.max_rows);
  while (true) {
    std::vector<Row*> fresh;
    while (at < groups.size() && working.size() + fresh.size() < width) {
      Group& group = groups[at];
      if (!group.prefix) share_prefix(group, stop);
      Row& row = group.rows[group.started++];
      const bool last = group.started == group.rows.size();
      row.chain.sequence = group.prefix->fork();
      if (last) {
        group.prefix.reset();
        ++at;
      }
      if (!row.failed()) fresh.push_back(&row);  // another question of its request may have failed
    }
    if (fresh.empty() && working.empty()) return;
    admit(fresh, stop);
    working.insert(working.end(), fresh.begin(), fresh.end());

    const auto resting =
        std::stable_partition(working.begin(), working.end(), [](const Row* r) { return r->chain.active; });
    for (auto row = resting; row != working.end(); ++row) (*row)->keep_chain();
    read_after_chains({resting, working.end()}, stop);
    for (auto row = resting; row != working.end(); ++row) (*row)->chain.sequence.reset();
    working.erase(resting, working.end());
    if (!working.empty()) cycle(working, stop);
  }
}

// The rest of each prompt; a row's first token comes from its last prompt row.
void Answerer::admit(std::span<Row*> rows, const std::stop_token& stop) {
  if (rows.empty()) return;
  const auto width = static_cast<std::size_t>(engine_.model().hidden_size());
  hidden_.resize(rows.size() * width);
  std::vector<int> last;
  last.reserve(rows.size());
  for (const Row* row : rows)
    last.push_back(static_cast<int>(row->encoded().prompt.size() - row->prefix) - 1);
  std::vector<engine::ExtendJob> jobs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto ids = tail(rows[i]->encoded().prompt, rows[i]->prefix);
    counters_.prefill_tokens += ids.size();
    jobs.push_back({&*rows[i]->chain.sequence,
                    ids,
                    {&last[i], 1},
                    {hidden_.data() + i * width, static_cast<std::int64_t>(width)}});
  }
  engine_.extend(jobs, stop);
  const auto ids = cycles_.pick({hidden_.data(), static_cast<std::int64_t>(width)}, rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i]->chain.candidates = {ids[i]};
  read_nothink(rows, stop);
  for (Row* row : rows) {
    row->chain.active = row->chain.cap > 0 && !row->failed();
    row->result->thought = row->chain.active;
  }
}

// The no-think answers, read on forks; a confident one ends its row's thinking before it starts.
void Answerer::read_nothink(std::span<Row*> rows, const std::stop_token& stop) {
  std::vector<Row*> who;
  std::vector<ReadOut> read_outs;
  std::vector<engine::Sequence> forks;
  for (Row* row : rows) {
    if (!row->wants_nothink()) continue;
    who.push_back(row);
    read_outs.push_back(make_read_out(encoder_.empty_think(), row->encoded(), 0));
    counters_.prefill_tokens += read_outs.back().ids.size();
    forks.push_back(row->chain.sequence->fork());
  }
  run_read_outs(
      engine_, head_, hidden_, read_outs, forks, stop,
      [&](std::size_t n, std::vector<double> probs) {
        Row& row = *who[n];
        const double top = *std::max_element(probs.begin(), probs.end());
        if (row.options->nothink_threshold && top >= *row.options->nothink_threshold) row.chain.cap = 0;
        row.result->probs = probs;
        row.result->nothink_probs = std::move(probs);
      },
      [&](std::size_t n, const Error& error) { who[n]->fail_with(error); });
}

// A question whose time is up keeps its no-think answer.
bool Answerer::out_of_time(Row& row) const {
  const auto& deadline = row.options->deadline_ms;
  if (!deadline || started_.elapsed_ms() <= kThinkingShare * static_cast<double>(*deadline)) return false;
  row.result->thought = false;
  row.result->deadline = true;
  return true;
}

// One cycle of all rows: those that end with it are no longer active.
void Answerer::cycle(std::span<Row*> rows, const std::stop_token& stop) {
  std::vector<Chain*> fed;
  for (Row* row : rows) {
    if (row->failed()) {
      row->chain.active = false;
    } else if (row->chain.candidates.front() < 0) {
      row->chain.active = false;
      row->fail_with(Error(ErrorKind::internal, "thinking met logits of which none is a number"));
    } else if (out_of_time(*row)) {
      row->chain.active = false;
    } else {
      fed.push_back(&row->chain);
    }
  }
  cycles_.run(fed, stop);
}

// The remainder behind each chain, without its own </think> where the chain closed itself.
void Answerer::read_after_chains(std::span<Row*> rows, const std::stop_token& stop) {
  std::vector<Row*> who;
  std::vector<ReadOut> read_outs;
  std::vector<engine::Sequence> sequences;
  for (Row* row : rows) {
    if (row->failed() || !row->result->thought) continue;
    who.push_back(row);
    read_outs.push_back(make_read_out({}, row->encoded(), row->result->closed ? 1 : 0));
    counters_.prefill_tokens += read_outs.back().ids.size();
    sequences.push_back(std::move(*row->chain.sequence));
  }
  run_read_outs(
      engine_, head_, hidden_, read_outs, sequences, stop,
      [&](std::size_t n, std::vector<double> probs) { who[n]->result->probs = std::move(probs); },
      [&](std::size_t n, const Error& error) { who[n]->fail_with(error); });
}

}  // namespace ponder::decide
