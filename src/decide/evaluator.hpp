// Asks a model the questions of labelled records, in several ways, and keeps what it answers.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decide/decision_model.hpp"
#include "decide/evaluation.hpp"
#include "decide/variants.hpp"

namespace ponder::decide {

// Direct answers to questions put another way, beside the direct answers to the questions as they are.
struct CheckResults {
  std::array<Difference, kVariants.size()> variants;
  Difference question_order;  // records of several questions, the last one first
};

struct EvaluatorSettings {
  std::int64_t max_think = Options{}.max_think;
  bool checks = false;  // needs a mode that does not think
};

class Evaluator {
 public:
  // Adds the modes to `out`, which must have none.
  Evaluator(DecisionModel& model, const EvaluatorSettings& settings, const std::vector<AskMode>& modes,
            Evaluation& out);

  // One record is one request; several are answered together, and then no latency is kept. The requests'
  // own options are overwritten.
  void ask(std::span<LabelledRecord> records);

  const CheckResults& checks() const { return checks_; }
  std::size_t failures() const { return failures_; }                   // requests without an answer
  const std::string& first_failure() const { return first_failure_; }  // "file:line: why"

 private:
  std::vector<RequestOutcome> answer(std::span<const Request> requests, double& ms);
  void keep(std::span<const LabelledRecord> records, const std::vector<RequestOutcome>& outcomes,
            ModeAnswers& mode);
  void run_checks(std::span<const LabelledRecord> records, const std::vector<RequestOutcome>& direct);
  void check_variant(const LabelledRecord& record, const RequestOutcome& direct, std::size_t variant);
  void check_question_order(const LabelledRecord& record, const RequestOutcome& direct);

  DecisionModel& model_;
  EvaluatorSettings settings_;
  Evaluation& out_;
  CheckResults checks_;
  std::size_t failures_ = 0;
  std::string first_failure_;
};

// The direct answers to records, for calibration: probabilities in the order of the questions, empty where a
// request has no answer.
std::vector<std::vector<double>> direct_answers(DecisionModel& model, std::span<LabelledRecord> records);

}  // namespace ponder::decide
