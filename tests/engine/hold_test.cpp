// Rows on probation: after settle() a sequence is, to the last bit, one that was only fed the rows that
// count, wherever it stood, however many were held, and whatever forks and cancelled calls came between.
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "engine/engine.hpp"
#include "formats/safetensors.hpp"
#include "models/golden_model.hpp"

namespace ponder::engine {
namespace {

using Ids = std::vector<std::int32_t>;

struct Subject {
  std::string checkpoint;
  test::Runner runner;
};

std::string subject_name(const testing::TestParamInfo<Subject>& info) {
  std::string name = info.param.checkpoint + "_" + info.param.runner.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

// Every instruction set on one checkpoint, the best one on all.
std::vector<Subject> subjects() {
  std::vector<Subject> out;
  const cpu::InstructionSet best = cpu::best(cpu::detect_cpu_features());
  for (const char* checkpoint : {"tiny-a", "tiny-b", "tiny-c", "tiny-d"}) {
    for (const test::Runner& runner : test::all_runners()) {
      if (runner.reference) continue;
      if (std::string(checkpoint) == "tiny-a" || runner.isa == best) out.push_back({checkpoint, runner});
    }
  }
  return out;
}

class Hold : public testing::TestWithParam<Subject> {
 protected:
  void SetUp() override { start({}); }

  void start(const Options& options, int max_rows = 64) {
    const std::filesystem::path folder = test::golden_folder(GetParam().checkpoint);
    const auto config = hybrid::Config::parse(test::read_text(folder / "config.json"));
    const std::shared_ptr<ops::Backend> backend = test::make_backend(GetParam().runner);
    hybrid::Weights weights =
        hybrid::load_weights(config, formats::open_model_folder(folder), *backend, std::nullopt);
    hybrid::Drafter drafter;
    const auto file = folder / "drafter_k4.safetensors";
    if (std::filesystem::exists(file)) {
      drafter = hybrid::load_drafter(config, formats::open_safetensors(file), *backend, std::nullopt);
    }
    const hybrid::DraftMemory memory{40, 1, ops::KvType::q8};  // a window that moves over page borders
    auto model = std::make_unique<hybrid::HybridModel>(config, std::move(weights), std::move(drafter), memory,
                                                       backend, max_rows);
    model_ = model.get();
    engine_.reset();
    engine_ = std::make_unique<Engine>(std::move(model), options);
  }

  Ids random_ids(std::size_t count) {
    Ids ids(count);
    const auto vocab = static_cast<std::uint64_t>(model_->vocab_size());
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(rng_.below(vocab));
    return ids;
  }

  // Hidden states of all rows.
  std::vector<float> feed(Sequence& sequence, std::span<const std::int32_t> ids, bool hold = false) {
    std::vector<int> wanted(ids.size());
    std::iota(wanted.begin(), wanted.end(), 0);
    const auto width = static_cast<std::size_t>(model_->hidden_size());
    std::vector<float> out(ids.size() * width);
    const ExtendJob job{&sequence, ids, wanted, {out.data(), static_cast<std::int64_t>(width)}, hold};
    engine_->extend({&job, 1});
    return out;
  }

  std::vector<float> drafted(const Sequence& sequence) {
    if (!engine_->can_draft()) return {};
    const DraftJob job{&sequence, 3};
    const ops::ConstRows hidden = engine_->draft({&job, 1});
    std::vector<float> out;
    for (int r = 0; r < 3; ++r) out.insert(out.end(), hidden[r], hidden[r] + model_->hidden_size());
    return out;
  }

  // Everything of the recurrent block that a later row may read.
  std::vector<float> visible_state(const Sequence& sequence) const {
    const hybrid::Config& c = model_->config();
    const ops::DeltaShape shape = c.delta_shape();
    const ops::DeltaStateLayout at(shape);
    const auto open = static_cast<int>(sequence.size() % ops::kDeltaChunk);
    std::vector<float> out;
    for (std::size_t i = 0; i < c.layers.size(); ++i) {
      if (c.layers[i] != hybrid::LayerKind::delta) continue;
      const hybrid::LayerState& layer = model_->layer_state(static_cast<int>(i));
      const float* inputs = sequence.recurrent() + layer.conv;
      out.insert(out.end(), inputs, inputs + (c.linear_conv_kernel_dim - 1) * c.conv_dim());
      const float* s = sequence.recurrent() + layer.delta;
      const auto add = [&](std::size_t from, int count) {
        out.insert(out.end(), s + from, s + from + count);
      };
      add(at.matrix, shape.value_heads * shape.key_dim * shape.value_dim);
      const auto chunk = static_cast<std::size_t>(ops::kDeltaChunk);
      for (int n = 0; n < shape.key_heads * shape.key_dim; ++n) {
        add(at.open.keys + static_cast<std::size_t>(n) * chunk, open);
      }
      for (std::size_t h = 0; h < static_cast<std::size_t>(shape.value_heads); ++h) {
        add(at.open.values + h * chunk * static_cast<std::size_t>(shape.value_dim), open * shape.value_dim);
        add(at.open.decay + h * chunk, open);
        add(at.open.fade + h * chunk, open);
        if (open > 0) add(at.open.carry + h, 1);
      }
    }
    return out;
  }

  // Both sequences are the same, and stay so when they go on.
  void expect_twins(const Sequence& got, const Sequence& want, bool whole_pages) {
    ASSERT_EQ(got.size(), want.size());
    ASSERT_EQ(got.held(), 0);
    ASSERT_EQ(got.pages().size(), want.pages().size());
    ASSERT_TRUE(visible_state(got) == visible_state(want)) << "recurrent block";
    ASSERT_TRUE(drafted(got) == drafted(want)) << "mask rows";
    Sequence a = got.fork(), b = want.fork();
    // To the end of the page behind every row that may have been held: then all its bytes are visible.
    const auto to_border = static_cast<std::size_t>(2 * ops::kPageRows - got.size() % ops::kPageRows);
    const Ids more = random_ids(whole_pages ? to_border : 3);
    ASSERT_TRUE(feed(a, more) == feed(b, more)) << "later hidden states";
    ASSERT_TRUE(visible_state(a) == visible_state(b)) << "later recurrent block";
    ASSERT_TRUE(drafted(a) == drafted(b)) << "later mask rows";
    if (!whole_pages) return;
    const auto pages_a = a.pages(), pages_b = b.pages();
    for (std::size_t p = 0; p < pages_a.size(); ++p) {
      ASSERT_EQ(std::memcmp(pages_a[p], pages_b[p], model_->state_layout().page_bytes), 0) << "page " << p;
    }
  }

  void expect_nothing_in_use() const {
    EXPECT_EQ(engine_->page_stats().in_use, 0U);
    EXPECT_EQ(engine_->draft_stats().in_use, 0U);
    EXPECT_EQ(engine_->state_stats().in_use, 0U);
  }

  hybrid::HybridModel* model_ = nullptr;
  std::unique_ptr<Engine> engine_;
  Random rng_{11};
};
INSTANTIATE_TEST_SUITE_P(Golden, Hold, testing::ValuesIn(subjects()), subject_name);

// Complaint 10: a draft that is wrong at each position of the block.
TEST_P(Hold, Complaint10_EveryPlaceHeldCountAndAcceptedCount) {
  {
    std::vector<std::int64_t> places = {0, 1};
    for (const std::int64_t border : {32, 64, 96, 128}) {
      for (std::int64_t p = border - 9; p <= border + 1; ++p) places.push_back(p);
    }
    Sequence base = engine_->new_sequence();
    for (const std::int64_t place : places) {
      feed(base, random_ids(static_cast<std::size_t>(place - base.size())));
      for (int held = 1; held <= ops::kHeldRows; ++held) {
        const Ids ids = random_ids(static_cast<std::size_t>(held));
        for (int accepted = 0; accepted <= held; ++accepted) {
          SCOPED_TRACE(fmt::format("{} of {} rows at {}", accepted, held, place));
          const auto count = static_cast<std::size_t>(accepted);
          Sequence want = base.fork();
          const std::vector<float> rows = feed(want, std::span(ids).first(count));
          Sequence got = base.fork();
          std::vector<float> seen = feed(got, ids, true);
          EXPECT_EQ(got.held(), held);
          EXPECT_EQ(got.size(), place);
          seen.resize(rows.size());
          ASSERT_TRUE(seen == rows) << "hidden states of rows on probation";
          engine_->settle(got, accepted);
          expect_twins(got, want, held == ops::kHeldRows && accepted % 3 == 0 && place % 4 == 0);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
  expect_nothing_in_use();
}

// Long ways of held and plain rows, several sequences in a step, forks kept, dropped and gone on with, also
// of sequences that hold rows, and calls that are cancelled.
TEST_P(Hold, RandomWaysStayTwins) {
  {
    struct Pair {
      Sequence got, want;
    };
    std::vector<Pair> pairs;
    pairs.push_back({engine_->new_sequence(), engine_->new_sequence()});
    std::stop_source stopped;
    stopped.request_stop();
    for (int round = 0; round < 150 && !HasFatalFailure(); ++round) {
      SCOPED_TRACE(fmt::format("round {}", round));
      if (pairs.size() < 5 && rng_.below(3) == 0) {
        const Pair& from = pairs[rng_.below(pairs.size())];
        pairs.push_back({from.got.fork(), from.want.fork()});
      } else if (pairs.size() > 1 && rng_.below(6) == 0) {
        pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(rng_.below(pairs.size())));
      }
      std::vector<Ids> ids;
      std::vector<ExtendJob> jobs;
      for (const Pair& pair : pairs) {
        ids.push_back(random_ids(1 + rng_.below(pair.got.size() < 250 ? 8 : 2)));
      }
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        jobs.push_back({&pairs[i].got, ids[i], {}, {}, rng_.below(4) != 0});
      }
      if (rng_.below(5) == 0) {
        EXPECT_THROW(engine_->extend(jobs, stopped.get_token()), Error);
      }
      engine_->extend(jobs);
      std::vector<Pair> forks;  // of sequences with rows on probation, decided otherwise
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        Pair& pair = pairs[i];
        std::size_t accepted = ids[i].size();
        if (jobs[i].hold) {
          if (forks.empty() && rng_.below(3) == 0) {
            const std::size_t other = rng_.below(ids[i].size() + 1);
            forks.push_back({pair.got.fork(), pair.want.fork()});
            engine_->settle(forks[0].got, static_cast<int>(other));
            feed(forks[0].want, std::span(ids[i]).first(other));
          }
          accepted = rng_.below(ids[i].size() + 1);
          engine_->settle(pair.got, static_cast<int>(accepted));
        }
        feed(pair.want, std::span(ids[i]).first(accepted));
      }
      for (const Pair& pair : forks) expect_twins(pair.got, pair.want, false);
      const Pair& looked_at = pairs[rng_.below(pairs.size())];
      expect_twins(looked_at.got, looked_at.want, round % 8 == 0);
    }
  }
  expect_nothing_in_use();
}

// Rows on probation are one step's; with little room they wait for the next one.
TEST_P(Hold, SmallStepsTakeHeldRowsWhole) {
  start({}, 10);
  {
    std::vector<Sequence> got, want;
    std::vector<Ids> ids;
    std::vector<ExtendJob> jobs;
    for (int i = 0; i < 3; ++i) {
      got.push_back(engine_->new_sequence());
      want.push_back(engine_->new_sequence());
      const Ids start = random_ids(60);
      feed(got.back(), start);
      feed(want.back(), start);
      ids.push_back(random_ids(8));
    }
    const auto width = static_cast<std::size_t>(model_->hidden_size());
    std::vector<float> hidden(3 * 8 * width);
    const std::vector<int> wanted = {0, 1, 2, 3, 4, 5, 6, 7};
    for (std::size_t i = 0; i < 3; ++i) {
      jobs.push_back(
          {&got[i], ids[i], wanted, {hidden.data() + i * 8 * width, static_cast<std::int64_t>(width)}, true});
    }
    const std::uint64_t steps = engine_->counters().steps;
    engine_->extend(jobs);
    EXPECT_EQ(engine_->counters().steps - steps, 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      engine_->settle(got[i], 5);
      const std::vector<float> rows = feed(want[i], std::span(ids[i]).first(5));
      EXPECT_TRUE(std::equal(rows.begin(), rows.end(), jobs[i].hidden.data));
      expect_twins(got[i], want[i], false);
    }
  }
  expect_nothing_in_use();
}

// A call that is cancelled has taken pages for its rows; a fork that shares them shares nothing that is
// written later.
TEST_P(Hold, Complaint16_ForksAfterACancelledCallNeverSeeEachOther) {
  {
    std::stop_source stopped;
    stopped.request_stop();
    for (const bool hold : {false, true}) {
      Sequence left = engine_->new_sequence(), want_left = engine_->new_sequence();
      const Ids start = random_ids(62), one = random_ids(7), other = random_ids(7);
      feed(left, start);
      feed(want_left, start);
      const ExtendJob job{&left, one, {}, {}, hold};
      EXPECT_THROW(engine_->extend({&job, 1}, stopped.get_token()), Error);
      EXPECT_EQ(left.held(), 0);
      EXPECT_EQ(left.size(), 62);
      Sequence right = left.fork(), want_right = want_left.fork();
      feed(left, one, hold);
      feed(right, other, hold);
      if (hold) {
        engine_->settle(left, 7);
        engine_->settle(right, 6);
      }
      feed(want_left, one);
      feed(want_right, std::span(other).first(hold ? 6 : 7));
      expect_twins(left, want_left, true);
      expect_twins(right, want_right, true);
    }
  }
  expect_nothing_in_use();
}

// A cache that is full when rows come on probation: the sequence is as it was.
TEST_P(Hold, Complaint07_AFullCacheLeavesTheSequenceAsItWas) {
  Options options;
  options.cache_limit_bytes = 3 * model_->state_layout().page_bytes;
  start(options);
  {
    Sequence want = engine_->new_sequence(), got = engine_->new_sequence();
    const Ids ids = random_ids(60), more = random_ids(8);
    feed(want, ids);
    feed(got, ids);
    {
      Sequence other = engine_->new_sequence();
      feed(other, random_ids(1));
      try {
        feed(got, more, true);
        FAIL() << "a fourth page was found";
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::no_memory);
      }
      EXPECT_EQ(got.held(), 0);
      EXPECT_EQ(got.size(), 60);
    }
    feed(got, more, true);
    engine_->settle(got, 3);
    feed(want, std::span(more).first(3));
    EXPECT_TRUE(visible_state(got) == visible_state(want));
    EXPECT_TRUE(feed(got, std::span(more).first(1)) == feed(want, std::span(more).first(1)));
  }
  expect_nothing_in_use();
}

TEST_P(Hold, MisuseIsRefusedAndChangesNothing) {
  const auto refusal = [](auto&& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::internal);
      return error.what();
    }
    return "accepted";
  };
  {
    Sequence got = engine_->new_sequence(), want = engine_->new_sequence();
    const Ids ids = random_ids(30), held = random_ids(5), many = random_ids(ops::kHeldRows + 1);
    feed(got, ids);
    feed(want, ids);
    EXPECT_THAT(refusal([&] { engine_->settle(got, 1); }), testing::HasSubstr("1 of 0"));
    EXPECT_EQ(refusal([&] { engine_->settle(got, 0); }), "accepted") << "nothing to decide on";
    EXPECT_THAT(refusal([&] { feed(got, many, true); }), testing::HasSubstr("9 rows on probation"));
    EXPECT_EQ(got.held(), 0);
    const std::vector<float> hidden = feed(got, held, true);
    const std::vector<float> draft_state(got.recurrent(),
                                         got.recurrent() + model_->state_layout().recurrent_floats);
    EXPECT_THAT(refusal([&] { engine_->settle(got, 6); }), testing::HasSubstr("6 of 5"));
    EXPECT_THAT(refusal([&] { engine_->settle(got, -1); }), testing::HasSubstr("-1 of 5"));
    EXPECT_THAT(refusal([&] { feed(got, held); }), testing::HasSubstr("5 rows on probation"));
    EXPECT_THAT(refusal([&] { feed(got, held, true); }), testing::HasSubstr("5 rows on probation"));
    EXPECT_THAT(refusal([&] {
                  const DraftJob job{&got, 2};
                  engine_->draft({&job, 1});
                }),
                testing::HasSubstr("5 rows on probation"));
    EXPECT_EQ(got.held(), 5);
    EXPECT_EQ(got.size(), 30);
    EXPECT_TRUE(std::equal(draft_state.begin(), draft_state.end(), got.recurrent()));
    engine_->settle(got, 2);
    feed(want, std::span(held).first(2));
    expect_twins(got, want, true);
  }
  expect_nothing_in_use();
}

}  // namespace
}  // namespace ponder::engine
