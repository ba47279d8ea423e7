#include "decide/think_benchmark.hpp"

#include <algorithm>
#include <memory>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"

namespace ponder::decide {

// One way with what it has learned.
struct ThinkBenchmark::Way {
  Way(engine::Engine& e, const ThinkWay& how, const Contexts& c)
      : engine(e),
        contexts(c),
        cycles(e, {.limit = e.model().vocab_size()}, how.block, how.fixed, figure.counters) {
    figure.way = how;
  }

  engine::Engine& engine;
  const Contexts& contexts;
  ThinkFigure figure;
  ChainCycles cycles;
  std::vector<double> seconds;  // by round

  void weigh(const std::vector<Chain>& chains) {
    const models::StateLayout& layout = engine.model().state_layout();
    figure.page_bytes = figure.draft_bytes = 0;
    for (const Chain& chain : chains) {
      figure.page_bytes += chain.sequence->pages().size() * layout.page_bytes;
      for (const std::byte* page : chain.sequence->draft_pages()) {
        if (page != nullptr) figure.draft_bytes += layout.draft_page_bytes;
      }
    }
    figure.state_bytes = chains.size() * engine.state_bytes();
  }
};

namespace {

// Tokens a second of `way` over those of `base`, round by round.
engine::Spread compared(const std::vector<double>& way, const std::vector<double>& base) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < way.size(); ++i) ratios.push_back(base[i] / way[i]);
  return engine::Spread::of(std::move(ratios));
}

}  // namespace

// Apart, so that chains share no pages; the same ids for both engines.
ThinkBenchmark::Contexts ThinkBenchmark::read_contexts(engine::Engine& engine, int questions) const {
  models::Model& model = engine.model();
  const auto width = static_cast<std::size_t>(model.hidden_size());
  const auto count = static_cast<std::size_t>(questions);
  Random random(1);
  std::vector<std::vector<std::int32_t>> ids(count);
  std::vector<float> hidden(width * count);
  Contexts out;
  for (auto& some : ids) {
    for (int i = 0; i < settings_.context; ++i) {
      some.push_back(static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(model.vocab_size()))));
    }
    out.sequences.push_back(engine.new_sequence());
  }
  const int last[] = {settings_.context - 1};
  std::vector<engine::ExtendJob> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    jobs.push_back({&out.sequences[i], ids[i], last, {hidden.data() + i * width, model.hidden_size()}});
  }
  engine.extend(jobs);
  out.next.resize(count);
  model.argmax({hidden.data(), model.hidden_size()}, questions, model.vocab_size(), nullptr, out.next.data());
  return out;
}

ThinkFigures ThinkBenchmark::measure(int questions) {
  known_.clear();
  const Contexts plain = read_contexts(plain_, questions), drafting = read_contexts(drafting_, questions);
  std::vector<std::unique_ptr<Way>> ways;
  ways.push_back(std::make_unique<Way>(plain_, ThinkWay{}, plain));
  for (const int block : settings_.blocks) {
    ways.push_back(std::make_unique<Way>(drafting_, ThinkWay{true, block, true}, drafting));
  }
  ways.push_back(std::make_unique<Way>(drafting_, ThinkWay{true, settings_.blocks.back(), false}, drafting));
  for (const auto& way : ways) {
    run(*way, 0);
    way->figure.counters = {};
  }
  for (int round = 1; round <= settings_.repeat; ++round) {
    for (std::size_t i = 0; i < ways.size(); ++i) {  // none always first
      Way& way = *ways[(i + static_cast<std::size_t>(round)) % ways.size()];
      way.seconds.push_back(run(way, round));
    }
  }
  ThinkFigures out;
  out.questions = questions;
  for (const auto& way : ways) {
    way->figure.tokens = static_cast<double>(questions) * settings_.tokens;
    way->figure.seconds = engine::Spread::of(way->seconds);
    way->figure.of_plain = compared(way->seconds, ways.front()->seconds);
    out.ways.push_back(way->figure);
    const bool fixed = way->figure.way.fixed;
    if (fixed && way->figure.seconds.median < out.ways[out.best_fixed].seconds.median) {
      out.best_fixed = out.ways.size() - 1;
    }
  }
  out.of_best_fixed = compared(ways.back()->seconds, ways[out.best_fixed]->seconds);
  return out;
}

// Seconds until every chain has all its tokens.
double ThinkBenchmark::run(Way& way, int round) {
  std::vector<Chain> chains;
  for (std::size_t i = 0; i < way.contexts.sequences.size(); ++i) {
    Chain& chain = chains.emplace_back(way.cycles.new_chain());
    chain.sequence = way.contexts.sequences[i].fork();
    chain.cap = settings_.tokens;
    chain.candidates = {way.contexts.next[i]};
    chain.active = true;
  }
  std::vector<Chain*> active;
  for (Chain& chain : chains) active.push_back(&chain);
  const Stopwatch watch;
  while (!active.empty()) {
    for (const Chain* chain : active) {
      if (chain->candidates.front() >= 0) continue;
      fail(ErrorKind::internal, "the model's logits are not numbers: there is nothing to measure");
    }
    way.cycles.run(active);
    std::erase_if(active, [](const Chain* chain) { return !chain->active; });
    if (settings_.accept && !known_.empty()) guess(active, chains, round);
  }
  const double seconds = watch.elapsed_ms() / 1e3;
  check(chains);
  way.weigh(chains);
  return seconds;
}

// Puts guesses of the wanted quality in the place of the drafter's. Whether the token at a place can be
// guessed is a matter of that place and the round, so that all ways are equally lucky.
void ThinkBenchmark::guess(std::vector<Chain*>& chains, const std::vector<Chain>& all, int round) const {
  const auto vocabulary = static_cast<std::int32_t>(drafting_.model().vocab_size());
  for (Chain* chain : chains) {
    const auto which = static_cast<std::size_t>(chain - all.data());
    for (std::size_t i = 1; i < chain->candidates.size(); ++i) {
      const std::size_t place = chain->tokens.size() + i;
      Random chance((static_cast<std::uint64_t>(round) << 48U) ^ (which << 32U) ^ place);
      const std::int32_t right = known_[which][place];
      chain->candidates[i] = chance.uniform() < *settings_.accept ? right : (right + 1) % vocabulary;
    }
  }
}

void ThinkBenchmark::check(const std::vector<Chain>& chains) {
  const bool first = known_.empty();
  for (std::size_t i = 0; i < chains.size(); ++i) {
    if (first) known_.push_back(chains[i].tokens);
    if (chains[i].tokens != known_[i]) {
      fail(ErrorKind::internal, "chain {} came out otherwise with drafts than without", i + 1);
    }
  }
}

}  // namespace ponder::decide
