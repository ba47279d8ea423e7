#include "decide/evaluation.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"

namespace ponder::decide {

void AnswerSheet::add(const AnsweredQuestion& answer, std::span<const double> probs) {
  lines_.push_back(answer);
  probs_.insert(probs_.end(), probs.begin(), probs.end());
  starts_.push_back(probs_.size());
}

void AnswerSheet::score(std::size_t i, std::uint32_t label, MetricSums& sums) const {
  const AnsweredQuestion& a = lines_[i];
  if (a.answered && a.valid) {
    sums.add(probs(i), a.predicted, label);
  } else {
    sums.add_failed();
  }
}

void Difference::add(std::span<const double> before, std::span<const double> after,
                     std::size_t predicted_before, std::size_t predicted_after,
                     std::optional<std::uint32_t> label) {
  ++questions;
  options += before.size();
  flips += predicted_before != predicted_after ? 1 : 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double d = std::abs(before[i] - after[i]);
    change += d;
    largest = std::max(largest, d);
  }
  if (!label) return;
  ++labelled;
  right_before += predicted_before == *label ? 1 : 0;
  right_after += predicted_after == *label ? 1 : 0;
}

std::uint32_t Evaluation::source_index(const std::string& name) {
  const auto at = std::find(sources.begin(), sources.end(), name);
  const auto index = static_cast<std::uint32_t>(at - sources.begin());
  if (at == sources.end()) sources.push_back(name);
  return index;
}

const ModeAnswers* Evaluation::find(std::string_view mode) const {
  for (const ModeAnswers& m : modes) {
    if (m.mode.name == mode) return &m;
  }
  return nullptr;
}

const char* type_name(QuestionType type) {
  switch (type) {
    case QuestionType::choice:
      return "choice";
    case QuestionType::noul:
      return "noul";
    case QuestionType::score:
      break;
  }
  return "score";
}

GroupSummary summarize(const Evaluation& evaluation, const ModeAnswers& answers, std::string name,
                       const QuestionFilter& filter) {
  GroupSummary out;
  out.name = std::move(name);
  MetricSums sums;
  for (std::size_t i = 0; i < evaluation.questions.size(); ++i) {
    const EvaluatedQuestion& q = evaluation.questions[i];
    if (filter && !filter(q)) continue;
    const AnsweredQuestion& a = answers.sheet[i];
    const std::span<const double> probs = answers.sheet.probs(i);
    if (!q.label) {
      ++out.unanswerable;
      if (!a.answered) continue;
      out.sure += answers.sheet.confidence(i) >= sure_from ? 1 : 0;
      for (const double p : probs)
        out.unanswerable_change += std::abs(p - 1.0 / static_cast<double>(probs.size())) / 2;
    } else {
      answers.sheet.score(i, *q.label, sums);
    }
  }
  out.metrics = sums.total();
  return out;
}

std::vector<GroupSummary> by_source(const Evaluation& evaluation, const ModeAnswers& answers) {
  std::vector<GroupSummary> out;
  for (std::uint32_t s = 0; s < evaluation.sources.size(); ++s) {
    out.push_back(summarize(evaluation, answers, evaluation.sources[s],
                            [s](const EvaluatedQuestion& q) { return q.source == s; }));
  }
  return out;
}

std::vector<GroupSummary> by_type(const Evaluation& evaluation, const ModeAnswers& answers) {
  std::vector<GroupSummary> out;
  for (const QuestionType type : {QuestionType::choice, QuestionType::noul, QuestionType::score}) {
    GroupSummary group = summarize(evaluation, answers, type_name(type),
                                   [type](const EvaluatedQuestion& q) { return q.type == type; });
    if (group.metrics.count + group.unanswerable > 0) out.push_back(std::move(group));
  }
  return out;
}

std::vector<Verdict> verdicts(const Evaluation& evaluation, const ModeAnswers& answers) {
  std::vector<Verdict> out;
  for (std::size_t i = 0; i < evaluation.questions.size(); ++i) {
    const EvaluatedQuestion& q = evaluation.questions[i];
    const AnsweredQuestion& a = answers.sheet[i];
    if (!q.label || !a.answered || !a.valid) continue;
    out.push_back({answers.sheet.confidence(i), a.predicted == *q.label});
  }
  return out;
}

std::vector<Considered> considered(const Evaluation& evaluation, const ModeAnswers& direct,
                                   const ModeAnswers& thought) {
  std::vector<Considered> out;
  for (std::size_t i = 0; i < evaluation.questions.size(); ++i) {
    const EvaluatedQuestion& q = evaluation.questions[i];
    const AnsweredQuestion &d = direct.sheet[i], &t = thought.sheet[i];
    if (!d.answered || !t.answered) continue;
    const std::span<const double> probs = direct.sheet.probs(i);
    Considered c;
    c.confidence = *std::max_element(probs.begin(), probs.end());
    c.labelled = q.label.has_value();
    c.direct_correct = q.label && d.valid && d.predicted == *q.label;
    c.thought_correct = q.label && t.valid && t.predicted == *q.label;
    c.tokens = t.chain_tokens;
    out.push_back(c);
  }
  return out;
}

Difference difference(const Evaluation& evaluation, const AnswerSheet& before, const AnswerSheet& after) {
  Difference out;
  for (std::size_t i = 0; i < evaluation.questions.size(); ++i) {
    if (!before[i].answered || !after[i].answered) continue;
    out.add(before.probs(i), after.probs(i), before[i].predicted, after[i].predicted,
            evaluation.questions[i].label);
  }
  return out;
}

Tokens count_tokens(const AnswerSheet& sheet) {
  Tokens out;
  for (std::size_t i = 0; i < sheet.size(); ++i) {
    const AnsweredQuestion& a = sheet[i];
    if (!a.answered) continue;
    ++out.questions;
    out.input += a.prompt_tokens;
    out.reasoning += a.chain_tokens;
    out.thought += a.thought ? 1 : 0;
    out.closed += a.closed ? 1 : 0;
    out.cycles += a.cycles;
  }
  return out;
}

}  // namespace ponder::decide
