// Chains thought with drafts are the chains of plain greedy decoding, to the last bit, whatever the drafter,
// the block, the company, the threads and the types; and drafts are right as often as the reference's.
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "golden/drafted.hpp"

namespace ponder::test {
namespace {

using decide::QuestionResult;

// Every instruction set on one checkpoint, the best one on all.
std::vector<GoldenCase> drafted_cases() {
  std::vector<GoldenCase> out;
  const auto names = drafted_checkpoints();
  const cpu::InstructionSet best = cpu::best(cpu::detect_cpu_features());
  for (const GoldenCase& c : cpu_cases()) {
    if (std::find(names.begin(), names.end(), c.checkpoint) == names.end()) continue;
    if (c.checkpoint == "tiny-a" || c.runner.isa == best) out.push_back(c);
  }
  return out;
}

// Chains that run to their end or to a budget in their midst, and one each of the smallest budgets.
std::vector<ChainCase> thinking_cases(const std::string& checkpoint) {
  std::vector<ChainCase> out;
  std::vector<int> small;
  for (const ChainCase& c : chain_cases(checkpoint)) {
    const int budget = c.body["options"].value("max_think", 0);
    const bool seen = std::find(small.begin(), small.end(), budget) != small.end();
    if (budget < 17 && seen) continue;
    if (budget < 17) small.push_back(budget);
    if (budget < 17 || budget >= 40 || (out.size() % 2 == 0 && budget > 17)) out.push_back(c);
  }
  return out;
}

class Drafting : public testing::TestWithParam<GoldenCase> {
 protected:
  static const std::string& checkpoint() { return GetParam().checkpoint; }

  static Setting setting(int threads = 1) {
    Setting s;
    s.runner = GetParam().runner;
    s.runner.threads = threads;
    return s;
  }
  // Without a drafter, each question alone and cold.
  static std::vector<QuestionResult> plain(const std::vector<ChainCase>& cases, Setting s) {
    s.drafter = false;
    s.limits = {};
    s.limits.prefix_cache_bytes = 0;
    s.memory = {};
    s.step_rows = 64;
    Thinker thinker(checkpoint(), s);
    std::vector<QuestionResult> out;
    for (const ChainCase& c : cases) out.push_back(thinker.one(c.body));
    EXPECT_EQ(thinker.answerer().counters().draft_rows, 0U);
    return out;
  }
  // Every case by itself, in this setting, gives `want`.
  static void expect_plain(const std::vector<ChainCase>& cases, const std::vector<QuestionResult>& want,
                           Thinker& thinker) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      EXPECT_TRUE(same_answer(thinker.one(cases[i].body), want[i])) << cases[i].name;
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Golden, Drafting, testing::ValuesIn(drafted_cases()), golden_case_name);

std::size_t longest_chain(const std::vector<QuestionResult>& results) {
  std::size_t longest = 0;
  for (const QuestionResult& r : results) longest = std::max(longest, r.chain.size());
  return longest;
}

// The plain chains are long enough, closed and open, for what follows to mean something.
TEST_P(Drafting, PlainChainsAreWorthDrafting) {
  const auto cases = chain_cases(checkpoint());
  const auto results = plain(cases, setting());
  EXPECT_GT(longest_chain(results), 20U);
  const auto closed = [](const QuestionResult& r) { return r.closed; };
  EXPECT_TRUE(std::any_of(results.begin(), results.end(), closed));
  EXPECT_FALSE(std::all_of(results.begin(), results.end(), closed));
  Setting s = setting();
  s.limits.fixed_block = true;
  Thinker thinker(checkpoint(), s);
  expect_plain(cases, results, thinker);
  const auto& counters = thinker.answerer().counters();
  ASSERT_GE(counters.accepted.size(), 3U) << "somewhere several drafts are right";
  EXPECT_GT(counters.accepted[0], counters.accepted[2]) << "and often none is";
}

TEST_P(Drafting, Complaint12_EveryBlockGivesThePlainChainsAndProbabilities) {
  const auto cases = thinking_cases(checkpoint());
  const auto want = plain(cases, setting());
  for (const int threads : {1, 3}) {
    for (int block = 1; block <= ops::kHeldRows; ++block) {
      SCOPED_TRACE(fmt::format("block {}, {} threads", block, threads));
      Setting s = setting(threads);
      s.limits.block = block;
      s.limits.fixed_block = true;
      Thinker thinker(checkpoint(), s);
      expect_plain(cases, want, thinker);
      EXPECT_EQ(thinker.answerer().counters().draft_rows > 0, block > 1);
      thinker.expect_no_leak();
    }
  }
}

TEST_P(Drafting, EveryCompanyGivesThePlainChains) {
  const auto cases = thinking_cases(checkpoint());
  const auto want = plain(cases, setting());
  Random rng(7);
  for (int block = 1; block <= ops::kHeldRows; ++block) {
    Setting s = setting(block % 2 == 0 ? 1 : 3);
    s.limits.block = block;
    s.limits.fixed_block = block != 6;
    s.limits.max_rows = block % 3 == 0 ? 3 : 8;
    SCOPED_TRACE(fmt::format("block {}, {} rows", block, s.limits.max_rows));
    Thinker thinker(checkpoint(), s);
    for (int order = 0; order < 2; ++order) {
      std::vector<std::size_t> places(cases.size());
      std::iota(places.begin(), places.end(), 0);
      for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[rng.below(i)]);
      std::vector<Json> bodies;
      for (const std::size_t p : places) bodies.push_back(cases[p].body);
      const auto outcomes = thinker.batch(bodies);
      for (std::size_t i = 0; i < places.size(); ++i) {
        ASSERT_FALSE(outcomes[i].error) << outcomes[i].error->what();
        EXPECT_TRUE(same_answer(outcomes[i].questions[0], want[places[i]])) << cases[places[i]].name;
      }
    }
    thinker.expect_no_leak();
  }
}

TEST_P(Drafting, EveryWeightTypeGivesItsOwnPlainChains) {
  auto cases = thinking_cases(checkpoint());
  std::erase_if(cases, [](const ChainCase& c) { return c.body["options"].value("max_think", 0) < 40; });
  ASSERT_GT(cases.size(), 5U);
  std::vector<std::vector<QuestionResult>> seen;
  for (const ops::WeightType type :
       {ops::WeightType::q8, ops::WeightType::q4, ops::WeightType::q4tp, ops::WeightType::f8_e4m3}) {
    Setting s = setting();
    s.type = type;
    const auto want = plain(cases, s);
    EXPECT_GT(longest_chain(want), 8U);
    for (const auto& other : seen) EXPECT_NE(other[0].probs, want[0].probs) << "the type has no effect";
    seen.push_back(want);
    for (const int block : {2, 3, 5, 8}) {
      SCOPED_TRACE(fmt::format("type {}, block {}", ops::weight_type_name(type), block));
      s.runner.threads = block % 2 == 0 ? 1 : 3;
      s.limits.block = block;
      s.limits.fixed_block = true;
      Thinker thinker(checkpoint(), s);
      expect_plain(cases, want, thinker);
      EXPECT_GT(thinker.answerer().counters().draft_rows, 0U);
    }
  }
}

TEST_P(Drafting, EveryCacheTypeGivesItsOwnPlainChains) {
  const auto cases = thinking_cases(checkpoint());
  for (const ops::KvType kv : {ops::KvType::bf16, ops::KvType::q8}) {
    Setting s = setting();
    s.kv = kv;
    const auto want = plain(cases, s);
    for (const int block : {2, 4, 7}) {
      SCOPED_TRACE(fmt::format("cache type {}, block {}", static_cast<int>(kv), block));
      s.limits.block = block;
      s.limits.fixed_block = true;
      Thinker thinker(checkpoint(), s);
      expect_plain(cases, want, thinker);
    }
  }
}

// What drafts see, and how many rows a step takes, is a matter of speed.
TEST_P(Drafting, DraftMemoryAndStepsChangeNoBits) {
  const auto cases = thinking_cases(checkpoint());
  const auto want = plain(cases, setting());
  const hybrid::DraftMemory memories[] = {{1, 0, ops::KvType::q8},
                                          {1, 1, ops::KvType::f32},
                                          {63, 65, ops::KvType::bf16},
                                          {64, 0, ops::KvType::q8},
                                          {1 << 20, 0, ops::KvType::f32}};
  for (const hybrid::DraftMemory& memory : memories) {
    for (const int step_rows : {3, 8, 64}) {
      SCOPED_TRACE(fmt::format("window {} sinks {} step {}", memory.window, memory.sinks, step_rows));
      Setting s = setting();
      s.memory = memory;
      s.step_rows = step_rows;
      s.limits.block = 5;
      s.limits.fixed_block = true;
      Thinker thinker(checkpoint(), s);
      expect_plain(cases, want, thinker);
      EXPECT_GT(thinker.answerer().counters().draft_rows, 0U);
      thinker.expect_no_leak();
    }
  }
}

// A drafter of no use, even of no numbers, costs time only.
TEST_P(Drafting, Complaint10_ARuinedDrafterChangesNoBits) {
  const auto cases = thinking_cases(checkpoint());
  const auto want = plain(cases, setting());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const float value : {0.0F, 1e30F, -1.0F, nan}) {
    Setting s = setting();
    s.limits.block = 8;
    s.limits.fixed_block = true;
    Thinker thinker(checkpoint(), s, load_drafted(checkpoint(), s, [&](auto&, hybrid::Drafter& drafter) {
                      std::fill(drafter.mask_embed.begin(), drafter.mask_embed.end(), value);
                    }));
    expect_plain(cases, want, thinker);
    const auto& counters = thinker.answerer().counters();
    EXPECT_GT(counters.draft_rows, 0U);
    EXPECT_GT(counters.accepted[0] * 10, counters.cycles * 9)
        << "what such a drafter says is nearly always wrong";
    thinker.expect_no_leak();
  }
}

// States of many pages, so that drafts' pages fall out of the window, at prompts of every length around the
// borders of pages and chunks; first cold, then from what an earlier prompt left.
TEST_P(Drafting, Complaint03_KeptPrefixesAndDraftsTogetherChangeNoBits) {
  std::vector<ChainCase> cases;
  std::string words;
  for (int i = 0; i < 120; ++i) words += fmt::format("parcel {} late ", i);
  for (int i = 0; i < 12; ++i) {
    for (int n = 0; n < 1 + 5 * (i % 2); ++n) words += " x";
    cases.push_back({fmt::format("state {}", i),
                     {{"state", words},
                      {"questions", {{"q", {{"type", "noul"}, {"instructions", fmt::format("Is {}?", i)}}}}},
                      {"options", {{"max_think", 24}}}},
                     {}});
  }
  const auto want = plain(cases, setting());
  EXPECT_GT(want[0].encoded.prompt.size(), 400U);
  EXPECT_GT(longest_chain(want), 8U);
  for (int block = 1; block <= 4; ++block) {
    for (const bool drafter : {false, true}) {
      for (const std::int64_t window : {std::int64_t{64}, std::int64_t{512}}) {
        SCOPED_TRACE(fmt::format("block {}, drafter {}, window {}", block, drafter, window));
        Setting s = setting();
        s.drafter = drafter;
        s.memory.window = window;
        s.limits.block = block;
        s.limits.fixed_block = true;
        Thinker thinker(checkpoint(), s);
        expect_plain(cases, want, thinker);
        expect_plain(cases, want, thinker);
        EXPECT_GT(thinker.answerer().counters().reused_tokens, 12U * 384U) << "the second time starts far in";
        thinker.expect_no_leak();
      }
    }
  }
}

// The reference drafts with exact keys and values of the whole past. Its first cycle tries a pad, which must
// have been wrong; and it always runs three mask rows, where near the end of a budget there are fewer here.
TEST_P(Drafting, AcceptedTokensAreTheReferences) {
  Setting s = setting();
  s.memory = {std::int64_t{1} << 40, 0, ops::KvType::f32};
  s.limits.block = 4;
  s.limits.fixed_block = true;
  Thinker thinker(checkpoint(), s);
  std::size_t compared = 0, several = 0;
  for (const ChainCase& c : chain_cases(checkpoint())) {
    SCOPED_TRACE(c.name);
    const QuestionResult got = thinker.one(c.body);
    const auto want = c.golden["accepted"].get<std::vector<int>>();
    ASSERT_EQ(got.chain, c.golden["chain"].get<std::vector<std::int32_t>>());
    if (!want.empty()) {
      ASSERT_EQ(want[0], 1);
    }
    std::int64_t left = c.body["options"].value("max_think", 0);
    for (std::size_t i = 0; i < want.size() && left >= 4; ++i) {
      ASSERT_LT(i, got.accepted.size());
      ASSERT_EQ(got.accepted[i], want[i]) << "cycle " << i;
      left -= want[i];
      ++compared;
      several += want[i] > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(compared, 200U);
  EXPECT_GT(several, 20U);
}

TEST_P(Drafting, CountersAddUp) {
  const auto cases = chain_cases(checkpoint());
  for (const int block : {1, 3, 8}) {
    Setting s = setting();
    s.limits.block = block;
    s.limits.fixed_block = true;
    s.limits.prefix_cache_bytes = 0;
    Thinker thinker(checkpoint(), s);
    std::vector<Json> bodies;
    for (const ChainCase& c : cases) bodies.push_back(c.body);
    std::uint64_t tokens = 0, cycles = 0;
    std::vector<std::uint64_t> by_size;
    for (const auto& outcome : thinker.batch(bodies)) {
      const QuestionResult& q = outcome.questions[0];
      EXPECT_EQ(std::accumulate(q.accepted.begin(), q.accepted.end(), std::size_t{0}), q.chain.size());
      tokens += q.chain.size();
      cycles += q.accepted.size();
      for (const int j : q.accepted) {
        ASSERT_GE(j, 1);
        ASSERT_LE(j, block);
        by_size.resize(std::max(by_size.size(), static_cast<std::size_t>(j)));
        ++by_size[static_cast<std::size_t>(j) - 1];
      }
    }
    const auto& counters = thinker.answerer().counters();
    EXPECT_EQ(counters.thought_tokens, tokens);
    EXPECT_EQ(counters.cycles, cycles);
    EXPECT_EQ(counters.accepted, by_size);
    std::uint64_t sum = 0;
    for (std::size_t j = 1; j <= by_size.size(); ++j) sum += j * by_size[j - 1];
    EXPECT_EQ(sum, tokens);
    // Rows of the engine: prompts and read-outs, a certain row a cycle, and the drafts that were fed.
    const engine::Counters& engine = thinker.engine().counters();
    EXPECT_EQ(engine.draft_rows, counters.draft_rows);
    EXPECT_GE(engine.rows, counters.prefill_tokens + cycles);
    EXPECT_LE(engine.rows, counters.prefill_tokens + cycles + counters.draft_rows);
    if (block == 1) {
      EXPECT_EQ(engine.rows, counters.prefill_tokens + tokens);
    }
  }
}

// ---- drafters that do not belong -----------------------------------------------------------------------

TEST(DraftingAlone, Complaint13_DraftsAreNotAskedOfAModelWithoutADrafter) {
  Setting s;
  s.runner = best_runner();
  s.drafter = false;
  s.limits.block = 8;
  s.limits.fixed_block = true;
  Thinker thinker("tiny-d", s);
  EXPECT_FALSE(thinker.engine().can_draft());
  const auto cases = chain_cases("tiny-d");
  for (const ChainCase& c : cases) {
    EXPECT_EQ(thinker.one(c.body).chain, c.golden["chain"].get<std::vector<std::int32_t>>()) << c.name;
  }
  EXPECT_EQ(thinker.answerer().counters().draft_rows, 0U);
  const engine::Sequence sequence = thinker.engine().new_sequence();
  const engine::DraftJob job{&sequence, 1};
  EXPECT_THROW(thinker.engine().draft({&job, 1}), Error);
}

TEST(DraftingAlone, Complaint13_ADrafterOfAnotherModelIsRefusedByName) {
  const Runner runner = best_runner();
  const std::shared_ptr<ops::Backend> backend = make_backend(runner);
  for (const std::string& base : drafted_checkpoints()) {
    const auto config = hybrid::Config::parse(read_text(golden_folder(base) / "config.json"));
    for (const std::string& other : drafted_checkpoints()) {
      if (other == base) {
        EXPECT_NO_THROW(golden_drafter(other, config, *backend));
        continue;
      }
      try {
        golden_drafter(other, config, *backend);
        FAIL() << other << " drafts for " << base;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_file);
        EXPECT_THAT(error.what(), testing::HasSubstr("drafter_k4.safetensors"));
        EXPECT_THAT(error.what(), testing::Not(testing::HasSubstr("\n")));
      }
    }
  }
  const auto odd = hybrid::Config::parse(read_text(golden_folder("tiny-d") / "config.json"));
  try {
    golden_drafter("tiny-a", odd, *backend);
    FAIL() << "keys of 12 and values of 16 entries cannot be drafted for";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
  }
}

}  // namespace
}  // namespace ponder::test
