// The store of prefixes against a plain list of what was put in: the longest beginning is found, the least
// recently used snapshot goes first, bytes stay within the budget, and a found sequence goes on as one that
// was fed everything.
#include "engine/prefix_store.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "base/error.hpp"
#include "base/random.hpp"
#include "models/golden_model.hpp"

namespace ponder::engine {
namespace {

using Ids = std::vector<std::int32_t>;
constexpr auto kPage = static_cast<std::size_t>(ops::kPageRows);

// Remembers every id: in its page, and a running mix of all of them in the recurrent block.
class MixModel final : public models::Model {
 public:
  MixModel() {
    layout_.page_bytes = kPage * sizeof(std::int32_t);
    layout_.recurrent_floats = 2;
  }
  const models::StateLayout& state_layout() const override { return layout_; }
  int hidden_size() const override { return 1; }
  int vocab_size() const override { return 1000; }
  int max_rows() const override { return 256; }
  ops::ConstRows forward(std::span<const models::Segment> segments, const models::LayerObserver*) override {
    std::size_t row = 0;
    for (const models::Segment& s : segments) {
      for (std::size_t i = 0; i < s.ids.size(); ++i) {
        const std::size_t at = static_cast<std::size_t>(s.position) + i;
        reinterpret_cast<std::int32_t*>(s.pages[at / kPage])[at % kPage] = s.ids[i];
        s.recurrent[0] = mix(s.recurrent[0], s.ids[i]);
        out_[row++] = s.recurrent[0];
      }
    }
    return {out_.data(), 1};
  }
  void settle(const models::Segment&, int) override {}
  ops::ConstRows draft(std::span<const models::DraftSegment>) override { return {out_.data(), 1}; }
  void logits(ops::ConstRows, int, ops::Rows) override {}
  void argmax(ops::ConstRows, int, std::int64_t, const std::uint64_t*, std::int32_t*) override {}

  // Whole numbers below 2^24 / 1000: exact in float.
  static float mix(float before, std::int32_t id) {
    return static_cast<float>((static_cast<int>(before) * 31 + id + 1) % 16381);
  }

 private:
  models::StateLayout layout_;
  std::vector<float> out_ = std::vector<float>(256);
};

struct Fixture {
  explicit Fixture(std::uint64_t limit, const Options& options = {})
      : engine(std::make_unique<MixModel>(), options), store(engine, limit) {}

  Sequence fed(const Ids& ids) {
    Sequence sequence = engine.new_sequence();
    go_on(sequence, ids);
    return sequence;
  }
  void go_on(Sequence& sequence, std::span<const std::int32_t> ids) {
    const ExtendJob job{&sequence, ids, {}, {}};
    engine.extend({&job, 1});
  }
  void put(const Ids& ids) { store.put(ids, fed(ids)); }

  Engine engine;
  PrefixStore store;
};

// A sequence that holds exactly `ids`.
void expect_holds(const Sequence& sequence, std::span<const std::int32_t> ids) {
  ASSERT_EQ(sequence.size(), static_cast<std::int64_t>(ids.size()));
  float mixed = 0;
  const auto pages = sequence.pages();
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(reinterpret_cast<const std::int32_t*>(pages[i / kPage])[i % kPage], ids[i]);
    mixed = MixModel::mix(mixed, ids[i]);
  }
  ASSERT_EQ(sequence.recurrent()[0], mixed);
}

Ids pages_of(const std::vector<int>& contents) {
  Ids ids;
  for (const int c : contents) ids.insert(ids.end(), kPage, c);
  return ids;
}

// What the store should hold: page contents to the time of last use.
struct Ledger {
  std::map<Ids, int> used;
  std::uint64_t page_bytes, state_bytes;

  std::uint64_t bytes() const {
    std::set<Ids> pages;  // each beginning that ends at a page border is one page held
    for (const auto& [ids, time] : used) {
      for (std::size_t n = kPage; n <= ids.size(); n += kPage) {
        pages.insert(Ids(ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(n)));
      }
    }
    return pages.size() * page_bytes + used.size() * state_bytes;
  }
  std::map<Ids, int>::iterator oldest() {
    return std::min_element(used.begin(), used.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; });
  }
  std::map<Ids, int>::iterator longest(const Ids& ids) {
    auto best = used.end();
    for (auto it = used.begin(); it != used.end(); ++it) {
      if (it->first.size() > ids.size() || !std::equal(it->first.begin(), it->first.end(), ids.begin()))
        continue;
      if (best == used.end() || it->first.size() > best->first.size()) best = it;
    }
    return best;
  }
};

TEST(PrefixStore, RandomHistoriesMatchAPlainList) {
  EXPECT_TRUE(rc::check([] {
    const auto limit_pages = *rc::gen::inRange<std::uint64_t>(1, 30);
    std::uint64_t page_bytes = 0;
    {
      const Fixture probe(1);
      page_bytes = probe.engine.page_bytes();
    }
    const std::uint64_t limit = limit_pages * page_bytes;
    Fixture f(limit);
    Ledger ledger{{}, f.engine.page_bytes(), f.engine.state_bytes()};
    int clock = 0;
    std::uint64_t lookups = 0, hits = 0, reused = 0, dropped = 0;
    const int actions = *rc::gen::inRange(1, 60);
    for (int a = 0; a < actions; ++a) {
      // Few different pages, so that beginnings meet and part.
      const auto length = *rc::gen::inRange<std::size_t>(0, 6);
      Ids ids = pages_of(*rc::gen::container<std::vector<int>>(length, rc::gen::inRange(0, 2)));
      const int kind = *rc::gen::inRange(0, 8);
      if (kind < 4) {
        f.put(ids);
        if (ids.empty()) continue;
        ledger.used[ids] = ++clock;
        while (ledger.bytes() > limit && !ledger.used.empty()) {
          ledger.used.erase(ledger.oldest());
          ++dropped;
        }
      } else if (kind < 7) {
        // A prompt may go on past its last whole page, or differ in its last id.
        const auto extra = *rc::gen::element<std::size_t>(0, 0, 1, kPage - 1);
        ids.insert(ids.end(), extra, 2);
        if (!ids.empty() && *rc::gen::inRange(0, 3) == 0) ids.back() = 7;
        const Sequence found = f.store.find(ids);
        const auto want = ledger.longest(ids);
        ++lookups;
        if (want == ledger.used.end()) {
          RC_ASSERT(found.size() == 0);
        } else {
          want->second = ++clock;
          ++hits;
          reused += want->first.size();
          expect_holds(found, want->first);
          RC_ASSERT(!testing::Test::HasFatalFailure());
        }
      } else {
        RC_ASSERT(f.store.drop_oldest() == !ledger.used.empty());
        if (ledger.used.empty()) continue;
        ledger.used.erase(ledger.oldest());
        ++dropped;
      }
      const PrefixStoreStats& stats = f.store.stats();
      RC_ASSERT(stats.snapshots == ledger.used.size());
      RC_ASSERT(stats.bytes == ledger.bytes());
      RC_ASSERT(stats.bytes <= limit);
      RC_ASSERT(stats.lookups == lookups);
      RC_ASSERT(stats.hits == hits);
      RC_ASSERT(stats.reused_tokens == reused);
      RC_ASSERT(stats.dropped == dropped);
      // Only snapshots hold blocks.
      RC_ASSERT(f.engine.state_stats().in_use == ledger.used.size());
    }
    f.store.clear();
    RC_ASSERT(f.store.stats().bytes == 0U);
    RC_ASSERT(f.store.stats().snapshots == 0U);
    RC_ASSERT(f.engine.page_stats().in_use == 0U);
    RC_ASSERT(f.engine.state_stats().in_use == 0U);
  }));
}

// Complaint 1: one state, two questions, each gone on with from the same snapshot.
TEST(PrefixStore, Complaint01_ForksOfASnapshotNeverSeeEachOther) {
  Fixture f(1U << 20);
  const Ids state = pages_of({1, 2});
  f.put(state);
  Sequence left = f.store.find(state), right = f.store.find(state);
  f.go_on(left, pages_of({3}));
  f.go_on(right, pages_of({4}));
  expect_holds(left, pages_of({1, 2, 3}));
  expect_holds(right, pages_of({1, 2, 4}));
  expect_holds(f.store.find(state), state);
}

// Complaint 9: what counts is ids, not what they would read as; one id of the last page is enough.
TEST(PrefixStore, Complaint09_OneOtherIdIsAnotherPrefix) {
  Fixture f(1U << 20);
  const Ids ids = pages_of({1, 2, 3});
  f.put(Ids(ids.begin(), ids.begin() + kPage));
  f.put(ids);
  for (const std::size_t at : {kPage, 2 * kPage - 1, 2 * kPage, 3 * kPage - 1}) {
    Ids other = ids;
    other[at] = 99;
    expect_holds(f.store.find(other), std::span(ids).first(kPage));
  }
  Ids other = ids;
  other[0] = 99;
  EXPECT_EQ(f.store.find(other).size(), 0);
  EXPECT_EQ(f.store.find(std::span(ids).first(kPage - 1)).size(), 0) << "less than the shortest snapshot";
  EXPECT_EQ(f.store.find({}).size(), 0);
}

TEST(PrefixStore, OnlyWholePagesOfWhatWasFedAreKept) {
  Fixture f(1U << 20);
  const Ids ids = pages_of({1, 2});
  const Sequence sequence = f.fed(ids);
  f.store.put({}, f.engine.new_sequence());
  f.store.put(std::span(ids).first(kPage + 1), f.fed(Ids(ids.begin(), ids.begin() + kPage + 1)));
  f.store.put(std::span(ids).first(kPage), sequence);  // it was fed more
  f.store.put(pages_of({1, 2, 3}), sequence);          // and less
  EXPECT_EQ(f.store.stats().snapshots, 0U);
  Sequence held = sequence.fork();
  const Ids more = {5, 6};
  const ExtendJob job{&held, more, {}, {}, true};
  f.engine.extend({&job, 1});
  f.store.put(ids, held);
  EXPECT_EQ(f.store.stats().snapshots, 0U) << "rows on probation are not decided on";
  EXPECT_EQ(f.store.stats().bytes, 0U);
  f.store.put(ids, sequence);
  f.store.put(ids, sequence);
  EXPECT_EQ(f.store.stats().snapshots, 1U);
}

TEST(PrefixStore, WithoutABudgetNothingIsKept) {
  Fixture f(0);
  EXPECT_FALSE(f.store.enabled());
  f.put(pages_of({1}));
  EXPECT_EQ(f.store.find(pages_of({1})).size(), 0);
  EXPECT_EQ(f.store.stats().snapshots, 0U);
  EXPECT_EQ(f.engine.page_stats().in_use, 0U);
}

TEST(PrefixStore, ASnapshotLargerThanTheBudgetIsNotHeld) {
  const Fixture probe(1);
  Fixture f(2 * probe.engine.page_bytes() + probe.engine.state_bytes());
  f.put(pages_of({1, 2}));
  EXPECT_EQ(f.store.stats().snapshots, 1U);
  f.put(pages_of({1, 2, 3}));
  EXPECT_LE(f.store.stats().bytes, 2 * f.engine.page_bytes() + f.engine.state_bytes());
  EXPECT_EQ(f.store.find(pages_of({1, 2, 3})).size() % ops::kPageRows, 0);
}

// Complaint 7: a hundred different states stay within the budget.
TEST(PrefixStore, Complaint07_AHundredStatesStayWithinTheBudget) {
  const Fixture probe(1);
  const std::uint64_t one = 2 * probe.engine.page_bytes() + probe.engine.state_bytes();
  Fixture f(10 * one);
  for (int i = 0; i < 100; ++i) {
    f.put(pages_of({i, i + 200}));
    EXPECT_LE(f.store.stats().bytes, 10 * one);
  }
  EXPECT_EQ(f.store.stats().snapshots, 10U);
  EXPECT_EQ(f.store.stats().dropped, 90U);
  EXPECT_LE(f.engine.page_stats().allocated, 24U) << "room is used again";
  for (int i = 0; i < 100; ++i) EXPECT_EQ(f.store.find(pages_of({i, i + 200})).size() > 0, i >= 90) << i;
}

// A full cache takes from the store before it refuses, least recently used first, and refuses when nothing is
// left to take.
TEST(PrefixStore, AFullCacheReclaimsSnapshotsFirst) {
  const Fixture probe(1);
  Options options;
  options.cache_limit_bytes = 4 * kPage * sizeof(std::int32_t);
  Fixture f(1U << 20, options);
  f.put(pages_of({1}));
  f.put(pages_of({2}));
  f.put(pages_of({3}));
  EXPECT_EQ(f.store.find(pages_of({1})).size(), ops::kPageRows);  // 2 is now the oldest
  Sequence s = f.fed(pages_of({5, 6}));
  expect_holds(s, pages_of({5, 6}));
  EXPECT_EQ(f.store.stats().dropped, 1U);
  EXPECT_EQ(f.store.find(pages_of({2})).size(), 0);
  expect_holds(f.store.find(pages_of({1})), pages_of({1}));
  expect_holds(f.store.find(pages_of({3})), pages_of({3}));
  f.go_on(s, pages_of({7, 8}));
  expect_holds(s, pages_of({5, 6, 7, 8}));
  EXPECT_EQ(f.store.stats().snapshots, 0U);
  EXPECT_EQ(f.store.stats().bytes, 0U);
  try {
    f.go_on(s, pages_of({9}));
    FAIL() << "a fifth page was found";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::no_memory);
  }
}

TEST(PrefixStore, FullRecurrentStatesReclaimSnapshotsToo) {
  const Fixture probe(1);
  Options options;
  options.state_limit_bytes = 2 * probe.engine.state_bytes();
  Fixture f(1U << 20, options);
  f.put(pages_of({1}));
  std::optional<Sequence> a = f.engine.new_sequence(), b = f.engine.new_sequence();
  EXPECT_EQ(f.store.stats().snapshots, 0U);
  EXPECT_THROW(f.engine.new_sequence(), Error);
}

// Once the store is gone, its engine no longer asks it.
TEST(PrefixStore, AnEngineOutlivesItsStore) {
  Options options;
  options.cache_limit_bytes = kPage * sizeof(std::int32_t);
  Engine engine(std::make_unique<MixModel>(), options);
  {
    PrefixStore store(engine, 1U << 20);
    Sequence s = engine.new_sequence();
    const Ids ids = pages_of({1});
    const ExtendJob job{&s, ids, {}, {}};
    engine.extend({&job, 1});
    store.put(ids, s);
  }
  EXPECT_EQ(engine.page_stats().in_use, 0U);
  Sequence s = engine.new_sequence();
  const Ids ids = pages_of({1, 2});
  const ExtendJob job{&s, ids, {}, {}};
  EXPECT_THROW(engine.extend({&job, 1}), Error);
}

// ---- a real model
// ------------------------------------------------------------------------------------------

// Complaint 4: prefixes of every length around the borders of chunks and pages, fed in any pieces, found
// again and gone on with: the bits of feeding everything at once.
TEST(PrefixStore, Complaint04_GoingOnFromASnapshotGivesTheBitsOfFeedingAll) {
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-d"}) {
    SCOPED_TRACE(checkpoint);
    test::Runner runner;
    runner.isa = cpu::best(cpu::detect_cpu_features());
    auto owned = test::load_model(checkpoint, runner);
    const auto width = static_cast<std::size_t>(owned->hidden_size());
    const auto vocab = static_cast<std::uint64_t>(owned->vocab_size());
    Engine engine(std::move(owned));
    PrefixStore store(engine, 1U << 30);
    Random rng(5);
    Ids ids(5 * kPage);
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(rng.below(vocab));
    const auto feed = [&](Sequence& s, std::size_t to) {
      const auto from = static_cast<std::size_t>(s.size());
      std::vector<float> out(width);
      const std::vector<int> last = {static_cast<int>(to - from) - 1};
      const ExtendJob job{
          &s, std::span(ids).subspan(from, to - from), last, {out.data(), static_cast<std::int64_t>(width)}};
      engine.extend({&job, 1});
      return out;
    };
    Sequence fed = engine.new_sequence();  // in pieces, with a stop at each page border
    for (std::size_t border = kPage; border <= 4 * kPage; border += kPage) {
      while (static_cast<std::size_t>(fed.size()) < border) {
        feed(fed, std::min(border, static_cast<std::size_t>(fed.size()) + 1 + rng.below(40)));
      }
      store.put(std::span(ids).first(border), fed);
    }
    for (const std::size_t border : {kPage, 2 * kPage, 4 * kPage}) {
      for (std::size_t length = border + 1; length < border + kPage; length += 1 + rng.below(7)) {
        Sequence cold = engine.new_sequence();
        const std::vector<float> want = feed(cold, length);
        Sequence warm = store.find(std::span(ids).first(length));
        ASSERT_EQ(warm.size(), static_cast<std::int64_t>(border));
        ASSERT_EQ(feed(warm, length), want) << length;
      }
    }
    store.clear();
  }
}

}  // namespace
}  // namespace ponder::engine
