#include "engine/engine.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/error.hpp"

namespace ponder::engine {
namespace {

// A model whose state is easy to predict: a page stores the ids of its positions, the recurrent block holds
// the sum of all ids and their count, and a hidden row is {id, position, sum so far, id at position 0}.
class LedgerModel final : public models::Model {
 public:
  explicit LedgerModel(int max_rows)
      : max_rows_(max_rows), out_(static_cast<std::size_t>(max_rows) * kHidden) {
    layout_.page_bytes = ops::kPageRows * sizeof(std::int32_t);
    layout_.recurrent_floats =
        2 + 2 * ops::kHeldRows;  // sum and count; then both behind each row on probation
  }
  const models::StateLayout& state_layout() const override { return layout_; }
  int hidden_size() const override { return kHidden; }
  int vocab_size() const override { return 1000; }
  int max_rows() const override { return max_rows_; }

  ops::ConstRows forward(std::span<const models::Segment> segments, const models::LayerObserver*) override {
    std::size_t row = 0;
    steps.emplace_back();
    for (const models::Segment& s : segments) {
      steps.back().push_back(static_cast<int>(s.ids.size()));
      EXPECT_EQ(s.recurrent[1], static_cast<float>(s.position)) << "state and position disagree";
      for (std::size_t i = 0; i < s.ids.size(); ++i) {
        const auto at = static_cast<std::size_t>(s.position) + i;
        reinterpret_cast<std::int32_t*>(s.pages[at / ops::kPageRows])[at % ops::kPageRows] = s.ids[i];
        float* sums = s.recurrent;
        if (s.hold) {
          const float* before = i == 0 ? s.recurrent : s.recurrent + 2 * i;
          sums = s.recurrent + 2 * (i + 1);
          sums[0] = before[0];
          sums[1] = before[1];
        }
        sums[0] += static_cast<float>(s.ids[i]);
        sums[1] += 1;
        float* out = out_.data() + kHidden * row++;
        out[0] = static_cast<float>(s.ids[i]);
        out[1] = static_cast<float>(at);
        out[2] = sums[0];
        out[3] = static_cast<float>(*reinterpret_cast<const std::int32_t*>(s.pages[0]));
      }
    }
    EXPECT_LE(row, static_cast<std::size_t>(max_rows_));
    return {out_.data(), kHidden};
  }
  void settle(const models::Segment& s, int accepted) override {
    std::copy_n(s.recurrent + 2 * accepted, 2, s.recurrent);
  }
  ops::ConstRows draft(std::span<const models::DraftSegment>) override { return {out_.data(), kHidden}; }
  void logits(ops::ConstRows, int, ops::Rows) override {}
  void argmax(ops::ConstRows, int, std::int64_t, const std::uint64_t*, std::int32_t*) override {}

  static constexpr int kHidden = 4;
  std::vector<std::vector<int>> steps;  // rows of each segment of each step

 private:
  int max_rows_;
  models::StateLayout layout_;
  std::vector<float> out_;
};

struct Fixture {
  explicit Fixture(int max_rows, const Options& options = {}) {
    auto owned = std::make_unique<LedgerModel>(max_rows);
    model = owned.get();
    engine = std::make_unique<Engine>(std::move(owned), options);
  }
  void feed(Sequence& sequence, const std::vector<std::int32_t>& ids) {
    const ExtendJob job{&sequence, ids, {}, {}};
    engine->extend({&job, 1});
  }
  // All hidden rows of feeding `ids`.
  std::vector<float> hidden(Sequence& sequence, const std::vector<std::int32_t>& ids) {
    std::vector<int> wanted(ids.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    std::vector<float> out(ids.size() * LedgerModel::kHidden);
    const ExtendJob job{&sequence, ids, wanted, {out.data(), LedgerModel::kHidden}};
    engine->extend({&job, 1});
    return out;
  }

  LedgerModel* model;
  std::unique_ptr<Engine> engine;
};

std::vector<std::int32_t> range(int from, int count) {
  std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), from);
  return ids;
}

TEST(Engine, CutsLongJobsIntoStepsAndReturnsTheWantedRows) {
  Fixture f(10);
  Sequence s = f.engine->new_sequence();
  const std::vector<std::int32_t> ids = range(100, 25);
  const std::vector<int> wanted = {0, 9, 10, 24};
  std::vector<float> out(wanted.size() * LedgerModel::kHidden);
  const ExtendJob job{&s, ids, wanted, {out.data(), LedgerModel::kHidden}};
  f.engine->extend({&job, 1});
  EXPECT_THAT(f.model->steps, testing::ElementsAre(testing::ElementsAre(10), testing::ElementsAre(10),
                                                   testing::ElementsAre(5)));
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const int row = wanted[i];
    const float* h = out.data() + i * LedgerModel::kHidden;
    EXPECT_EQ(h[0], static_cast<float>(100 + row));
    EXPECT_EQ(h[1], static_cast<float>(row));
    EXPECT_EQ(h[2], static_cast<float>((row + 1) * 100 + row * (row + 1) / 2));
  }
  EXPECT_EQ(s.size(), 25);
  EXPECT_EQ(f.engine->counters().steps, 3U);
  EXPECT_EQ(f.engine->counters().rows, 25U);
}

TEST(Engine, RunsSeveralSequencesInOneStep) {
  Fixture f(8);
  Sequence a = f.engine->new_sequence();
  Sequence b = f.engine->new_sequence();
  Sequence c = f.engine->new_sequence();
  const auto ids_a = range(1, 3);
  const auto ids_b = range(50, 7);
  const auto ids_c = range(900, 1);
  const std::vector<int> last_b = {6};
  const std::vector<int> last_c = {0};
  std::vector<float> out(2 * LedgerModel::kHidden);
  const ExtendJob jobs[] = {{&a, ids_a, {}, {}},
                            {&b, ids_b, last_b, {out.data(), LedgerModel::kHidden}},
                            {&c, ids_c, last_c, {out.data() + LedgerModel::kHidden, LedgerModel::kHidden}}};
  f.engine->extend(jobs);
  EXPECT_THAT(f.model->steps, testing::ElementsAre(testing::ElementsAre(3, 5), testing::ElementsAre(2, 1)));
  EXPECT_THAT(out, testing::ElementsAre(56, 6, 371, 50, 900, 0, 900, 900));
  EXPECT_EQ(a.size(), 3);
  EXPECT_EQ(b.size(), 7);
  EXPECT_EQ(c.size(), 1);
}

// Complaint 1: one prefix, two different continuations, each as if it had run alone.
TEST(Engine, Complaint01_ForksShareThePrefixAndNeverSeeEachOther) {
  Fixture f(64);
  Sequence prefix = f.engine->new_sequence();
  f.feed(prefix, range(0, 100));
  const std::size_t pages_before = f.engine->page_stats().in_use;
  Sequence left = prefix.fork();
  Sequence right = prefix.fork();
  EXPECT_EQ(f.engine->page_stats().in_use, pages_before) << "a fork copies nothing";

  const std::vector<float> l = f.hidden(left, range(500, 40));
  const std::vector<float> r = f.hidden(right, range(300, 40));
  Sequence cold_left = f.engine->new_sequence();
  f.feed(cold_left, range(0, 100));
  Sequence cold_right = f.engine->new_sequence();
  f.feed(cold_right, range(0, 100));
  EXPECT_EQ(l, f.hidden(cold_left, range(500, 40)));
  EXPECT_EQ(r, f.hidden(cold_right, range(300, 40)));

  EXPECT_EQ(left.pages()[0], prefix.pages()[0]) << "full pages stay shared";
  EXPECT_NE(left.pages()[1], prefix.pages()[1]) << "the open page was copied before writing";
  EXPECT_EQ(prefix.size(), 100);
  EXPECT_EQ(prefix.recurrent()[0], 99 * 100 / 2);
}

TEST(Engine, RestoreBringsASnapshotBack) {
  Fixture f(64);
  Sequence s = f.engine->new_sequence();
  f.feed(s, range(0, 70));
  const Sequence snapshot = s.fork();
  const std::vector<float> first = f.hidden(s, range(200, 30));
  EXPECT_EQ(s.size(), 100);
  s.restore(snapshot);
  EXPECT_EQ(s.size(), 70);
  EXPECT_EQ(f.hidden(s, range(200, 30)), first);
}

TEST(Engine, Complaint06_RewindingIsRefusedAndChangesNothing) {
  Fixture f(64);
  Sequence s = f.engine->new_sequence();
  f.feed(s, range(0, 70));
  EXPECT_NO_THROW(s.rewind(70));
  for (const int size : {69, 0, 71, -1}) {
    try {
      s.rewind(size);
      FAIL() << "rewound to " << size;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_THAT(error.what(), testing::HasSubstr("70"));
    }
  }
  EXPECT_EQ(s.size(), 70);
  EXPECT_EQ(s.recurrent()[0], 69 * 70 / 2);
}

TEST(Engine, IdsOutsideTheVocabularyAreRefusedBeforeAnyWork) {
  Fixture f(64);
  Sequence good = f.engine->new_sequence();
  Sequence bad = f.engine->new_sequence();
  const auto fine = range(0, 5);
  for (const std::int32_t id : {-1, 1000, 2147483647}) {
    const std::vector<std::int32_t> ids = {1, 2, id};
    const ExtendJob jobs[] = {{&good, fine, {}, {}}, {&bad, ids, {}, {}}};
    try {
      f.engine->extend(jobs);
      FAIL() << id;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::invalid_input);
      EXPECT_THAT(error.what(), testing::HasSubstr(std::to_string(id)));
      EXPECT_THAT(error.what(), testing::HasSubstr("1000"));
    }
    EXPECT_EQ(good.size(), 0);
    EXPECT_EQ(bad.size(), 0);
  }
  EXPECT_TRUE(f.model->steps.empty());
}

TEST(Engine, CancellingStopsBetweenStepsAndLeaksNothing) {
  Fixture f(8);
  {
    const Sequence base = f.engine->new_sequence();
    Sequence work = base.fork();
    std::stop_source source;
    source.request_stop();
    const auto ids = range(0, 100);
    const ExtendJob job{&work, ids, {}, {}};
    EXPECT_THROW(f.engine->extend({&job, 1}, source.get_token()), Error);
    EXPECT_EQ(base.size(), 0);
    EXPECT_EQ(base.recurrent()[1], 0);
  }
  EXPECT_TRUE(f.model->steps.empty());
  EXPECT_EQ(f.engine->page_stats().in_use, 0U);
  EXPECT_EQ(f.engine->state_stats().in_use, 0U);
}

// Complaint 7: caches have a byte budget; past it a request fails, not the process.
TEST(Engine, Complaint07_TheCacheLimitIsOneLineAndOtherSequencesLive) {
  Options options;
  options.cache_limit_bytes = 3 * ops::kPageRows * sizeof(std::int32_t);
  Fixture f(64, options);
  Sequence a = f.engine->new_sequence();
  f.feed(a, range(0, 128));
  {
    Sequence b = f.engine->new_sequence();
    try {
      f.feed(b, range(0, 65));
      FAIL() << "four pages do not fit three";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::no_memory);
    }
  }
  EXPECT_NO_THROW(f.feed(a, range(0, 64)));
}

// However a random history of feeding, forking, restoring and dropping goes, every sequence holds what it was
// fed and no block is left over.
TEST(Engine, RandomHistoriesKeepEverySequenceApart) {
  EXPECT_TRUE(rc::check([] {
    Fixture f(16);
    {
      struct Tracked {
        Sequence sequence;
        std::vector<std::int32_t> fed;
      };
      std::vector<Tracked> live;
      live.push_back({f.engine->new_sequence(), {}});
      const int actions = *rc::gen::inRange(1, 40);
      for (int a = 0; a < actions; ++a) {
        const auto who = *rc::gen::inRange<std::size_t>(0, live.size());
        switch (*rc::gen::inRange(0, 4)) {
          case 0:
            live.push_back({live[who].sequence.fork(), live[who].fed});
            break;
          case 1: {
            const auto from = *rc::gen::inRange<std::size_t>(0, live.size());
            live[who].fed = std::vector<std::int32_t>(live[from].fed);
            live[who].sequence.restore(live[from].sequence);
            break;
          }
          case 2:
            if (live.size() > 1) live.erase(live.begin() + static_cast<std::ptrdiff_t>(who));
            break;
          default: {
            const auto ids = *rc::gen::container<std::vector<std::int32_t>>(rc::gen::inRange(0, 1000));
            f.feed(live[who].sequence, ids);
            live[who].fed.insert(live[who].fed.end(), ids.begin(), ids.end());
          }
        }
      }
      for (const Tracked& t : live) {
        RC_ASSERT(t.sequence.size() == static_cast<std::int64_t>(t.fed.size()));
        const auto pages = t.sequence.pages();
        for (std::size_t i = 0; i < t.fed.size(); ++i) {
          const auto* page = reinterpret_cast<const std::int32_t*>(pages[i / ops::kPageRows]);
          RC_ASSERT(page[i % ops::kPageRows] == t.fed[i]);
        }
        RC_ASSERT(t.sequence.recurrent()[0] ==
                  static_cast<float>(std::accumulate(t.fed.begin(), t.fed.end(), 0)));
      }
    }
    RC_ASSERT(f.engine->page_stats().in_use == 0U);
    RC_ASSERT(f.engine->state_stats().in_use == 0U);
  }));
}

}  // namespace
}  // namespace ponder::engine
