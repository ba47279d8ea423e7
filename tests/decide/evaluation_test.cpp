// Summaries by group, questions put another way, JevBench's scores.
#include "decide/evaluation.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decide/jevbench.hpp"
#include "decide/prompt.hpp"
#include "decide/support.hpp"
#include "decide/variants.hpp"

namespace ponder::decide::test {
namespace {

using testing::ElementsAre;

Question question(const std::string& json) {
  return std::move(
      parse_request(parse_json(R"({"state": "", "questions": {"q": )" + json + "}}")).questions.front());
}

struct Row {
  std::uint32_t source;
  std::optional<std::uint32_t> label;
  std::vector<double> probs;  // empty: not answered
  std::uint32_t chain = 0, cycles = 0;
};

Evaluation make(const std::vector<Row>& rows) {
  Evaluation e;
  e.sources = {"rules", "facts"};
  e.modes.emplace_back().mode.name = "no-think";
  for (const Row& row : rows) {
    const QuestionType type = row.probs.size() == 2 ? QuestionType::noul : QuestionType::choice;
    e.questions.push_back({row.source, 0, type,
                           static_cast<std::uint32_t>(std::max<std::size_t>(2, row.probs.size())),
                           row.label});
    AnsweredQuestion a;
    a.answered = !row.probs.empty();
    if (a.answered) {
      a.predicted = static_cast<std::uint32_t>(std::max_element(row.probs.begin(), row.probs.end()) -
                                               row.probs.begin());
    }
    a.chain_tokens = row.chain;
    a.cycles = row.cycles;
    a.thought = row.chain > 0;
    e.modes[0].sheet.add(a, row.probs);
  }
  return e;
}

const std::vector<Row> kRows = {{0, 0, {0.6, 0.4}, 9, 3},
                                {1, 1, {0.2, 0.5, 0.3}},
                                {1, {}, {0.95, 0.05}, 3, 3},
                                {1, {}, {0.5, 0.5}},
                                {0, 1, {}}};

TEST(Evaluation, GroupsAndWhatTheStateDoesNotSay) {
  const Evaluation e = make(kRows);
  const GroupSummary all = summarize(e, e.modes[0], "all");
  EXPECT_EQ(all.metrics.count, 3U);
  EXPECT_EQ(all.metrics.failed, 1U);
  EXPECT_NEAR(all.metrics.accuracy(), 2.0 / 3, 1e-15);
  EXPECT_NEAR(all.metrics.nll, -(std::log(0.6) + std::log(0.5)) / 2, 1e-15);
  EXPECT_EQ(all.unanswerable, 2U);
  EXPECT_EQ(all.sure, 1U);
  EXPECT_NEAR(all.unanswerable_change, 0.45, 1e-15) << "half of |0.95 - 0.5| + |0.05 - 0.5|";
  const auto sources = by_source(e, e.modes[0]);
  ASSERT_EQ(sources.size(), 2U);
  EXPECT_EQ(sources[0].name, "rules");
  EXPECT_EQ(sources[0].metrics.accuracy(), 0.5);
  EXPECT_EQ(sources[1].metrics.accuracy(), 1.0);
  EXPECT_EQ(sources[1].unanswerable, 2U);
  const auto types = by_type(e, e.modes[0]);
  ASSERT_EQ(types.size(), 2U) << "no scores here";
  EXPECT_EQ(types[0].name, "choice");
  EXPECT_EQ(verdicts(e, e.modes[0]).size(), 2U);
  const Tokens t = count_tokens(e.modes[0].sheet);
  EXPECT_EQ(t.questions, 4U);
  EXPECT_EQ(t.reasoning, 12U);
  EXPECT_EQ(t.thought, 2U);
  EXPECT_EQ(t.accepted(), 2.0);
}

TEST(Evaluation, SureFromNineTenthsOn) {
  const Evaluation e = make({{0, {}, {0.9, 0.1}}, {0, {}, {std::nextafter(0.9, 0), 0.1}}});
  EXPECT_EQ(summarize(e, e.modes[0], "").sure, 1U);
}

TEST(Evaluation, DifferencesOfTwoSheets) {
  const Evaluation a = make(kRows), b = make({{0, 0, {0.3, 0.7}},
                                              {1, 1, {0.1, 0.6, 0.3}},
                                              {1, {}, {0.95, 0.05}},
                                              {1, {}, {}},
                                              {0, 1, {0.1, 0.9}}});
  const Difference d = difference(a, a.modes[0].sheet, b.modes[0].sheet);
  EXPECT_EQ(d.questions, 3U) << "those answered both times";
  EXPECT_EQ(d.flips, 1U);
  EXPECT_NEAR(d.flip_rate(), 1.0 / 3, 1e-15);
  EXPECT_NEAR(d.mean_change(), (0.3 + 0.3 + 0.1 + 0.1) / 7, 1e-15);
  EXPECT_NEAR(d.largest, 0.3, 1e-15);
  EXPECT_EQ(d.labelled, 2U);
  EXPECT_EQ(d.right_before, 2U);
  EXPECT_EQ(d.right_after, 1U);
}

TEST(Evaluation, DirectAndThoughtAnswersSideBySide) {
  const Evaluation direct = make({{0, 1, {0.6, 0.4}}, {0, {}, {0.7, 0.3}}, {0, 0, {}}});
  const Evaluation thought = make({{0, 1, {0.1, 0.9}, 12, 4}, {0, {}, {0.5, 0.5}, 5, 2}, {0, 0, {0.9, 0.1}}});
  const auto both = considered(direct, direct.modes[0], thought.modes[0]);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].confidence, 0.6);
  EXPECT_FALSE(both[0].direct_correct);
  EXPECT_TRUE(both[0].thought_correct);
  EXPECT_EQ(both[0].tokens, 12);
  EXPECT_FALSE(both[1].labelled);
}

// ---- variants

std::string rendered(const Question& q) {
  return joined(remainder(q));
}

TEST(Variants, ReversedNoulsReadTheSameWords) {
  const Question q = question(R"({"type": "noul", "criteria": {"true": "it is", "false": null}})");
  const auto v = vary(q, Variant::options_reversed);
  ASSERT_TRUE(v);
  EXPECT_THAT(v->places, ElementsAre(1, 0));
  const auto before = option_texts(q), after = option_texts(v->question);
  EXPECT_THAT(after, ElementsAre(before[1], before[0]));
  EXPECT_THAT(option_texts(vary(question(R"({"type": "noul"})"), Variant::options_reversed)->question),
              ElementsAre("yes", "no"));
  EXPECT_NE(rendered(q), rendered(v->question));
}

TEST(Variants, ReversedChoicesAndScores) {
  const Question choice = question(R"({"type": "choice", "criteria": {"a": "x", "b": null, "c": 3}})");
  EXPECT_THAT(option_texts(vary(choice, Variant::options_reversed)->question),
              ElementsAre("c: 3", "b", "a: x"));
  const Question score = question(R"({"type": "score", "criteria": ["l", "m", "h"]})");
  const auto v = vary(score, Variant::options_reversed);
  EXPECT_THAT(option_texts(v->question), ElementsAre("h", "m", "l"));
  EXPECT_THAT(v->places, ElementsAre(2, 1, 0));
  EXPECT_FALSE(vary(question(R"({"type": "score", "criteria": ["l"]})"), Variant::options_reversed));
}

TEST(Variants, OtherLabels) {
  const Question described = question(R"({"type": "choice", "criteria": {"pay": "x", "wait": "y"}})");
  EXPECT_THAT(option_texts(vary(described, Variant::labels_replaced)->question), ElementsAre("A: x", "B: y"));
  EXPECT_THAT(option_texts(vary(described, Variant::label_case_changed)->question),
              ElementsAre("Pay: x", "Wait: y"));
  const Question bare = question(R"({"type": "choice", "criteria": {"pay": "x", "wait": ""}})");
  EXPECT_FALSE(vary(bare, Variant::labels_replaced)) << "without its label an option would be empty";
  EXPECT_FALSE(
      vary(question(R"({"type": "choice", "criteria": {"A": "x", "B": "y"}})"), Variant::labels_replaced));
  EXPECT_FALSE(vary(question(R"({"type": "choice", "criteria": {"1": null, "ä": null}})"),
                    Variant::label_case_changed));
  EXPECT_FALSE(vary(question(R"({"type": "noul"})"), Variant::label_case_changed));
  std::string many = R"({"type": "choice", "criteria": {)";
  for (int i = 0; i < 60; ++i) many += (i > 0 ? ", \"" : "\"") + std::to_string(i) + "\": \"d\"";
  const auto v = vary(question(many + "}}"), Variant::labels_replaced);
  ASSERT_TRUE(v);
  EXPECT_EQ(option_keys(v->question)[25], "Z");
  EXPECT_EQ(option_keys(v->question)[26], "A2");
  EXPECT_EQ(option_keys(v->question)[59], "H3");
}

// ---- JevBench

TEST(JevBench, EqualProbabilitiesGoToTheLabelThatSortsFirst) {
  const Question q = question(R"({"type": "choice", "criteria": {"b": null, "a": null, "c": null}})");
  EXPECT_EQ(judge_answer(q, std::vector<double>{0.4, 0.4, 0.2}).predicted, 1U);
  EXPECT_EQ(judge_answer(q, std::vector<double>{0.41, 0.39, 0.2}).predicted, 0U);
  // Equal when sent with six decimals.
  EXPECT_EQ(judge_answer(q, std::vector<double>{0.40000004, 0.39999996, 0.2}).predicted, 1U);
  // "10" sorts before "2".
  std::vector<double> levels(11, 0.0);
  levels[2] = levels[10] = 0.5;
  std::string score = R"({"type": "score", "criteria": [)";
  for (int i = 0; i < 11; ++i) score += (i > 0 ? ", " : "") + std::to_string(i);
  EXPECT_EQ(judge_answer(question(score + "]}"), levels).predicted, 10U);
  const BenchmarkAnswer good = judge_answer(q, std::vector<double>{0.4, 0.4, 0.2});
  EXPECT_TRUE(good.strict && good.valid);
}

TEST(JevBench, TiersByFamilyAndFile) {
  EXPECT_EQ(tier_of("trap", "anything.jsonl"), Tier::hard);
  EXPECT_EQ(tier_of("intent", "data/easy.jsonl"), Tier::easy);
  EXPECT_EQ(tier_of("intent", "original.jsonl"), Tier::standard);
  EXPECT_EQ(tier_of("adequacy", "/x/judge.jsonl"), Tier::judge);
  EXPECT_EQ(tier_of("intent", "mine.jsonl"), Tier::other);
}

// The anchors that the benchmark documents.
TEST(JevBench, PointsOfTheAxes) {
  EXPECT_NEAR(speed_points(0.1), 100, 1e-12);
  EXPECT_NEAR(speed_points(1), 80, 1e-12);
  EXPECT_NEAR(speed_points(10), 60, 1e-12);
  EXPECT_EQ(speed_points(0.001), 100);
  EXPECT_EQ(speed_points(1e9), 0);
  EXPECT_NEAR(cost_points(0.001), 100, 1e-12);
  EXPECT_NEAR(cost_points(0.01), 70, 1e-12);
  EXPECT_NEAR(cost_points(1), 10, 1e-12);
  EXPECT_EQ(calibration_points(0), 100);
  EXPECT_EQ(calibration_points(0.5), 0);
  EXPECT_EQ(calibration_points(0.9), 0);
  // 1 s counts as 2.15 s, about 73 points.
  EXPECT_NEAR(speed_points(adjusted_latency(1)), 73, 0.5);
}

TEST(JevBench, TheWholeIsAHarmonicMeanWithGates) {
  EXPECT_NEAR(composite_score(80, 80, 80, 80), 80, 1e-12);
  EXPECT_NEAR(composite_score(50, 80, 80, 80), 4 / (3.0 / 80 + 1.0 / 50), 1e-12);
  EXPECT_NEAR(composite_score(25, 80, 80, 80), 4 / (3.0 / 80 + 1.0 / 25) * 0.25, 1e-12);
  EXPECT_NEAR(composite_score(80, 10, 80, 80), 4 / (3.0 / 80 + 1.0 / 10), 1e-12) << "no gate for calibration";
  EXPECT_NEAR(composite_score(80, 80, 40, 40), 4 / (2.0 / 80 + 2.0 / 40) * 0.8 * 0.8 * 0.8 * 0.8, 1e-12);
  EXPECT_EQ(composite_score(0, 80, 80, 80), 0);
}

TEST(JevBench, ScoresOfATinyRun) {
  // easy: 2 of 2 right with two options; hard: 1 of 2 with two and four options, chance 3/8.
  Evaluation e =
      make({{0, 0, {0.8, 0.2}}, {0, 1, {0.3, 0.7}}, {0, 1, {0.6, 0.4}}, {0, 3, {0.1, 0.1, 0.1, 0.7}}});
  e.modes[0].latencies_ms = {425, 425, 425, 425};  // 2 * 0.425 + 0.15 = 1 s: 80 points
  const std::vector<Tier> tiers = {Tier::easy, Tier::easy, Tier::hard, Tier::hard};
  const BenchmarkScore s = score_benchmark(e, e.modes[0], tiers, 3600 * 0.01 / 425);  // $0.01 for 1,000
  ASSERT_EQ(s.tiers.size(), 2U);
  EXPECT_EQ(s.tiers[0].corrected, 1);
  EXPECT_NEAR(s.tiers[1].chance, 0.375, 1e-15);
  EXPECT_NEAR(s.tiers[1].corrected, 0.125 / 0.625, 1e-15);
  EXPECT_NEAR(s.weight, 0.44, 1e-15);
  EXPECT_NEAR(s.intelligence, 100 * (0.14 + 0.30 * 0.2) / 0.44, 1e-12);
  // hard: |0 - 0.6| and |1 - 0.7|, half each
  EXPECT_NEAR(*s.calibration, 100 * (1 - 0.45 / 0.5), 1e-9);
  EXPECT_NEAR(*s.speed, 80, 1e-9);
  EXPECT_NEAR(*s.cost, 70, 1e-9);
  EXPECT_NEAR(*s.composite, composite_score(s.intelligence, 10, 80, 70), 1e-9);
  const BenchmarkScore unpriced = score_benchmark(e, e.modes[0], tiers, {});
  EXPECT_FALSE(unpriced.cost || unpriced.composite);
  EXPECT_TRUE(std::isnan(score_benchmark(e, e.modes[0], std::vector<Tier>(4, Tier::other), {}).intelligence));
}

}  // namespace
}  // namespace ponder::decide::test
