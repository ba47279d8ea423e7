// The number of candidates a cycle feeds, against machines and drafters that are made up: the best one is
// found and kept to, a useless drafter is left alone, and neither depends on luck.
#include "decide/block_choice.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "base/random.hpp"

namespace ponder::decide {
namespace {

// A machine whose steps take what a table says, and a drafter whose i-th draft is right with probability
// right[i] where those before it were.
struct World {
  std::function<double(int)> step, draft;  // milliseconds by rows
  std::vector<double> right;

  double expected_tokens(int block) const {
    double tokens = 1, all = 1;
    for (int i = 0; i + 1 < block; ++i) tokens += all *= right[static_cast<std::size_t>(i)];
    return tokens;
  }
  double time(int chains, int block) const {
    return step(chains * block) + (block > 1 ? draft(chains * (block - 1)) : 0.0);
  }
  double rate(int chains, int block) const { return chains * expected_tokens(block) / time(chains, block); }
  int best(int chains, int most) const {
    int best = 1;
    for (int block = 2; block <= most; ++block) {
      if (rate(chains, block) > rate(chains, best)) best = block;
    }
    return best;
  }
};

struct Thought {
  std::vector<int> blocks;  // chosen, cycle by cycle
  double tokens = 0, milliseconds = 0;
  double rate() const { return tokens / milliseconds; }
  int count(int block, std::size_t from) const {
    return static_cast<int>(
        std::count(blocks.begin() + static_cast<std::ptrdiff_t>(from), blocks.end(), block));
  }
};

// Cycles as ChainCycles runs them: a step of all candidates, then mask rows for as many as were chosen.
Thought think(BlockChoice& choice, const World& world, int chains, int cycles, std::uint64_t seed) {
  Random rng(seed);
  std::vector<DraftRecord> records;
  for (int i = 0; i < chains; ++i) records.push_back(choice.new_record());
  std::vector<const DraftRecord*> all;
  for (const DraftRecord& r : records) all.push_back(&r);
  Thought run;
  int block = 1;
  for (int c = 0; c < cycles; ++c) {
    const double step = world.step(chains * block);
    choice.steps().add(chains * block, step);
    run.milliseconds += step;
    for (DraftRecord& record : records) {
      int right = 0;
      while (right + 1 < block && rng.uniform(0, 1) < world.right[static_cast<std::size_t>(right)]) ++right;
      record.add(block - 1, right);
      run.tokens += 1 + right;
    }
    block = choice.choose(all);
    run.blocks.push_back(block);
    if (block > 1) {
      const double draft = world.draft(chains * (block - 1));
      choice.drafts().add(chains * (block - 1), draft);
      run.milliseconds += draft;
    }
  }
  return run;
}

double flat(int) {
  return 10;
}

// ---- times
// -------------------------------------------------------------------------------------------------

TEST(StepTimes, BetweenKnownSizesTheEstimateIsLinear) {
  StepTimes times;
  EXPECT_TRUE(times.empty());
  EXPECT_EQ(times.estimate(3), 0);
  times.add(2, 10);
  times.add(6, 18);
  EXPECT_FALSE(times.empty());
  EXPECT_EQ(times.estimate(2), 10);
  EXPECT_EQ(times.estimate(6), 18);
  EXPECT_DOUBLE_EQ(times.estimate(3), 12);
  EXPECT_DOUBLE_EQ(times.estimate(5), 16);
  EXPECT_EQ(times.estimate(1), 10) << "below the smallest: the smallest's";
  EXPECT_GE(times.estimate(12), 18) << "more rows are never faster";
  EXPECT_LE(times.estimate(12), 36) << "nor dearer than in proportion";
}

// One disturbed step among many changes nothing.
TEST(StepTimes, OneOutlierDoesNotMatter) {
  StepTimes times;
  for (int i = 0; i < 20; ++i) {
    times.add(4, 10);
    EXPECT_EQ(times.estimate(4), 10) << i;
    if (i % 6 == 5) {
      times.add(4, 500);
      EXPECT_LT(times.estimate(4), 20) << i;
    }
  }
}

// A machine that became slower is seen to be.
TEST(StepTimes, FollowsAMachineThatChanges) {
  StepTimes times;
  for (int i = 0; i < 50; ++i) times.add(4, 10);
  for (int i = 0; i < 50; ++i) times.add(4, 30);
  EXPECT_GT(times.estimate(4), 20);
  for (int i = 0; i < 50; ++i) times.add(4, 10);
  EXPECT_LT(times.estimate(4), 20);
}

// ---- records
// -----------------------------------------------------------------------------------------------

TEST(DraftRecord, ExpectsWhatItSaw) {
  DraftRecord record(8);
  const double before = record.expected_tokens(3);
  EXPECT_EQ(record.expected_tokens(0), 1);
  for (int i = 0; i < 200; ++i) record.add(3, 3);
  EXPECT_GT(record.expected_tokens(3), 3.8);
  EXPECT_GT(record.expected_tokens(3), before);
  EXPECT_LE(record.expected_tokens(3), 4);
  for (int i = 0; i < 400; ++i) record.add(3, 0);
  EXPECT_LT(record.expected_tokens(3), 1.1);
  EXPECT_GE(record.expected_tokens(3), 1);
  // The first draft always, the second never.
  for (int i = 0; i < 400; ++i) record.add(3, 1);
  EXPECT_NEAR(record.expected_tokens(1), 2, 0.1);
  EXPECT_NEAR(record.expected_tokens(3), 2, 0.2);
}

TEST(DraftRecord, MoreDraftsNeverPromiseFewerTokens) {
  Random rng(2);
  DraftRecord record(8);
  for (int i = 0; i < 300; ++i) {
    const int tried = static_cast<int>(rng.below(8));
    record.add(tried, static_cast<int>(rng.below(static_cast<std::uint64_t>(tried) + 1)));
    for (int drafts = 1; drafts < 8; ++drafts) {
      EXPECT_GE(record.expected_tokens(drafts), record.expected_tokens(drafts - 1));
      EXPECT_LE(record.expected_tokens(drafts), record.expected_tokens(drafts - 1) + 1);
    }
  }
}

// ---- choice
// ------------------------------------------------------------------------------------------------

TEST(BlockChoice, AFixedBlockIsAlwaysTaken) {
  for (const int most : {1, 4, 8}) {
    BlockChoice choice(most, true);
    const Thought run = think(choice, {flat, flat, std::vector<double>(8, 0.0)}, 2, 50, 1);
    EXPECT_EQ(run.count(most, 0), 50);
  }
}

TEST(BlockChoice, WithoutDraftsThereIsOneCandidate) {
  BlockChoice choice(1, false);
  const Thought run = think(choice, {flat, flat, std::vector<double>(8, 1.0)}, 3, 50, 1);
  EXPECT_EQ(run.count(1, 0), 50);
}

// Over random machines and drafters: once settled, what is chosen earns within a few percent of what the best
// block would, trials included.
TEST(BlockChoice, EarnsWhatTheBestBlockWould) {
  Random rng(9);
  std::vector<int> bests(9, 0);
  for (int trial = 0; trial < 60; ++trial) {
    World world;
    const double base = rng.uniform(1, 50), row = base * rng.uniform(0, 0.3), mask = rng.uniform(0.3, 1.2);
    world.step = [=](int rows) { return base + row * rows; };
    world.draft = [=](int rows) { return mask * (base + row * rows); };
    double right = rng.uniform(0.2, 1);
    for (int i = 0; i < 8; ++i) {
      world.right.push_back(right);
      right *= rng.uniform(0.85, 1);
    }
    const int chains = 1 + static_cast<int>(rng.below(8)), most = 2 + static_cast<int>(rng.below(7));
    const int best = world.best(chains, most);
    ++bests[static_cast<std::size_t>(best)];
    BlockChoice choice(most, false);
    think(choice, world, chains, 400, rng.next_u64());
    const Thought run = think(choice, world, chains, 1500, rng.next_u64());
    // By the expected worth of each choice: luck with the drafts themselves is no matter.
    double tokens = 0, time = 0;
    for (const int block : run.blocks) {
      ASSERT_GE(block, 1);
      ASSERT_LE(block, most);
      tokens += chains * world.expected_tokens(block);
      time += world.time(chains, block);
    }
    EXPECT_GT(tokens / time, 0.93 * world.rate(chains, best))
        << "trial " << trial << " best " << best << " of " << most << " chosen " << run.count(best, 0);
  }
  EXPECT_GT(bests[1], 0);
  EXPECT_GT(*std::max_element(bests.begin() + 4, bests.end()), 0) << "long blocks pay somewhere";
}

// A drafter that is always wrong: plain decoding within a few cycles, and hardly a trial afterwards.
TEST(BlockChoice, Complaint10_AUselessDrafterIsLeftAlone) {
  for (const int chains : {1, 4, 8}) {
    World world;
    world.step = [](int rows) { return 20.0 + 0.5 * rows; };
    world.draft = world.step;
    world.right.assign(8, 0.0);
    BlockChoice choice(8, false);
    const Thought run = think(choice, world, chains, 2000, 5);
    const auto plain = run.count(1, 0);
    EXPECT_GT(run.count(1, 40), 1960 * 95 / 100) << chains;
    EXPECT_LT(plain, 2000) << "it was tried";
    EXPECT_GT(run.rate(), 0.95 * world.rate(chains, 1)) << chains;
  }
}

// Drafts that are always right where more rows cost nothing: the longest block, soon.
TEST(BlockChoice, AFlawlessDrafterGetsTheLongestBlock) {
  World world{flat, [](int) { return 2.0; }, std::vector<double>(8, 1.0)};
  BlockChoice choice(8, false);
  const Thought run = think(choice, world, 2, 500, 5);
  EXPECT_GT(run.count(8, 60), 440 * 9 / 10);
}

// A drafter that turns bad, and good again, is followed.
TEST(BlockChoice, FollowsADrafterThatChanges) {
  World good{flat, [](int) { return 3.0; }, std::vector<double>(8, 0.95)};
  World bad = good;
  bad.right.assign(8, 0.0);
  BlockChoice choice(6, false);
  think(choice, good, 2, 200, 1);
  EXPECT_GT(think(choice, bad, 2, 1000, 2).count(1, 200), 800 * 9 / 10);
  const Thought again = think(choice, good, 2, 3000, 3);
  EXPECT_GT(again.count(6, 1500), 1500 * 8 / 10) << "trials found out";
}

}  // namespace
}  // namespace ponder::decide
