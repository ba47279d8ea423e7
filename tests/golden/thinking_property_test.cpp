// Random requests: whatever ran before, was kept, was cancelled, failed or ran out of time, the next answers
// are those of a fresh program, and nothing is held that nobody asked to keep.
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <rapidcheck.h>

#include "base/random.hpp"
#include "golden/drafted.hpp"

namespace ponder::test {
namespace {

// A model that does something of the test's before each step.
class WatchedModel final : public models::Model {
 public:
  explicit WatchedModel(std::unique_ptr<models::Model> model) : model_(std::move(model)) {}

  std::function<void()> before_step;

  const models::StateLayout& state_layout() const override { return model_->state_layout(); }
  int hidden_size() const override { return model_->hidden_size(); }
  int vocab_size() const override { return model_->vocab_size(); }
  int max_rows() const override { return model_->max_rows(); }
  ops::ConstRows forward(std::span<const models::Segment> segments,
                         const models::LayerObserver* observer) override {
    if (before_step) before_step();
    return model_->forward(segments, observer);
  }
  void settle(const models::Segment& segment, int accepted) override { model_->settle(segment, accepted); }
  ops::ConstRows draft(std::span<const models::DraftSegment> segments) override {
    return model_->draft(segments);
  }
  void logits(ops::ConstRows hidden, int rows, ops::Rows out) override { model_->logits(hidden, rows, out); }
  void argmax(ops::ConstRows hidden, int rows, std::int64_t limit, const std::uint64_t* banned,
              std::int32_t* ids) override {
    model_->argmax(hidden, rows, limit, banned, ids);
  }

 private:
  std::unique_ptr<models::Model> model_;
};

// A request of one to four questions over one of a few states, which begin alike for a while.
Json random_body(Random& rng, bool deadline = false) {
  const char* const words[] = {"late", "parcel", "refund", "of", "14.50", "and", "again", "\n"};
  std::string state;
  Random story(rng.below(3));  // the same beginning for the same story
  const std::uint64_t length = rng.below(160);
  for (std::uint64_t i = 0; i < length; ++i) state += std::string(words[story.below(8)]) + " ";
  Json body = {{"state", state}};
  const std::uint64_t questions = 1 + rng.below(4);
  for (std::uint64_t q = 0; q < questions; ++q) {
    const std::string n = std::to_string(rng.below(5));
    const Json kinds[] = {
        {{"type", "noul"}, {"instructions", "Is it " + n + "?"}},
        {{"type", "choice"}, {"criteria", {{"a" + n, nullptr}, {"b", "the second"}, {"c", nullptr}}}},
        {{"type", "score"}, {"criteria", {"low", "middle", "high" + n}}}};
    body["questions"]["q" + std::to_string(q)] = kinds[rng.below(3)];
  }
  Json& options = body["options"];
  options["think"] = rng.below(5) != 0;
  options["max_think"] = rng.below(4) == 0 ? rng.below(4) : rng.below(30);
  if (rng.below(3) == 0) options["nothink_threshold"] = rng.uniform(0.3, 1);
  if (deadline) options["deadline_ms"] = 1 + rng.below(20);
  return body;
}

std::vector<Json> random_batch(Random& rng) {
  std::vector<Json> out;
  for (std::uint64_t n = 1 + rng.below(3); n > 0; --n) out.push_back(random_body(rng));
  return out;
}

Setting random_setting(Random& rng) {
  Setting s;
  s.runner = best_runner(1 + static_cast<int>(rng.below(3)));
  s.drafter = rng.below(4) != 0;
  s.memory.window = rng.below(2) == 0 ? 30 : 512;
  s.step_rows = rng.below(3) == 0 ? 9 : 64;
  s.limits.max_rows = 1 + static_cast<int>(rng.below(8));
  s.limits.block = 1 + static_cast<int>(rng.below(8));
  s.limits.fixed_block = rng.below(2) == 0;
  if (rng.below(3) == 0) s.limits.prefix_cache_bytes = rng.below(40) << 16;
  return s;
}

bool same_outcomes(const std::vector<decide::RequestOutcome>& a,
                   const std::vector<decide::RequestOutcome>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].error.has_value() != b[i].error.has_value()) return false;
    if (a[i].error) continue;
    if (a[i].questions.size() != b[i].questions.size()) return false;
    for (std::size_t q = 0; q < a[i].questions.size(); ++q) {
      if (!same_answer(a[i].questions[q], b[i].questions[q])) return false;
    }
  }
  return true;
}

// Without drafter, without kept prefixes, a request at a time.
class Plain {
 public:
  explicit Plain(const std::string& checkpoint) : thinker_(checkpoint, setting()) {}
  std::vector<decide::RequestOutcome> answers(const std::vector<Json>& bodies) {
    std::vector<decide::RequestOutcome> out;
    for (const Json& body : bodies) out.push_back(thinker_.batch({body})[0]);
    return out;
  }

 private:
  static Setting setting() {
    Setting s;
    s.runner = best_runner(1);
    s.drafter = false;
    s.limits.prefix_cache_bytes = 0;
    s.limits.max_rows = 1;
    return s;
  }
  Thinker thinker_;
};

class Thinking : public testing::TestWithParam<std::string> {
 protected:
  // A thinker whose steps the test can watch.
  struct Watched {
    Watched(const std::string& checkpoint, const Setting& s)
        : Watched(checkpoint, s, std::make_unique<WatchedModel>(load_drafted(checkpoint, s))) {}
    Watched(const std::string& checkpoint, const Setting& s, std::unique_ptr<WatchedModel> owned)
        : model(owned.get()), thinker(checkpoint, s, std::move(owned)) {}
    WatchedModel* model;
    Thinker thinker;
  };
};
const auto kName = [](const auto& test) { return std::string("tiny_") + test.param[5]; };
INSTANTIATE_TEST_SUITE_P(Golden, Thinking, testing::Values("tiny-a"), kName);

class NanWeights : public Thinking {};
INSTANTIATE_TEST_SUITE_P(Golden, NanWeights, testing::ValuesIn(drafted_checkpoints()), kName);

// Complaint 5 too: what is kept is used, and seen to be.
TEST_P(Thinking, Complaint05_KeptPrefixesChangeNoAnswerOfRandomHistories) {
  Plain plain(GetParam());
  std::uint64_t reused = 0;
  EXPECT_TRUE(rc::check([&] {
    Random rng(*rc::gen::arbitrary<std::uint32_t>());
    const Setting s = random_setting(rng);
    Thinker thinker(GetParam(), s);
    for (int round = 0; round < 3; ++round) {
      const std::vector<Json> bodies = random_batch(rng);
      RC_ASSERT(same_outcomes(thinker.batch(bodies), plain.answers(bodies)));
      RC_ASSERT(thinker.answerer().prefixes().stats().bytes <= s.limits.prefix_cache_bytes);
    }
    reused += thinker.answerer().counters().reused_tokens;
    thinker.expect_no_leak();
    RC_ASSERT(!HasFailure());
  }));
  EXPECT_GT(reused, 64U);
}

// Complaint 16 and 20: cancelled before any step of prompts, chains or read-outs; what ran before and what
// runs after is untouched.
TEST_P(Thinking, Complaint16_CancellingAtAnyStepLeavesNoTrace) {
  Plain plain(GetParam());
  int cancelled = 0, finished = 0;
  EXPECT_TRUE(rc::check([&] {
    Random rng(*rc::gen::arbitrary<std::uint32_t>());
    Watched w(GetParam(), random_setting(rng));
    const std::vector<Json> bodies = random_batch(rng), others = random_batch(rng);
    if (rng.below(2) == 0) w.thinker.batch(others);
    std::stop_source source;
    int left = static_cast<int>(rng.below(40));
    bool after_stop = false;
    w.model->before_step = [&] {
      after_stop = after_stop || source.stop_requested();
      if (left-- == 0) source.request_stop();
    };
    try {
      RC_ASSERT(same_outcomes(w.thinker.batch(bodies, source.get_token()), plain.answers(bodies)));
      ++finished;
    } catch (const Error& error) {
      RC_ASSERT(error.kind() == ErrorKind::cancelled);
      RC_ASSERT(source.stop_requested());
      ++cancelled;
    }
    RC_ASSERT(!after_stop);  // not one step more
    w.model->before_step = {};
    if (rng.below(2) == 0) w.thinker.expect_no_leak();
    RC_ASSERT(same_outcomes(w.thinker.batch(bodies), plain.answers(bodies)));
    RC_ASSERT(same_outcomes(w.thinker.batch(others), plain.answers(others)));
    w.thinker.expect_no_leak();
    RC_ASSERT(!HasFailure());
  }));
  EXPECT_GT(cancelled, 20);
  EXPECT_GT(finished, 0);
}

// The same from another thread, at a moment nobody chose.
TEST_P(Thinking, CancellingFromAnotherThreadLeavesNoTrace) {
  Plain plain(GetParam());
  EXPECT_TRUE(rc::check([&] {
    Random rng(*rc::gen::arbitrary<std::uint32_t>());
    Thinker thinker(GetParam(), random_setting(rng));
    const std::vector<Json> bodies = random_batch(rng);
    std::stop_source source;
    const auto pause = std::chrono::microseconds(rng.below(3000));
    std::jthread canceller([&source, pause] {
      std::this_thread::sleep_for(pause);
      source.request_stop();
    });
    try {
      RC_ASSERT(same_outcomes(thinker.batch(bodies, source.get_token()), plain.answers(bodies)));
    } catch (const Error& error) {
      RC_ASSERT(error.kind() == ErrorKind::cancelled);
    }
    canceller.join();
    RC_ASSERT(same_outcomes(thinker.batch(bodies), plain.answers(bodies)));
    thinker.expect_no_leak();
    RC_ASSERT(!HasFailure());
  }));
}

// A step that throws, be it for lack of room or anything else.
TEST_P(Thinking, AStepThatFailsLeavesNoTrace) {
  Plain plain(GetParam());
  EXPECT_TRUE(rc::check([&] {
    Random rng(*rc::gen::arbitrary<std::uint32_t>());
    Watched w(GetParam(), random_setting(rng));
    const std::vector<Json> bodies = random_batch(rng);
    int left = static_cast<int>(rng.below(30));
    w.model->before_step = [&] {
      if (left-- == 0) throw Error(ErrorKind::no_memory, "no room for this step");
    };
    try {
      w.thinker.batch(bodies);
    } catch (const Error& error) {
      RC_ASSERT(error.kind() == ErrorKind::no_memory);
    }
    w.model->before_step = {};
    RC_ASSERT(same_outcomes(w.thinker.batch(bodies), plain.answers(bodies)));
    w.thinker.expect_no_leak();
    RC_ASSERT(!HasFailure());
  }));
}

// Out of time or not, an answer is one of two: the one without thinking, or the one with all of it.
TEST_P(Thinking, DeadlinesGiveOneOfTwoAnswers) {
  Plain plain(GetParam());
  int hurried = 0;
  EXPECT_TRUE(rc::check([&] {
    Random rng(*rc::gen::arbitrary<std::uint32_t>());
    Watched w(GetParam(), random_setting(rng));
    Json body = random_body(rng, true);
    body["options"]["think"] = true;
    body["options"]["max_think"] = 5 + rng.below(25);
    Json unhurried = body, direct = body;
    unhurried["options"]["deadline_ms"] = 1000000;
    direct["options"].erase("deadline_ms");
    direct["options"]["think"] = false;
    const auto full = plain.answers({unhurried})[0].questions, none = plain.answers({direct})[0].questions;
    // Time that runs out at a step of the test's choice, however fast the machine is.
    int left = static_cast<int>(rng.below(25));
    w.model->before_step = [&] {
      if (left-- == 0) std::this_thread::sleep_for(std::chrono::milliseconds(25));
    };
    const auto got = w.thinker.batch({body})[0];
    RC_ASSERT(!got.error);
    for (std::size_t q = 0; q < full.size(); ++q) {
      const auto& answer = got.questions[q];
      RC_ASSERT(answer.nothink_probs.has_value());
      RC_ASSERT(*answer.nothink_probs == none[q].probs);
      if (answer.deadline) {
        ++hurried;
        RC_ASSERT(!answer.thought);
        RC_ASSERT(answer.probs == none[q].probs);
        RC_ASSERT(answer.chain.size() <= full[q].chain.size());
        RC_ASSERT(std::equal(answer.chain.begin(), answer.chain.end(), full[q].chain.begin()));
      } else {
        RC_ASSERT(same_answer(answer, full[q]));
      }
    }
    w.model->before_step = {};
    RC_ASSERT(same_outcomes(w.thinker.batch({unhurried}), plain.answers({unhurried})));
    w.thinker.expect_no_leak();
    RC_ASSERT(!HasFailure());
  }));
  EXPECT_GT(hurried, 0);
}

// ---- numbers that are none
// ---------------------------------------------------------------------------------

void expect_one_line(const std::optional<Error>& error) {
  ASSERT_TRUE(error);
  EXPECT_EQ(error->kind(), ErrorKind::internal);
  EXPECT_THAT(error->what(), testing::HasSubstr("question 'q"));
  EXPECT_THAT(error->what(), testing::Not(testing::HasSubstr("\n")));
}

// One token's embedding is no number: requests that hold it fail, their neighbours are answered as ever.
TEST_P(NanWeights, AnEmbeddingFailsOnlyTheRequestThatMeetsIt) {
  if (GetParam() == "tiny-b") GTEST_SKIP() << "its embedding is the head of every request";
  Setting s;
  s.runner = best_runner(2);
  s.limits.block = 4;
  s.limits.fixed_block = true;
  Random rng(3);
  std::vector<Json> good;
  for (int i = 0; i < 6; ++i) good.push_back(random_body(rng));
  Json bad = good[0], bad_direct = good[1];
  for (Json* body : {&bad, &bad_direct}) {
    (*body)["state"] = (*body)["state"].get<std::string>() + " QQ zz 77 ## %%";
    (*body)["options"]["think"] = body == &bad;
    (*body)["options"]["max_think"] = 20;
  }
  // A token that only the bad requests' prompts hold.
  std::set<std::int32_t> fine;
  std::optional<std::int32_t> token;
  std::vector<decide::RequestOutcome> want;
  {
    Thinker clean(GetParam(), s);
    want = clean.batch(good);
    for (const auto& outcome : want) {
      for (const auto& q : outcome.questions) {
        for (const auto* ids : {&q.encoded.prompt, &q.encoded.remainder, &q.chain}) {
          fine.insert(ids->begin(), ids->end());
        }
      }
    }
    const auto seen = clean.batch({bad, bad_direct});
    const auto& prompt = seen[0].questions[0].encoded.prompt;
    const auto& other = seen[1].questions[0].encoded.prompt;
    for (const std::int32_t id : prompt) {
      if (!fine.contains(id) && std::find(other.begin(), other.end(), id) != other.end()) token = id;
    }
  }
  ASSERT_TRUE(token);
  const auto checkpoint = formats::open_model_folder(golden_folder(GetParam()));
  const formats::TensorView& stored = checkpoint.at("model.embed_tokens.weight");
  std::vector<float> values = formats::float_values(stored);
  const auto width = static_cast<std::size_t>(stored.shape[1]);
  std::fill_n(values.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(*token) * width), width,
              std::numeric_limits<float>::quiet_NaN());
  Thinker thinker(GetParam(), s, load_drafted(GetParam(), s, [&](hybrid::Weights& weights, auto&) {
                    ops::WeightData data;
                    data.rows = stored.shape[0];
                    data.cols = stored.shape[1];
                    data.data = reinterpret_cast<const std::byte*>(values.data());
                    weights.embedding = make_backend(s.runner)->make_weight(data, ops::WeightType::f32);
                  }));
  for (int round = 0; round < 2; ++round) {
    const auto got = thinker.batch({good[0], bad, good[1], good[2], bad_direct, good[3], good[4], good[5]});
    expect_one_line(got[1].error);
    expect_one_line(got[4].error);
    EXPECT_TRUE(same_outcomes({got[0], got[2], got[3], got[5], got[6], got[7]}, want));
  }
  thinker.expect_no_leak();
}

TEST_P(NanWeights, EverywhereFailEveryRequestWithOneLineEach) {
  Setting s;
  s.runner = best_runner(2);
  Thinker thinker(GetParam(), s, load_drafted(GetParam(), s, [](hybrid::Weights& weights, auto&) {
                    weights.final_norm[0] = std::numeric_limits<float>::quiet_NaN();
                  }));
  Random rng(4);
  for (int i = 0; i < 10; ++i) {
    for (const auto& outcome : thinker.batch(random_batch(rng))) expect_one_line(outcome.error);
  }
  thinker.expect_no_leak();
}

}  // namespace
}  // namespace ponder::test
