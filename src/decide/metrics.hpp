// How good probabilities are: accuracy, proper scores, calibration, and what answering only when sure gives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ponder::decide {

inline constexpr std::size_t reliability_bins = 10;
// -log p counts at most -log of this, so that one impossible label does not hide everything else.
inline constexpr double least_probability = 1e-12;

// Answers whose largest probability lies in (k/10, (k + 1)/10].
struct ReliabilityBin {
  std::size_t count = 0;
  std::size_t correct = 0;
  double confidence_sum = 0;

  double confidence() const { return confidence_sum / static_cast<double>(count); }
  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(count); }
};

// Which bin a largest probability belongs to; 0 counts with the first, anything above 1 with the last.
std::size_t reliability_bin(double confidence);

// Means are NaN where there is nothing to take them over.
struct Metrics {
  std::size_t count = 0;    // questions with a label
  std::size_t failed = 0;   // of these, not answered: wrong, and part of no other figure
  std::size_t correct = 0;  // of these, answered rightly
  double nll = 0;           // mean of -log p(label), nats
  double brier = 0;         // mean of the sum over options of (p - [option is the label])^2, 0 to 2
  double ece = 0;           // sum over bins of share * |accuracy - mean confidence|, of the top answer
  std::array<ReliabilityBin, reliability_bins> bins{};

  double accuracy() const { return static_cast<double>(correct) / static_cast<double>(count); }
};

class MetricSums {
 public:
  // `predicted` is the option taken for the answer, whose probability is the confidence.
  void add(std::span<const double> probs, std::size_t predicted, std::size_t label);
  void add_failed();
  Metrics total() const;

 private:
  Metrics sums_;
};

struct Interval {
  double low = 0, high = 0;
};

// Wilson's 95 % interval of a share.
Interval wilson_interval(std::size_t correct, std::size_t count);

// Of `values` in ascending order, between the two nearest ranks; q in 0..1. NaN for none.
double percentile(std::span<const double> ascending, double q);

struct Verdict {
  double confidence = 0;
  bool correct = false;
};

// The share of answers given when only the surest are, and the share of those that are wrong.
struct CoveragePoint {
  double coverage = 0, risk = 0, confidence = 0;
};

// One point for each confidence that occurs, falling; equally sure answers come in together.
std::vector<CoveragePoint> risk_coverage(std::vector<Verdict> verdicts);

// Mean risk over all coverages 1/n, 2/n, ..., 1; equally sure answers in random order. NaN for none.
double area_under_risk(std::vector<Verdict> verdicts);

// A question answered directly and after thinking.
struct Considered {
  double confidence = 0;  // of the direct answer
  bool labelled = false;
  bool direct_correct = false, thought_correct = false;
  std::int64_t tokens = 0;  // of its chain of thought
};

// What `nothink_threshold` comes to: direct answers at least this sure stand, the others are thought about.
struct SelectivePoint {
  double threshold = 0;
  double accuracy = 0;     // of labelled questions
  double of_thinking = 0;  // this over the accuracy of always thinking
  double thinking = 0;     // share of questions thought about
  double token_share = 0;  // of the tokens of always thinking
};

SelectivePoint selective_point(std::span<const Considered> questions, double threshold);

// At up to `most` thresholds between never and always thinking, evenly spread over the questions.
std::vector<SelectivePoint> selective_curve(std::span<const Considered> questions, std::size_t most = 100);

}  // namespace ponder::decide
