// What an answer must not depend on: company, order, threads, step size, what ran before.
#include <string>
#include <vector>

#include "golden/support.hpp"

namespace ponder::test {
namespace {

// Every instruction set on one checkpoint, the best one on all.
std::vector<GoldenCase> selected_cases() {
  std::vector<GoldenCase> out;
  const cpu::InstructionSet best = cpu::best(cpu::detect_cpu_features());
  for (const GoldenCase& c : cpu_cases()) {
    if (c.checkpoint == "tiny-a" || c.runner.isa == best) out.push_back(c);
  }
  return out;
}

class Independence : public testing::TestWithParam<GoldenCase> {};
INSTANTIATE_TEST_SUITE_P(Golden, Independence, testing::ValuesIn(selected_cases()), golden_case_name);

// Nine questions over one state, some of them thinking ones.
std::vector<std::pair<std::string, Json>> nine_questions() {
  std::vector<std::pair<std::string, Json>> out;
  for (int i = 0; i < 3; ++i) {
    const std::string n = std::to_string(i);
    out.emplace_back("noul" + n, Json{{"type", "noul"}, {"instructions", "Is it number " + n + "?"}});
    out.emplace_back("choice" + n,
                     Json{{"type", "choice"},
                          {"instructions", "Which of them, " + n + "?"},
                          {"criteria", {{"a" + n, nullptr}, {"b", "the second"}, {"c", nullptr}}}});
    out.emplace_back("score" + n, Json{{"type", "score"}, {"criteria", {"low", "middle", "high" + n}}});
  }
  return out;
}

Json body_of(const std::vector<std::pair<std::string, Json>>& questions, const Json& options) {
  Json body = {{"state", "The parcel was eleven days late. The customer asks for a refund of 14.50."}};
  for (const auto& [name, question] : questions) body["questions"][name] = question;
  body["options"] = options;
  return body;
}

void expect_same(const decide::QuestionResult& a, const decide::QuestionResult& b) {
  EXPECT_EQ(a.probs, b.probs) << "the same bits";
  EXPECT_EQ(a.chain, b.chain);
  EXPECT_EQ(a.nothink_probs, b.nothink_probs);
  EXPECT_EQ(a.closed, b.closed);
}

const std::vector<Json> kOptions = {{{"think", false}}, {{"max_think", 12}, {"nothink_threshold", 0.9}}};

TEST_P(Independence, AQuestionAloneOrWithEightOthers) {
  Decider decider(GetParam().checkpoint, GetParam().runner);
  Decider wide(GetParam().checkpoint, GetParam().runner, {.max_rows = 9});
  const auto questions = nine_questions();
  for (const Json& options : kOptions) {
    const auto together = wide.one(body_of(questions, options));
    const auto in_groups = decider.one(body_of(questions, options));
    for (std::size_t i = 0; i < questions.size(); ++i) {
      SCOPED_TRACE(questions[i].first);
      const auto alone = decider.one(body_of({questions[i]}, options));
      expect_same(alone[0], together[i]);
      expect_same(alone[0], in_groups[i]);
    }
  }
}

// Complaint 42: rows are independent, so the order of questions is nothing.
TEST_P(Independence, Complaint42_TheOrderOfQuestionsChangesNoBits) {
  Decider decider(GetParam().checkpoint, GetParam().runner);
  auto questions = nine_questions();
  const auto forward = decider.one(body_of(questions, kOptions[1]));
  std::reverse(questions.begin(), questions.end());
  const auto backward = decider.one(body_of(questions, kOptions[1]));
  for (std::size_t i = 0; i < questions.size(); ++i)
    expect_same(forward[i], backward[questions.size() - 1 - i]);
}

TEST_P(Independence, ThreadsAndBatchesChangeNoBits) {
  const Json body = body_of(nine_questions(), kOptions[1]);
  Runner runner = GetParam().runner;
  runner.threads = 1;
  Decider one(GetParam().checkpoint, runner);
  const auto want = one.one(body);
  for (const int threads : {2, 5}) {
    runner.threads = threads;
    Decider many(GetParam().checkpoint, runner);
    const auto got = many.one(body);
    for (std::size_t i = 0; i < want.size(); ++i) expect_same(got[i], want[i]);
    const auto batch = many.batch({body_of({nine_questions()[4]}, kOptions[0]), body, body});
    for (std::size_t i = 0; i < want.size(); ++i) {
      expect_same(batch[1].questions[i], want[i]);
      expect_same(batch[2].questions[i], want[i]);
    }
  }
}

// Complaint 1 and 3: the same state with another question first, then again: as if cold.
TEST_P(Independence, Complaint01_EarlierRequestsLeaveNoTrace) {
  Decider decider(GetParam().checkpoint, GetParam().runner);
  const auto questions = nine_questions();
  const auto cold = decider.one(body_of({questions[2]}, kOptions[1]));
  decider.one(body_of({questions[1]}, kOptions[1]));
  decider.one(body_of(questions, kOptions[0]));
  const auto warm = decider.one(body_of({questions[2]}, kOptions[1]));
  expect_same(cold[0], warm[0]);
  // Only what is kept for the next prompt is left, and it can be let go of.
  EXPECT_GT(decider.answerer().prefixes().stats().snapshots, 0U);
  decider.answerer().forget_prefixes();
  EXPECT_EQ(decider.engine().page_stats().in_use, 0U);
  EXPECT_EQ(decider.engine().draft_stats().in_use, 0U);
  EXPECT_EQ(decider.engine().state_stats().in_use, 0U);
}

// Complaint 55: asking twice gives the same bits.
TEST_P(Independence, Complaint55_TheSameRequestTwiceIsTheSame) {
  Decider decider(GetParam().checkpoint, GetParam().runner);
  const Json body = body_of(nine_questions(), kOptions[1]);
  const auto first = decider.one(body);
  const auto second = decider.one(body);
  for (std::size_t i = 0; i < first.size(); ++i) expect_same(first[i], second[i]);
}

// Complaint 5: sharing is visible in the counters, not only promised.
TEST_P(Independence, Complaint05_TheSharedPrefixIsComputedOnce) {
  Decider decider(GetParam().checkpoint, GetParam().runner);
  const auto questions = nine_questions();
  const std::vector<std::pair<std::string, Json>> eight(questions.begin(), questions.begin() + 8);
  const auto results = decider.one(body_of(eight, kOptions[0]));
  std::uint64_t alone = 0;
  std::int64_t charged = 0;
  for (const auto& r : results) {
    alone += r.encoded.prompt.size() + decider.encoder().empty_think().size() + r.encoded.remainder.size();
    charged += r.prompt_tokens;
  }
  const auto& counters = decider.answerer().counters();
  EXPECT_GT(counters.shared_tokens, 0U);
  EXPECT_EQ(counters.shared_tokens % 7, 0U) << "seven questions skip the same prefix";
  EXPECT_EQ(counters.prefill_tokens + counters.shared_tokens, alone);
  EXPECT_EQ(counters.prefill_tokens, decider.engine().counters().rows);
  std::uint64_t prompts = 0;
  for (const auto& r : results) prompts += r.encoded.prompt.size();
  EXPECT_EQ(static_cast<std::uint64_t>(charged) + counters.shared_tokens, prompts);
}

// Complaint 2: a state that only grows, turn by turn, is never fed again from the start, wherever it ends.
TEST_P(Independence, Complaint02_AStateThatGrowsIsFedOnce) {
  Decider decider(GetParam().checkpoint, GetParam().runner);
  for (const std::size_t first : {400U, 411U, 425U, 437U, 450U}) {
    decider.answerer().forget_prefixes();
    std::string state;
    while (state.size() < first) state += "User: it was late again, and broken. ";
    state.resize(first);
    std::vector<std::int32_t> before;
    for (int turn = 0; turn < 5; ++turn) {
      Json body = body_of({nine_questions()[static_cast<std::size_t>(turn)]}, kOptions[0]);
      body["state"] = state;
      const std::uint64_t reused = decider.answerer().counters().reused_tokens;
      const auto results = decider.one(body);
      const std::vector<std::int32_t>& ids = results[0].encoded.prompt;
      const auto same = static_cast<std::uint64_t>(
          std::mismatch(before.begin(), before.end(), ids.begin(), ids.end()).first - before.begin());
      // All but a page and a word of what both turns begin with.
      EXPECT_GE(decider.answerer().counters().reused_tokens - reused + ops::kPageRows + 8, same)
          << first << ", turn " << turn;
      if (turn > 0) {
        EXPECT_GT(decider.answerer().counters().reused_tokens, reused) << first << ", turn " << turn;
      }
      Decider cold(GetParam().checkpoint, GetParam().runner);
      expect_same(results[0], cold.one(body)[0]);
      before = ids;
      state += turn % 2 == 0 ? "er than told. Agent: we are sorry for that."
                             : " User: so pay me back, please. Now";
    }
  }
}

// One request's trouble is its own.
TEST_P(Independence, ARequestThatIsTooLongDoesNotTouchItsNeighbours) {
  Decider decider(GetParam().checkpoint, GetParam().runner, {.max_len = 400});
  const Json good = body_of({nine_questions()[0]}, kOptions[1]);
  Json bad = good;
  std::string words;
  for (int i = 0; i < 500; ++i) words += "late parcel ";
  bad["state"] = words;
  const auto alone = decider.one(good);
  const auto outcomes = decider.batch({good, bad, good});
  ASSERT_TRUE(outcomes[1].error);
  EXPECT_EQ(outcomes[1].error->kind(), ErrorKind::too_large);
  EXPECT_THAT(outcomes[1].error->what(), testing::HasSubstr("noul0"));
  ASSERT_FALSE(outcomes[0].error);
  ASSERT_FALSE(outcomes[2].error);
  expect_same(outcomes[0].questions[0], alone[0]);
  expect_same(outcomes[2].questions[0], alone[0]);
}

TEST_P(Independence, CancellingLeavesTheEngineClean) {
  Decider decider(GetParam().checkpoint, GetParam().runner);
  const Json body = body_of(nine_questions(), kOptions[1]);
  const auto before = decider.one(body);
  decider.answerer().forget_prefixes();
  std::stop_source source;
  source.request_stop();
  const auto request = decide::parse_request(decide::parse_json(body.dump()));
  try {
    decider.answerer().answer_batch({&request, 1}, source.get_token());
    FAIL() << "was not cancelled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::cancelled);
  }
  EXPECT_EQ(decider.engine().page_stats().in_use, 0U);
  EXPECT_EQ(decider.engine().state_stats().in_use, 0U);
  const auto after = decider.one(body);
  for (std::size_t i = 0; i < before.size(); ++i) expect_same(before[i], after[i]);
}

// A deadline that has passed before thinking starts: the no-think answer, marked.
TEST_P(Independence, ADeadlineFallsBackToTheNoThinkAnswer) {
  Decider decider(GetParam().checkpoint, GetParam().runner);
  const auto question = nine_questions()[1];
  const auto long_body = [&](const Json& options) {
    Json body = body_of({question}, options);
    std::string words;
    for (int i = 0; i < 1000; ++i) words += "late parcel ";
    body["state"] = words;  // reading it alone takes more than a millisecond
    return body;
  };
  const auto direct = decider.one(long_body({{"think", false}}));
  const auto hurried = decider.one(long_body({{"max_think", 3000}, {"deadline_ms", 1}}));
  EXPECT_TRUE(hurried[0].deadline);
  EXPECT_FALSE(hurried[0].thought);
  EXPECT_EQ(hurried[0].probs, direct[0].probs);
  const auto relaxed = decider.one(body_of({question}, {{"max_think", 5}, {"deadline_ms", 1000000}}));
  EXPECT_FALSE(relaxed[0].deadline);
  EXPECT_TRUE(relaxed[0].thought);
}

}  // namespace
}  // namespace ponder::test
