#include "decide/answer.hpp"

#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "decide/json_write.hpp"
#include "decide/python_format.hpp"
#include "support.hpp"

namespace ponder::decide {
namespace {

using test::at;
using test::items;
using test::numbers;
using test::text;

const AnswerStyle public_style = AnswerStyle::with_decimals(2);

Question question_of(const Value& raw, const std::string& id = "q") {
  Object questions;
  questions.append(id, raw);
  Object body;
  body.append("state", Value());
  body.append("questions", std::move(questions));
  return parse_request(std::move(body)).questions.at(0);
}

Question asked(const std::string& json) {
  return question_of(parse_json(json));
}

Question choice_of(std::size_t n) {
  Object criteria;
  for (std::size_t i = 0; i < n; ++i) criteria.append("o" + std::to_string(i), Value());
  Question q;
  q.id = "q";
  q.type = QuestionType::choice;
  q.criteria = std::move(criteria);
  return q;
}

// ---------------------------------------------------------------- the public server's replies

TEST(Answer, GoldenCases) {
  const Value golden = test::read_json("decide/cases-answers.json");
  EXPECT_EQ(items(at(golden, "answers")).size(), 59U);
  for (const Value& c : items(at(golden, "answers"))) {
    const std::vector<Question> q{question_of(at(c, "question"))};
    const std::vector<std::vector<double>> probs{numbers(at(c, "probs"))};
    EXPECT_EQ(answer(q[0], probs[0], public_style), at(c, "answer")) << text(at(c, "json_text"));
    EXPECT_EQ(answers_json_python(answers(q, probs, public_style)), text(at(c, "json_text")));
  }
}

TEST(Answer, RandomAnswersOfTheReference) {
  const Value stored = test::read_json("decide/oracle-answers.json");
  for (const Value& c : items(at(stored, "answers"))) {
    const std::vector<Question> q{question_of(at(c, "question"), "id")};
    const std::vector<std::vector<double>> probs{numbers(at(c, "probs"))};
    EXPECT_EQ(answers_json_python(answers(q, probs, public_style)), text(at(c, "answer")));
    // unrounded numbers: the probabilities (or yes alone), the confidence, the mean
    const Array& raw = items(at(c, "raw"));
    const auto number = [&](std::size_t i) { return std::strtod(text(raw[i]).c_str(), nullptr); };
    if (q[0].type == QuestionType::noul) continue;
    EXPECT_EQ(confidence(q[0].type, probs[0]), number(probs[0].size()));
  }
}

class GoldenReplies : public testing::TestWithParam<const char*> {};

TEST_P(GoldenReplies, AnswersFromStoredProbabilities) {
  const Value golden = test::read_json(std::string("hybrid/") + GetParam() + "/cases-requests.json");
  std::size_t replies = 0;
  for (const Value& c : items(at(golden, "cases"))) {
    for (const Value& one : items(at(c, "requests"))) {
      const Request r = parse_request(at(one, "body"));
      const Value& expected = at(one, "response");
      std::vector<std::vector<double>> probs;
      std::vector<Reasoning> reasoning;
      Usage usage;
      for (const Question& q : r.questions) {
        const Value& d = at(at(one, "details"), q.id);
        probs.push_back(numbers(at(d, "probs")));
        Reasoning chain;
        chain.thought = *at(d, "thought").if_bool();
        chain.closed = *at(d, "closed").if_bool();
        chain.tokens = static_cast<std::int64_t>(items(at(d, "chain")).size());
        if (r.options.return_reasoning) chain.text = text(at(at(at(expected, "reasoning"), q.id), "text"));
        reasoning.push_back(chain);
        usage.input_tokens += static_cast<std::int64_t>(test::number(at(d, "prompt_tokens")));
        usage.reasoning_tokens += chain.tokens;
      }
      usage.output_tokens =
          static_cast<std::int64_t>(test::number(at(at(expected, "usage"), "output_tokens")));
      std::optional<std::span<const Reasoning>> shown;
      if (r.options.return_reasoning) shown = reasoning;
      const Value whole =
          reply("tiny", answers(r.questions, probs, public_style), usage, 12.3456, r.questions, shown);
      EXPECT_EQ(write_json(at(whole, "answers")), write_json(at(expected, "answers")));
      const std::string used = write_json(at(expected, "usage"));
      EXPECT_EQ(write_json(at(whole, "usage")), used.substr(0, used.size() - 1) + ",\"cached_tokens\":0}");
      EXPECT_EQ(whole.if_object()->find("reasoning") != nullptr, r.options.return_reasoning);
      if (r.options.return_reasoning) {
        EXPECT_EQ(write_json(at(whole, "reasoning")), write_json(at(expected, "reasoning")));
      }
      ++replies;
    }
  }
  EXPECT_GE(replies, 24U);
}

INSTANTIATE_TEST_SUITE_P(Checkpoints, GoldenReplies, testing::Values("tiny-a", "tiny-b", "tiny-c", "tiny-d"));

// ---------------------------------------------------------------- our own replies

TEST(Answer, SixDecimalsByDefault) {
  EXPECT_EQ(write_json(answer(asked(R"({"type":"noul"})"), std::vector{0.87654321, 0.12345679})),
            R"({"type":"noul","noul":0.123457})");
  EXPECT_EQ(
      write_json(answer(choice_of(3), std::vector{0.25, 0.5, 0.25})),
      R"({"type":"choice","choice":"o1","confidence":0.25,"probabilities":{"o0":0.25,"o1":0.5,"o2":0.25}})");
  EXPECT_EQ(write_json(answer(asked(R"({"type":"score","criteria":["lo",2.0,{"k":null}]})"),
                              std::vector{0.1, 0.2, 0.7})),
            R"({"type":"score","score":1.6,"legend":{"0":"lo","1":"2.0","2":"k: "},)"
            R"("probabilities":{"0":0.1,"1":0.2,"2":0.7},"confidence":0.8})");
}

TEST(Answer, LegendTextsAreNeverEmptyUnlessThePublicServersAre) {
  const Question q = asked(R"({"type":"score","criteria":[null,"",[],"x"]})");
  const std::vector<double> p{0.25, 0.25, 0.25, 0.25};
  EXPECT_EQ(write_json(at(answer(q, p), "legend")), R"({"0":"0","1":"1","2":"2","3":"x"})");
  EXPECT_EQ(write_json(at(answer(q, p, public_style), "legend")), R"({"0":"","1":"","2":"","3":"x"})");
}

TEST(Answer, FirstOfEqualsWins) {
  for (const int decimals : {2, 6}) {
    const AnswerStyle style = AnswerStyle::with_decimals(decimals);
    EXPECT_EQ(text(at(answer(choice_of(3), std::vector{0.2, 0.4, 0.4}, style), "choice")), "o1");
    EXPECT_EQ(text(at(answer(choice_of(3), std::vector{1 / 3., 1 / 3., 1 / 3.}, style), "choice")), "o0");
  }
}

TEST(Answer, RefusesWhatIsNoDistribution) {
  const double nan = std::nan(""), inf = std::numeric_limits<double>::infinity();
  const std::vector<std::vector<double>> bad{{nan, nan},  {nan, 1},   {1, nan}, {inf, 0},
                                             {0, -inf},   {0.5},      {},       {0.3, 0.3, 0.4},
                                             {-0.1, 1.1}, {0.4, 0.4}, {2, -1}};
  for (const auto& p : bad) {
    for (const Question& q :
         {choice_of(2), asked(R"({"type":"noul"})"), asked(R"({"type":"score","criteria":[1,2]})")}) {
      const auto failure = test::failure_of([&] { answer(q, p); });
      ASSERT_TRUE(failure);
      EXPECT_EQ(failure->kind, ErrorKind::internal);
      EXPECT_TRUE(failure->message.starts_with("question 'q': ")) << failure->message;
    }
  }
  EXPECT_EQ(test::failure_of([] { answer(choice_of(1), std::vector{1.0}, {.decimals = 18}); })->kind,
            ErrorKind::usage);
  EXPECT_EQ(test::failure_of([] { answer(choice_of(1), std::vector{1.0}, {.decimals = -1}); })->kind,
            ErrorKind::usage);
}

std::vector<double> printed(const Value& answer_object) {
  std::vector<double> out;
  for (const Member& m : at(answer_object, "probabilities").if_object()->members())
    out.push_back(*m.value.if_double());
  return out;
}

// What a strict client checks, with the distribution `p` (sum 1 to 1e-12) known. `unit` is one of the last
// decimal.
void check_printed(const std::vector<double>& p, const std::vector<double>& shown, double unit) {
  RC_ASSERT(shown.size() == p.size());
  RC_ASSERT(std::abs(std::accumulate(shown.begin(), shown.end(), 0.0) - 1.0) <= 1e-12);
  for (std::size_t i = 0; i < p.size(); ++i) {
    RC_ASSERT(shown[i] >= 0.0 && shown[i] <= 1.0);
    RC_ASSERT(std::abs(shown[i] - p[i]) <= unit * (1 + 1e-6));
    for (std::size_t j = 0; j < p.size(); ++j) RC_ASSERT(!(p[i] > p[j]) || shown[i] >= shown[j]);
  }
  RC_ASSERT(chosen(shown) == chosen(p) || shown[chosen(p)] == shown[chosen(shown)]);
}

std::vector<double> any_distribution() {
  const auto n = *rc::gen::elementOf(std::vector<int>{1, 2, 3, 7, 30, 64, 254, 255});
  const int shape = *rc::gen::inRange(0, 5);
  std::vector<double> p;
  for (int i = 0; i < n; ++i) {
    const double u = (*rc::gen::inRange(0, 1 << 30) + 0.5) / (1 << 30);
    p.push_back(shape == 0   ? 1.0
                : shape == 1 ? u
                : shape == 2 ? std::exp(30 * u)
                : shape == 3 ? (i % 3 == 0 ? 1.0 : 2.0)
                             : 1e-7 + (i == n / 2 ? 1.0 : 0.0) * u);
  }
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

TEST(Answer, Complaint45_PrintedDistributionIsWholeAndSumsToOne) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<double> p = any_distribution();
    const Question q = choice_of(p.size());
    const Value a = answer(q, p);
    const std::vector<double> shown = printed(a);
    check_printed(p, shown, 1e-6);
    RC_ASSERT(text(at(a, "choice")) == option_keys(q)[chosen(p)]);
    RC_ASSERT(shown[chosen(p)] == *std::max_element(shown.begin(), shown.end()));
    // at most six decimals reach the client
    for (const double x : shown) RC_ASSERT(python_round(x, 6) == x);
    for (const int decimals : {3, 4, 5, 7, 8}) {
      check_printed(p, printed(answer(q, p, AnswerStyle::with_decimals(decimals))),
                    std::pow(10.0, -decimals));
    }
  }));
}

TEST(Answer, Complaint45_FloatPrecisionReadOutsStillSumToOne) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<double> exact = any_distribution();
    std::vector<double> p(exact);
    for (double& x : p) x = static_cast<float>(x) * (1.0F + 2e-6F);
    const std::vector<double> shown = printed(answer(choice_of(p.size()), p));
    RC_ASSERT(std::abs(std::accumulate(shown.begin(), shown.end(), 0.0) - 1.0) <= 1e-12);
    for (std::size_t i = 0; i < p.size(); ++i) RC_ASSERT(std::abs(shown[i] - exact[i]) <= 1.3e-6);
    const std::vector<double> fine = printed(answer(choice_of(p.size()), p, AnswerStyle::with_decimals(12)));
    RC_ASSERT(std::abs(std::accumulate(fine.begin(), fine.end(), 0.0) - 1.0) <= 1e-9);
  }));
}

TEST(Answer, Complaint45_NearlyEqualOptionsOfALargeChoice) {
  // 255 times 1/255 = 0.003921568…: rounded alone they sum to 1.00011
  const std::vector<double> p(255, 1.0 / 255);
  const std::vector<double> shown = printed(answer(choice_of(255), p));
  EXPECT_NEAR(std::accumulate(shown.begin(), shown.end(), 0.0), 1.0, 1e-12);
  EXPECT_EQ(std::count(shown.begin(), shown.end(), 0.003922), 145);  // 10^6 - 255 * 3921
  EXPECT_EQ(std::count(shown.begin(), shown.end(), 0.003921), 110);
  EXPECT_EQ(shown.front(), 0.003922);  // the answer's own option is not below another
  EXPECT_EQ(shown.back(), 0.003921);
  for (const double x : rounded_probabilities(p, 2)) EXPECT_EQ(x, 0.0);  // the public rounding is left alone
}

TEST(Answer, WordsOfThePublicRounding) {
  // decimals 2: each number alone, half to even on the exact double
  const Value a = answer(choice_of(4), std::vector{0.125, 0.375, 0.125, 0.375}, public_style);
  EXPECT_EQ(printed(a), (std::vector<double>{0.12, 0.38, 0.12, 0.38}));
}

// ---------------------------------------------------------------- whole replies

TEST(Reply, KeysInTheContractsOrder) {
  const std::vector<Question> q{question_of(parse_json(R"({"type":"noul"})"), "z"),
                                question_of(parse_json(R"({"type":"noul"})"), "a")};
  const std::vector<std::vector<double>> p{{0.75, 0.25}, {0.5, 0.5}};
  const Usage usage{10, 20, 30, 4};
  EXPECT_EQ(write_json(reply("m", answers(q, p), usage, 1.23456)),
            R"({"model":"m","answers":{"z":{"type":"noul","noul":0.25},"a":{"type":"noul","noul":0.5}},)"
            R"("usage":{"input_tokens":10,"output_tokens":20,"reasoning_tokens":30,"cached_tokens":4},)"
            R"("latency_ms":1.235})");
  const std::vector<Reasoning> chains{{true, false, 3, "é\n", false}, {false, false, 0, "", true}};
  const Value whole = reply("m", answers(q, p), usage, 5, q, chains);
  EXPECT_EQ(write_json(at(whole, "reasoning")),
            R"({"z":{"thought":true,"closed":false,"tokens":3,"text":"é\n"},)"
            R"("a":{"thought":false,"closed":false,"tokens":0,"text":"","deadline":true}})");
  EXPECT_EQ(whole.if_object()->members().back().key, "reasoning");
  EXPECT_THROW(reply("m", Value(), usage, 5, q, std::span<const Reasoning>(chains).first(1)), Error);
  EXPECT_THROW(answers(q, std::span<const std::vector<double>>(p).first(1)), Error);
}

}  // namespace
}  // namespace ponder::decide
