// Hidden chains of thought: rows come to work as others finish, and draft cycles give each the tokens that
// plain greedy decoding would.
//
// A cycle feeds each row its certain token and some drafts on probation, keeps those that the model itself
// would have chosen, and then asks mask rows behind what was kept for the next drafts. So a draft is only
// ever made for the place where it is needed, and a wrong one costs its rows and nothing else.
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
      row.sequence = group.prefix->fork();
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
        std::stable_partition(working.begin(), working.end(), [](const Row* r) { return r->active; });
    read_after_chains({resting, working.end()}, stop);
    for (auto row = resting; row != working.end(); ++row) (*row)->sequence.reset();
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
    jobs.push_back({&*rows[i]->sequence,
                    ids,
                    {&last[i], 1},
                    {hidden_.data() + i * width, static_cast<std::int64_t>(width)}});
  }
  engine_.extend(jobs, stop);
  pick({hidden_.data(), static_cast<std::int64_t>(width)}, rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i]->candidates = {ids_[i]};
  read_nothink(rows, stop);
  for (Row* row : rows) {
    row->active = row->cap > 0 && !row->failed();
    row->result->thought = row->active;
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
    forks.push_back(row->sequence->fork());
  }
  run_read_outs(
      engine_, head_, hidden_, read_outs, forks, stop,
      [&](std::size_t n, std::vector<double> probs) {
        Row& row = *who[n];
        const double top = *std::max_element(probs.begin(), probs.end());
        if (row.options->nothink_threshold && top >= *row.options->nothink_threshold) row.cap = 0;
        row.result->probs = probs;
        row.result->nothink_probs = std::move(probs);
      },
      [&](std::size_t n, const Error& error) { who[n]->fail_with(error); });
}

// Greedy choices for hidden rows, in ids_; -1 where no logit is a number.
void Answerer::pick(ops::ConstRows hidden, std::size_t rows) {
  ids_.resize(rows);
  engine_.model().argmax(hidden, static_cast<int>(rows), token_limit_, encoder_.banned().data(), ids_.data());
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
  std::vector<Row*> fed;
  for (Row* row : rows) {
    if (row->failed()) {
      row->active = false;
    } else if (row->candidates.front() < 0) {
      row->active = false;
      row->fail_with(Error(ErrorKind::internal, "thinking met logits of which none is a number"));
    } else if (out_of_time(*row)) {
      row->active = false;
    } else {
      fed.push_back(row);
    }
  }
  if (fed.empty()) return;
  feed_candidates(fed, stop);
  std::erase_if(fed, [](const Row* row) { return !row->active; });
  if (!fed.empty()) make_drafts(fed);
}

void Answerer::feed_candidates(std::span<Row*> rows, const std::stop_token& stop) {
  const auto width = static_cast<std::int64_t>(engine_.model().hidden_size());
  static constexpr int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
  static_assert(std::size(numbers) == ops::kHeldRows);
  std::size_t all = 0;
  for (Row* row : rows) {
    row->fed = static_cast<std::size_t>(
        std::min<std::int64_t>(static_cast<std::int64_t>(row->candidates.size()), row->left()));
    all += row->fed;
  }
  hidden_.resize(all * static_cast<std::size_t>(width));
  std::vector<engine::ExtendJob> jobs;
  float* at = hidden_.data();
  for (Row* row : rows) {
    jobs.push_back({&*row->sequence,
                    std::span<const std::int32_t>(row->candidates).first(row->fed),
                    std::span<const int>(numbers).first(row->fed),
                    {at, width},
                    row->fed > 1});
    at += static_cast<std::int64_t>(row->fed) * width;
  }
  const Stopwatch watch;
  engine_.extend(jobs, stop);
  pick({hidden_.data(), width}, all);
  std::size_t first = 0;
  for (Row* row : rows) {
    accept(*row, ids_.data() + first);
    first += row->fed;
  }
  blocks_.steps().add(static_cast<int>(all), watch.elapsed_ms());
}

// Keeps the candidates that the model would have chosen itself. predictions[i]: its choice behind candidate
// i.
void Answerer::accept(Row& row, const std::int32_t* predictions) {
  const std::int32_t end = encoder_.think_end();
  std::size_t j = 1;
  while (j < row.fed && row.candidates[j - 1] != end && row.candidates[j] == predictions[j - 1]) ++j;
  engine_.settle(*row.sequence, row.fed > 1 ? static_cast<int>(j) : 0);
  row.record.add(static_cast<int>(row.fed) - 1, static_cast<int>(j) - 1);
  append(row.result->chain, std::span<const std::int32_t>(row.candidates).first(j));
  row.result->accepted.push_back(static_cast<int>(j));
  row.result->closed = row.candidates[j - 1] == end;
  if (row.result->closed || row.left() <= 0) row.active = false;
  row.candidates = {predictions[j - 1]};
  ++counters_.cycles;
  counters_.thought_tokens += j;
  if (counters_.accepted.size() < j) counters_.accepted.resize(j);
  ++counters_.accepted[j - 1];
}

// Drafts for the next cycle, as many as pay.
void Answerer::make_drafts(std::span<Row*> rows) {
  if (blocks_.most() == 1) return;
  std::vector<const DraftRecord*> records;
  for (const Row* row : rows) records.push_back(&row->record);
  const int wanted = blocks_.choose(records) - 1;
  if (wanted == 0) return;
  const Stopwatch watch;
  const int room = engine_.model().max_rows();
  int drafted = 0;
  for (std::size_t begin = 0; begin < rows.size();) {  // as many rows as fit one step
    std::vector<engine::DraftJob> jobs;
    std::vector<Row*> who;
    int masks = 0;
    for (; begin < rows.size(); ++begin) {
      Row& row = *rows[begin];
      const auto count = static_cast<int>(std::min<std::int64_t>(wanted, row.left() - 1));
      if (count <= 0 || row.candidates.front() < 0) continue;
      if (masks + count > room) break;
      jobs.push_back({&*row.sequence, count});
      who.push_back(&row);
      masks += count;
    }
    if (masks == 0) break;
    const ops::ConstRows hidden = engine_.draft(jobs);
    pick(hidden, static_cast<std::size_t>(masks));
    std::size_t at = 0;
    for (std::size_t i = 0; i < who.size(); ++i) {
      for (int n = 0; n < jobs[i].rows; ++n, ++at) {
        // Behind a row without a choice there is nothing to try.
        if (ids_[at] >= 0 && who[i]->candidates.size() == static_cast<std::size_t>(n) + 1) {
          who[i]->candidates.push_back(ids_[at]);
        }
      }
    }
    drafted += masks;
  }
  if (drafted == 0) return;
  counters_.draft_rows += static_cast<std::uint64_t>(drafted);
  blocks_.drafts().add(drafted, watch.elapsed_ms());
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
    sequences.push_back(std::move(*row->sequence));
  }
  run_read_outs(
      engine_, head_, hidden_, read_outs, sequences, stop,
      [&](std::size_t n, std::vector<double> probs) { who[n]->result->probs = std::move(probs); },
      [&](std::size_t n, const Error& error) { who[n]->fail_with(error); });
}

}  // namespace ponder::decide
