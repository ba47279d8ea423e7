// What an evaluation keeps of its questions and of the answers they got, and its summaries by group.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decide/labelled_record.hpp"
#include "decide/metrics.hpp"

namespace ponder::decide {

// An answer at least this sure counts as sure where the state does not say.
inline constexpr double sure_from = 0.9;

struct EvaluatedQuestion {
  std::uint32_t source = 0;  // index into Evaluation::sources
  std::uint32_t file = 0;    // which of the files it came from
  QuestionType type = QuestionType::noul;
  std::uint32_t options = 0;
  std::optional<std::uint32_t> label;
};

struct AnsweredQuestion {
  bool answered = false;
  bool thought = false, closed = false;
  std::uint32_t predicted = 0;
  std::uint32_t prompt_tokens = 0, chain_tokens = 0, cycles = 0;
  bool strict = true, valid = true;  // JevBench's, of the probabilities as they are printed
};

// The answers to all questions, in order; probabilities lie in one piece.
class AnswerSheet {
 public:
  void add(const AnsweredQuestion& answer, std::span<const double> probs);
  std::size_t size() const { return lines_.size(); }
  const AnsweredQuestion& operator[](std::size_t i) const { return lines_[i]; }
  std::span<const double> probs(std::size_t i) const {  // empty where there is no answer
    return std::span<const double>(probs_).subspan(starts_[i], starts_[i + 1] - starts_[i]);
  }
  double confidence(std::size_t i) const { return probs(i)[lines_[i].predicted]; }
  // Counts answer i, whose right option is `label`, one that is not there or not valid as failed.
  void score(std::size_t i, std::uint32_t label, MetricSums& sums) const;

 private:
  std::vector<AnsweredQuestion> lines_;
  std::vector<std::size_t> starts_{0};
  std::vector<double> probs_;
};

// A way of asking.
struct AskMode {
  std::string name;
  bool think = false;
  std::optional<double> threshold;
};

struct ModeAnswers {
  AskMode mode;
  AnswerSheet sheet;
  std::vector<double> latencies_ms;  // one a request where each was asked alone
  double seconds = 0;                // of all requests
};

// Of two ways of asking the same questions.
struct Difference {
  std::size_t questions = 0;
  std::size_t options = 0;
  std::size_t flips = 0;     // another answer
  double change = 0;         // sum of |p - p'| over options
  double largest = 0;        // change of one option
  std::size_t labelled = 0;  // of the questions
  std::size_t right_before = 0, right_after = 0;

  void add(std::span<const double> before, std::span<const double> after, std::size_t predicted_before,
           std::size_t predicted_after, std::optional<std::uint32_t> label);
  double flip_rate() const { return static_cast<double>(flips) / static_cast<double>(questions); }
  double mean_change() const { return change / static_cast<double>(options); }
};

struct Evaluation {
  RecordForm form = RecordForm::requests;
  std::size_t records = 0;
  std::vector<std::string> sources;  // by first appearance
  std::vector<EvaluatedQuestion> questions;
  std::vector<ModeAnswers> modes;

  std::uint32_t source_index(const std::string& name);
  const ModeAnswers* find(std::string_view mode) const;
};

struct GroupSummary {
  std::string name;
  Metrics metrics;                 // of labelled questions
  std::size_t unanswerable = 0;    // questions whose state does not say
  std::size_t sure = 0;            // of these, answers at least `sure_from` sure
  double unanswerable_change = 0;  // sum over these of half the sum of |p - 1/n|
};

using QuestionFilter = std::function<bool(const EvaluatedQuestion&)>;

GroupSummary summarize(const Evaluation& evaluation, const ModeAnswers& answers, std::string name,
                       const QuestionFilter& filter = {});
// One for each source, or each type, that occurs.
std::vector<GroupSummary> by_source(const Evaluation& evaluation, const ModeAnswers& answers);
std::vector<GroupSummary> by_type(const Evaluation& evaluation, const ModeAnswers& answers);

const char* type_name(QuestionType type);

std::vector<Verdict> verdicts(const Evaluation& evaluation, const ModeAnswers& answers);

// Questions answered in both ways.
std::vector<Considered> considered(const Evaluation& evaluation, const ModeAnswers& direct,
                                   const ModeAnswers& thought);

// Of one way on two models, or weight types: the same questions in the same order.
Difference difference(const Evaluation& evaluation, const AnswerSheet& before, const AnswerSheet& after);

struct Tokens {
  std::uint64_t questions = 0, input = 0, reasoning = 0, thought = 0, closed = 0, cycles = 0;
  double accepted() const { return static_cast<double>(reasoning) / static_cast<double>(cycles); }
};
Tokens count_tokens(const AnswerSheet& sheet);

}  // namespace ponder::decide
