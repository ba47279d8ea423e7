// Fitted temperatures where the best one is known, and the one number that is changed in export.json.
#include "decide/calibration.hpp"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/random.hpp"
#include "decide/support.hpp"

namespace ponder::decide::test {
namespace {

using testing::HasSubstr;

std::vector<double> softmax(const std::vector<double>& scores, double temperature) {
  std::vector<double> p;
  double sum = 0;
  for (const double s : scores) {
    p.push_back(std::exp(s / temperature));
    sum += p.back();
  }
  for (double& x : p) x /= sum;
  return p;
}

struct Data {
  std::vector<std::vector<double>> probs;
  std::vector<std::size_t> labels;

  std::vector<LabelledProbs> views() const {
    std::vector<LabelledProbs> out;
    for (std::size_t i = 0; i < probs.size(); ++i) out.push_back({probs[i], labels[i]});
    return out;
  }
};

// Labels come exactly as often as the probabilities at `best` say, so `best` is optimal.
Data exact_data(double shown_at, double best) {
  Data out;
  const auto add = [&](const std::vector<int>& counts) {
    std::vector<double> scores;
    for (const int c : counts) scores.push_back(best * std::log(c));
    for (std::size_t label = 0; label < counts.size(); ++label) {
      for (int i = 0; i < counts[label]; ++i) {
        out.probs.push_back(softmax(scores, shown_at));
        out.labels.push_back(label);
      }
    }
  };
  add({3, 1});
  add({1, 9});
  add({5, 2, 1, 2});
  return out;
}

double loss(const Data& data, double ratio) {
  double sum = 0;
  for (std::size_t i = 0; i < data.probs.size(); ++i)
    sum -= std::log(retempered(data.probs[i], ratio)[data.labels[i]]);
  return sum;
}

TEST(FitTemperature, FindsTheKnownOptimum) {
  for (const double shown_at : {0.5, 1.0, 1.37}) {
    for (const double best : {0.3, 1.0, 2.5, 20.0}) {
      const Data data = exact_data(shown_at, best);
      const TemperatureFit fit = fit_temperature(data.views(), shown_at);
      EXPECT_FALSE(fit.at_bound);
      EXPECT_NEAR(fit.temperature / best, 1, 1e-9) << shown_at << " " << best;
    }
  }
}

TEST(FitTemperature, NoOtherTemperatureIsBetterOnRandomData) {
  Random random(11);
  for (int round = 0; round < 20; ++round) {
    Data data;
    for (int i = 0; i < 60; ++i) {
      std::vector<double> scores(2 + random.below(4));
      for (double& s : scores) s = 2 * random.normal();
      data.probs.push_back(softmax(scores, 1));
      data.labels.push_back(
          random.below(2) == 0
              ? random.below(scores.size())
              : static_cast<std::size_t>(std::max_element(scores.begin(), scores.end()) - scores.begin()));
    }
    const TemperatureFit fit = fit_temperature(data.views(), 1);
    ASSERT_FALSE(fit.at_bound);
    const double at = loss(data, 1 / fit.temperature);
    for (double t = 0.05; t < 40; t *= 1.05) EXPECT_GE(loss(data, 1 / t), at - 1e-9) << t;
  }
}

TEST(FitTemperature, BoundsAreSaid) {
  Data right;  // surer is better without end
  right.probs = {{0.6, 0.4}, {0.3, 0.7}};
  right.labels = {0, 1};
  EXPECT_TRUE(fit_temperature(right.views(), 1).at_bound);
  EXPECT_EQ(fit_temperature(right.views(), 1).temperature, least_temperature);
  right.labels = {1, 0};  // always wrong: nothing is as good as even
  EXPECT_TRUE(fit_temperature(right.views(), 1).at_bound);
  EXPECT_EQ(fit_temperature(right.views(), 1).temperature, greatest_temperature);
  Data flat;
  flat.probs = {{0.5, 0.5}};
  flat.labels = {0};
  EXPECT_TRUE(fit_temperature(flat.views(), 1).at_bound) << "any temperature is as good";
  EXPECT_THAT(message_of([] { fit_temperature({}, 1); }), HasSubstr("no labelled answers"));
}

TEST(FitTemperature, ZerosAndOnesAreSurvived) {
  Data data;
  data.probs = {{1, 0, 0}, {0, 1, 0}, {0.5, 0.25, 0.25}};
  data.labels = {1, 1, 0};
  const TemperatureFit fit = fit_temperature(data.views(), 1);
  EXPECT_TRUE(fit.at_bound) << "one answer was as wrong as can be";
  EXPECT_EQ(fit.temperature, greatest_temperature);
  for (const double p : retempered(data.probs[0], 0.5)) EXPECT_TRUE(p >= 0 && p <= 1);
}

TEST(Retempered, IsTheSoftmaxOfTheSameScores) {
  const std::vector<double> scores = {1.5, -0.25, 0.75, 0};
  const std::vector<double> want = softmax(scores, 3.5), got = retempered(softmax(scores, 1.4), 1.4 / 3.5);
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-14);
}

TEST(WithTemperature, ChangesTheNumberAndNoOtherByte) {
  const std::string before =
      "{\n  \"note\": \"temperature\",\n\t\"x\": [1.0, 1e-7, {\"temperature\": 3}], \"temperature\" :  1.370 "
      ",\n"
      "  \"big\": 123456789012345678901234567890, \"s\": \"\\\"temperature\\\": 9 \\u00e9\"}\n";
  std::string want = before;
  want.replace(want.find("1.370"), 5, "0.8125");
  EXPECT_EQ(with_temperature(before, 0.8125), want);
  EXPECT_EQ(with_temperature(R"({"temperature":1})", 2.5), R"({"temperature":2.5})");
  EXPECT_EQ(with_temperature(R"({"temperature":null,"a":1})", 2), R"({"temperature":2.0,"a":1})");
}

TEST(WithTemperature, IsNotMisledByWhatLooksLikeTheKey) {
  EXPECT_EQ(with_temperature(R"({"temperature": 1, "x": {"temperature": 2}, "y": ["temperature", 3]})", 4),
            R"({"temperature": 4.0, "x": {"temperature": 2}, "y": ["temperature", 3]})");
  EXPECT_EQ(with_temperature(R"({"s": "a\\\", ", "temperature": 1, "temperature ": 2})", 4),
            R"({"s": "a\\\", ", "temperature": 4.0, "temperature ": 2})");
}

TEST(WithTemperature, AddsTheKeyWhereThereIsNone) {
  EXPECT_EQ(with_temperature("{}", 2), R"({"temperature": 2.0})");
  EXPECT_EQ(with_temperature(R"({"a": 1})", 2), R"({"temperature": 2.0, "a": 1})");
  EXPECT_EQ(with_temperature("{\n  \"a\": 1\n}\n", 2), "{\n  \"temperature\": 2.0,\n  \"a\": 1\n}\n");
}

TEST(WithTemperature, OfARepeatedKeyTheOneThatCounts) {
  EXPECT_EQ(with_temperature(R"({"temperature": 1, "temperature": 2})", 3),
            R"({"temperature": 1, "temperature": 3.0})");
}

TEST(WithTemperature, WhatItCannotDoSafelyIsRefused) {
  EXPECT_THAT(message_of([] { with_temperature("[1]", 2); }), HasSubstr("not a JSON object"));
  EXPECT_THAT(message_of([] { with_temperature(R"({"temperature": "1"})", 2); }), HasSubstr("plain number"));
  EXPECT_THAT(message_of([] { with_temperature(R"({"temperature": [1]})", 2); }), HasSubstr("plain number"));
  EXPECT_THAT(message_of([] { with_temperature(R"({"\u0074emperature": 1})", 2); }),
              HasSubstr("plain number"));
  EXPECT_THAT(message_of([] { with_temperature(R"({"temperature": 1, "\u0074emperature": 2})", 3); }),
              HasSubstr("without touching"));
  EXPECT_THAT(message_of([] { with_temperature("{\"temperature\": 1", 2); }), HasSubstr("invalid JSON"));
}

}  // namespace
}  // namespace ponder::decide::test
