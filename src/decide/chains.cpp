#include "decide/chains.hpp"

#include <algorithm>
#include <iterator>

#include "base/clock.hpp"

namespace ponder::decide {

ChainCycles::ChainCycles(engine::Engine& engine, const ChainRules& rules, int most, bool fixed,
                         CycleCounters& counters)
    : engine_(engine),
      rules_(rules),
      counters_(counters),
      choice_(engine.can_draft() ? std::min({most, ops::kHeldRows, engine.model().max_rows()}) : 1, fixed) {}

std::span<const std::int32_t> ChainCycles::pick(ops::ConstRows hidden, std::size_t rows) {
  ids_.resize(rows);
  engine_.model().argmax(hidden, static_cast<int>(rows), rules_.limit, rules_.banned, ids_.data());
  return ids_;
}

void ChainCycles::run(std::span<Chain* const> chains, const std::stop_token& stop) {
  if (chains.empty()) return;
  feed_candidates(chains, stop);
  std::vector<Chain*> going(chains.begin(), chains.end());
  std::erase_if(going, [](const Chain* chain) { return !chain->active; });
  if (!going.empty()) make_drafts(going);
}

void ChainCycles::feed_candidates(std::span<Chain* const> chains, const std::stop_token& stop) {
  const auto width = static_cast<std::int64_t>(engine_.model().hidden_size());
  static constexpr int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7};
  static_assert(std::size(numbers) == ops::kHeldRows);
  std::size_t all = 0;
  fed_.clear();
  for (const Chain* chain : chains) {
    fed_.push_back(static_cast<std::size_t>(
        std::min<std::int64_t>(static_cast<std::int64_t>(chain->candidates.size()), chain->left())));
    all += fed_.back();
  }
  hidden_.resize(all * static_cast<std::size_t>(width));
  std::vector<engine::ExtendJob> jobs;
  float* at = hidden_.data();
  for (std::size_t i = 0; i < chains.size(); ++i) {
    jobs.push_back({&*chains[i]->sequence,
                    std::span<const std::int32_t>(chains[i]->candidates).first(fed_[i]),
                    std::span<const int>(numbers).first(fed_[i]),
                    {at, width},
                    fed_[i] > 1});
    at += static_cast<std::int64_t>(fed_[i]) * width;
  }
  const Stopwatch watch;
  engine_.extend(jobs, stop);
  pick({hidden_.data(), width}, all);
  std::size_t first = 0;
  for (std::size_t i = 0; i < chains.size(); ++i) {
    accept(*chains[i], fed_[i], ids_.data() + first);
    first += fed_[i];
  }
  counters_.candidate_rows += all;
  choice_.steps().add(static_cast<int>(all), watch.elapsed_ms());
}

// Keeps the candidates that the model would have chosen itself. predictions[i]: its choice behind candidate
// i.
void ChainCycles::accept(Chain& chain, std::size_t fed, const std::int32_t* predictions) {
  std::size_t j = 1;
  while (j < fed && chain.candidates[j - 1] != rules_.end && chain.candidates[j] == predictions[j - 1]) ++j;
  engine_.settle(*chain.sequence, fed > 1 ? static_cast<int>(j) : 0);
  chain.record.add(static_cast<int>(fed) - 1, static_cast<int>(j) - 1);
  chain.tokens.insert(chain.tokens.end(), chain.candidates.begin(),
                      chain.candidates.begin() + static_cast<std::ptrdiff_t>(j));
  chain.accepted.push_back(static_cast<int>(j));
  chain.closed = chain.candidates[j - 1] == rules_.end;
  if (chain.closed || chain.left() <= 0) chain.active = false;
  chain.candidates = {predictions[j - 1]};
  ++counters_.cycles;
  counters_.thought_tokens += j;
  if (counters_.accepted.size() < j) counters_.accepted.resize(j);
  ++counters_.accepted[j - 1];
}

// Drafts for the next cycle, as many as pay.
void ChainCycles::make_drafts(std::span<Chain* const> chains) {
  if (choice_.most() == 1) return;
  std::vector<const DraftRecord*> records;
  for (const Chain* chain : chains) records.push_back(&chain->record);
  const int wanted = choice_.choose(records) - 1;
  if (wanted == 0) return;
  const Stopwatch watch;
  const int room = engine_.model().max_rows();
  int drafted = 0;
  for (std::size_t begin = 0; begin < chains.size();) {  // as many chains as fit one step
    std::vector<engine::DraftJob> jobs;
    std::vector<Chain*> who;
    int masks = 0;
    for (; begin < chains.size(); ++begin) {
      Chain& chain = *chains[begin];
      const auto count = static_cast<int>(std::min<std::int64_t>(wanted, chain.left() - 1));
      if (count <= 0 || chain.candidates.front() < 0) continue;
      if (masks + count > room) break;
      jobs.push_back({&*chain.sequence, count});
      who.push_back(&chain);
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
  choice_.drafts().add(drafted, watch.elapsed_ms());
}

}  // namespace ponder::decide
