#include "decide/evaluator.hpp"

#include <algorithm>
#include <numeric>

#include "base/clock.hpp"
#include "decide/answer.hpp"
#include "decide/jevbench.hpp"

namespace ponder::decide {
namespace {

Options options_of(const AskMode& mode, std::int64_t max_think) {
  Options out;
  out.think = mode.think;
  out.max_think = max_think;
  out.nothink_threshold = mode.threshold;
  return out;
}

Options direct_options() {
  return options_of({"no-think", false, {}}, 0);
}

}  // namespace

Evaluator::Evaluator(DecisionModel& model, const EvaluatorSettings& settings,
                     const std::vector<AskMode>& modes, Evaluation& out)
    : model_(model), settings_(settings), out_(out) {
  for (const AskMode& mode : modes) out_.modes.push_back({mode, {}, {}, 0});
}

std::vector<RequestOutcome> Evaluator::answer(std::span<const Request> requests, double& ms) {
  model_.check_unchanged();
  const Stopwatch watch;
  std::vector<RequestOutcome> outcomes = model_.answerer().answer_batch(requests);
  ms = watch.elapsed_ms();
  return outcomes;
}

void Evaluator::ask(std::span<LabelledRecord> records) {
  std::vector<Request> requests;
  for (LabelledRecord& record : records) {
    ++out_.records;
    for (std::size_t q = 0; q < record.labels.size(); ++q) {
      const Question& question = record.request.questions[q];
      out_.questions.push_back({out_.source_index(record.labels[q].source), record.file, question.type,
                                static_cast<std::uint32_t>(option_count(question)), record.labels[q].option});
    }
    requests.push_back(record.request);
  }
  for (ModeAnswers& mode : out_.modes) {
    for (Request& r : requests) r.options = options_of(mode.mode, settings_.max_think);
    double ms = 0;
    const std::vector<RequestOutcome> outcomes = answer(requests, ms);
    mode.seconds += ms / 1000;
    if (records.size() == 1) mode.latencies_ms.push_back(ms);
    keep(records, outcomes, mode);
    if (settings_.checks && !mode.mode.think) run_checks(records, outcomes);
  }
}

void Evaluator::keep(std::span<const LabelledRecord> records, const std::vector<RequestOutcome>& outcomes,
                     ModeAnswers& mode) {
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (outcomes[r].error) {
      if (failures_++ == 0) first_failure_ = records[r].where + ": " + outcomes[r].error->what();
      for (std::size_t q = 0; q < records[r].labels.size(); ++q) mode.sheet.add({}, {});
      continue;
    }
    for (std::size_t q = 0; q < records[r].labels.size(); ++q) {
      const QuestionResult& result = outcomes[r].questions[q];
      AnsweredQuestion a;
      a.answered = true;
      a.thought = result.thought;
      a.closed = result.closed;
      a.predicted = static_cast<std::uint32_t>(chosen(result.probs));
      a.prompt_tokens = static_cast<std::uint32_t>(result.prompt_tokens);
      a.chain_tokens = static_cast<std::uint32_t>(result.chain.size());
      a.cycles = static_cast<std::uint32_t>(result.accepted.size());
      if (records[r].form == RecordForm::jevbench) {
        const BenchmarkAnswer judged = judge_answer(records[r].request.questions[q], result.probs);
        a.predicted = static_cast<std::uint32_t>(judged.predicted);
        a.strict = judged.strict;
        a.valid = judged.valid;
      }
      mode.sheet.add(a, result.probs);
    }
  }
}

void Evaluator::run_checks(std::span<const LabelledRecord> records,
                           const std::vector<RequestOutcome>& direct) {
  for (std::size_t r = 0; r < records.size(); ++r) {
    if (direct[r].error) continue;
    for (std::size_t v = 0; v < kVariants.size(); ++v) check_variant(records[r], direct[r], v);
    check_question_order(records[r], direct[r]);
  }
}

void Evaluator::check_variant(const LabelledRecord& record, const RequestOutcome& direct,
                              std::size_t variant) {
  Request request;
  request.state = record.request.state;
  request.options = direct_options();
  std::vector<std::size_t> who;
  std::vector<std::vector<std::size_t>> places;
  for (std::size_t q = 0; q < record.labels.size(); ++q) {
    auto varied = vary(record.request.questions[q], kVariants[variant]);
    if (!varied) continue;
    who.push_back(q);
    places.push_back(std::move(varied->places));
    request.questions.push_back(std::move(varied->question));
  }
  if (who.empty()) return;
  double ms = 0;
  const RequestOutcome outcome = std::move(answer({&request, 1}, ms).front());
  if (outcome.error) return;  // other words may be too long where the original ones were not
  for (std::size_t i = 0; i < who.size(); ++i) {
    const std::vector<double>& before = direct.questions[who[i]].probs;
    std::vector<double> after(before.size());
    for (std::size_t j = 0; j < after.size(); ++j) after[places[i][j]] = outcome.questions[i].probs[j];
    checks_.variants[variant].add(before, after, chosen(before), chosen(after), record.labels[who[i]].option);
  }
}

void Evaluator::check_question_order(const LabelledRecord& record, const RequestOutcome& direct) {
  if (record.labels.size() < 2) return;
  Request request = record.request;
  request.options = direct_options();
  std::reverse(request.questions.begin(), request.questions.end());
  double ms = 0;
  const RequestOutcome outcome = std::move(answer({&request, 1}, ms).front());
  if (outcome.error) return;
  for (std::size_t q = 0; q < record.labels.size(); ++q) {
    const std::vector<double>& before = direct.questions[q].probs;
    const std::vector<double>& after = outcome.questions[record.labels.size() - 1 - q].probs;
    checks_.question_order.add(before, after, chosen(before), chosen(after), record.labels[q].option);
  }
}

std::vector<std::vector<double>> direct_answers(DecisionModel& model, std::span<LabelledRecord> records) {
  std::vector<Request> requests;
  for (LabelledRecord& record : records) {
    requests.push_back(std::move(record.request));
    requests.back().options = direct_options();
  }
  model.check_unchanged();
  std::vector<std::vector<double>> out;
  std::vector<RequestOutcome> outcomes = model.answerer().answer_batch(requests);
  for (std::size_t r = 0; r < records.size(); ++r) {
    for (std::size_t q = 0; q < records[r].labels.size(); ++q) {
      out.push_back(outcomes[r].error ? std::vector<double>() : std::move(outcomes[r].questions[q].probs));
    }
  }
  return out;
}

}  // namespace ponder::decide
