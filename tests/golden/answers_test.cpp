// Whole requests against the golden answers: probabilities, chains, budgets, thresholds, replies.
#include <string>
#include <vector>

#include "decide/answer.hpp"
#include "decide/json_write.hpp"
#include "golden/support.hpp"

namespace ponder::test {
namespace {

constexpr double kF32Tolerance = 2e-4;

class Answers : public testing::TestWithParam<GoldenCase> {};
INSTANTIATE_TEST_SUITE_P(Golden, Answers, testing::ValuesIn(cpu_cases()), golden_case_name);

void expect_like(const decide::QuestionResult& got, const Json& want, double tolerance) {
  EXPECT_LT(largest_difference(got.probs, want["probs"]), tolerance);
  EXPECT_EQ(got.thought, want["thought"].get<bool>());
  EXPECT_EQ(got.closed, want["closed"].get<bool>());
  EXPECT_EQ(got.chain, want["chain"].get<std::vector<std::int32_t>>());
  ASSERT_EQ(got.nothink_probs.has_value(), !want["nothink_probs"].is_null());
  if (got.nothink_probs) {
    EXPECT_LT(largest_difference(*got.nothink_probs, want["nothink_probs"]), tolerance);
  }
}

// The parts of a reply that do not depend on the model's name or the clock.
Json reply_of(Decider& decider, const Json& body, const decide::RequestOutcome& outcome) {
  const decide::Request request = decide::parse_request(decide::parse_json(body.dump()));
  std::vector<std::vector<double>> probs;
  for (const auto& q : outcome.questions) probs.push_back(q.probs);
  const decide::Value answers =
      decide::answers(request.questions, probs, decide::AnswerStyle::with_decimals(2));
  const std::string text = decide::answers_json_python(answers);
  Json reply;
  reply["answers"] = Json::parse(decide::write_json(answers));
  reply["output_tokens"] = decider.encoder().tokenizer().encode(text, text::SpecialTokens::parse).size();
  return reply;
}

TEST_P(Answers, Requests) {
  const Json golden = read_json(golden_folder(GetParam().checkpoint) / "cases-requests.json");
  ASSERT_GT(golden["cases"].size(), 20U);
  Decider decider(GetParam().checkpoint, GetParam().runner);
  for (const Json& c : golden["cases"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    std::vector<Json> bodies;
    for (const Json& r : c["requests"]) bodies.push_back(r["body"]);
    std::vector<decide::RequestOutcome> outcomes;
    if (c["max_rows"] == 8) {
      outcomes = decider.batch(bodies);
    } else {
      Decider small(GetParam().checkpoint, GetParam().runner, {.max_rows = c["max_rows"]});
      outcomes = small.batch(bodies);
    }
    for (std::size_t r = 0; r < bodies.size(); ++r) {
      ASSERT_FALSE(outcomes[r].error) << outcomes[r].error->what();
      std::size_t q = 0;
      for (const auto& [name, details] : c["requests"][r]["details"].items()) {
        SCOPED_TRACE(name);
        const decide::QuestionResult& got = outcomes[r].questions[q++];
        expect_like(got, details, kF32Tolerance);
        EXPECT_EQ(got.prompt_tokens, details["prompt_tokens"].get<std::int64_t>());
        EXPECT_EQ(got.encoded.prompt.size(), details["prompt_length"].get<std::size_t>());
        EXPECT_EQ(got.encoded.remainder.size(), details["remainder_length"].get<std::size_t>());
      }
      // Numbers too near a rounding edge may land on its other side.
      if (c["requests"][r]["round_margin"].get<double>() < kF32Tolerance) continue;
      const Json& want = c["requests"][r]["response"];
      const Json got = reply_of(decider, bodies[r], outcomes[r]);
      EXPECT_EQ(got["answers"], want["answers"]);
      EXPECT_EQ(got["output_tokens"], want["usage"]["output_tokens"]);
    }
  }
}

TEST_P(Answers, Chains) {
  const Json golden = read_json(golden_folder(GetParam().checkpoint) / "cases-chains.json");
  ASSERT_GT(golden["cases"].size(), 40U);
  Decider decider(GetParam().checkpoint, GetParam().runner);
  for (const Json& c : golden["cases"]) {
    SCOPED_TRACE(c["name"].get<std::string>());
    Json options = c["options"];
    if (options.contains("threshold")) {
      options["nothink_threshold"] = options["threshold"];
      options.erase("threshold");
    }
    const Json body = {{"state", golden["states"][c["state"].get<std::size_t>()]},
                       {"questions", {{"q", golden["questions"][c["question"].get<std::size_t>()]}}},
                       {"options", options}};
    const auto got = decider.one(body);
    EXPECT_EQ(got[0].encoded.prompt, c["prompt_ids"].get<std::vector<std::int32_t>>());
    EXPECT_EQ(got[0].encoded.remainder, c["remainder_ids"].get<std::vector<std::int32_t>>());
    expect_like(got[0], c, kF32Tolerance);
  }
}

TEST_P(Answers, Complaint46_LimitsCutTheBudgetAndThenRefuse) {
  const Json golden = read_json(golden_folder(GetParam().checkpoint) / "cases-limits.json");
  for (const Json& c : golden["cases"]) {
    SCOPED_TRACE(c.dump());
    Json body = golden["body"];
    for (const char* key : {"think", "max_think"}) {
      if (c.contains(key)) body["options"][key] = c[key];
    }
    Decider decider(GetParam().checkpoint, GetParam().runner,
                    {.max_len = c["max_len"], .block = golden["block"]});
    const auto outcomes = decider.batch({body});
    if (!c.contains("error")) {
      ASSERT_FALSE(outcomes[0].error) << outcomes[0].error->what();
      const auto& got = outcomes[0].questions[0];
      EXPECT_LT(largest_difference(got.probs, c["probs"]), kF32Tolerance);
      EXPECT_EQ(got.thought, c["thought"].get<bool>());
      EXPECT_EQ(got.closed, c["closed"].get<bool>());
      EXPECT_EQ(got.chain, c["chain"].get<std::vector<std::int32_t>>());
      continue;
    }
    ASSERT_TRUE(outcomes[0].error);
    const std::string message = outcomes[0].error->what();
    const std::size_t tokens = golden["prompt_ids"].size() + golden["remainder_ids"].size();
    EXPECT_EQ(outcomes[0].error->kind(), ErrorKind::too_large);
    EXPECT_THAT(message, testing::HasSubstr("'q'"));
    EXPECT_THAT(message, testing::HasSubstr(std::to_string(tokens)));
    EXPECT_THAT(message, testing::HasSubstr(c["max_len"].dump()));
  }
}

// Rounding the inputs of matrix products to bf16 costs no more than the published implementation's bf16 does.
class Bf16Answers : public testing::TestWithParam<GoldenCase> {};
INSTANTIATE_TEST_SUITE_P(Golden, Bf16Answers, testing::ValuesIn(cpu_cases(ops::ActivationType::bf16)),
                         golden_case_name);

TEST_P(Bf16Answers, NoThinkProbabilitiesStayWithinTheRecordedError) {
  const Json golden = read_json(golden_folder(GetParam().checkpoint) / "cases-requests.json");
  const double tolerance = 1.5 * golden["largest_probability_error"]["bf16_activations"].get<double>();
  Decider decider(GetParam().checkpoint, GetParam().runner);
  double worst = 0;
  for (const Json& c : golden["cases"]) {
    for (const Json& r : c["requests"]) {
      if (!r["body"].contains("options") || r["body"]["options"].value("think", true)) continue;
      const auto got = decider.one(r["body"]);
      std::size_t q = 0;
      for (const auto& [name, details] : r["details"].items()) {
        worst = std::max(worst, largest_difference(got[q++].probs, details["probs"]));
      }
    }
  }
  EXPECT_LT(worst, tolerance);
  EXPECT_GT(worst, kF32Tolerance) << "the rounding has no effect: is it there?";
}

TEST(Answers, TheReferenceBackendAnswersToo) {
  const Json golden = read_json(golden_folder("tiny-a") / "cases-requests.json");
  Decider decider("tiny-a", all_runners()[0]);
  for (const Json& c : golden["cases"]) {
    if (c["name"] != "ten-questions-no-think") continue;
    const auto got = decider.one(c["requests"][0]["body"]);
    std::size_t q = 0;
    for (const auto& [name, details] : c["requests"][0]["details"].items())
      expect_like(got[q++], details, 1e-5);
    return;
  }
  FAIL() << "the golden case is gone";
}

}  // namespace
}  // namespace ponder::test
