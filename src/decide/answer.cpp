#include "decide/answer.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "decide/json_write.hpp"
#include "decide/python_format.hpp"

namespace ponder::decide {
namespace {

double total(std::span<const double> p) {
  return std::accumulate(p.begin(), p.end(), 0.0);
}

double mean_index(std::span<const double> p) {
  double sum = 0.0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += static_cast<double>(i) * p[i];
  return sum;
}

void check_probabilities(const Question& question, std::span<const double> p) {
  const std::string who = "question " + python_repr(question.id);
  if (p.size() != option_count(question)) {
    fail(ErrorKind::internal, "{}: {} probabilities for {} options", who, p.size(), option_count(question));
  }
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!(p[i] >= 0.0 && p[i] <= 1.001)) {
      fail(ErrorKind::internal, "{}: probability of option {} is {}, expected 0..1", who, i, p[i]);
    }
  }
  if (!(std::abs(total(p) - 1.0) <= 1e-3)) {
    fail(ErrorKind::internal, "{}: probabilities sum to {}, expected 1", who, total(p));
  }
}

// Moves `units` (p in whole units of the last decimal) to a sum of exactly `whole`, one unit an option: up
// where rounding took most away, down where it added most. Equal options give way from the back, so the first
// of equals stays the largest.
void settle(std::span<const double> p, std::vector<std::int64_t>& units, std::int64_t whole) {
  const std::int64_t excess = std::accumulate(units.begin(), units.end(), std::int64_t{0}) - whole;
  if (excess == 0) return;
  const auto lost = [&](std::size_t i) {
    return p[i] - static_cast<double>(units[i]) / static_cast<double>(whole);
  };
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double la = lost(a), lb = lost(b);
    return la != lb ? la > lb : p[a] > p[b];
  });
  if (excess > 0) std::reverse(order.begin(), order.end());
  const std::size_t count = std::min(p.size(), static_cast<std::size_t>(std::abs(excess)));
  for (std::size_t i = 0; i < count; ++i) units[order[i]] -= excess > 0 ? 1 : -1;
}

Value probability_object(const std::vector<std::string>& keys, std::span<const double> probs, int decimals) {
  Object out;
  const std::vector<double> rounded = rounded_probabilities(probs, decimals);
  for (std::size_t i = 0; i < keys.size(); ++i) out.append(keys[i], rounded[i]);
  return out;
}

Value legend(const Question& question, const std::vector<std::string>& keys, bool name_empty_levels) {
  Object out;
  std::vector<std::string> texts = option_texts(question);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (texts[i].empty() && name_empty_levels) texts[i] = keys[i];
    out.append(keys[i], std::move(texts[i]));
  }
  return out;
}

}  // namespace

std::size_t chosen(std::span<const double> probs) {
  return static_cast<std::size_t>(std::max_element(probs.begin(), probs.end()) - probs.begin());
}

double confidence(QuestionType type, std::span<const double> probs) {
  const auto k = static_cast<double>(probs.size());
  if (probs.size() == 1) return 1.0;
  const std::size_t mode = chosen(probs);
  if (type == QuestionType::choice) return (probs[mode] - 1 / k) / (1 - 1 / k);
  double spread = 0.0;
  for (std::size_t i = 0; i < probs.size(); ++i) {
    spread += probs[i] * static_cast<double>(i > mode ? i - mode : mode - i);
  }
  return 1.0 - spread / (k - 1);
}

std::vector<double> rounded_probabilities(std::span<const double> probs, int decimals) {
  std::vector<double> p(probs.begin(), probs.end());
  const bool plain = decimals <= 2;
  const double sum = total(p);
  if (!plain &&
      std::abs(sum - 1.0) > 1e-9) {  // a float32 softmax misses 1 by a little more than printing may
    for (double& x : p) x /= sum;
  }
  std::vector<double> rounded(p.size());
  std::transform(p.begin(), p.end(), rounded.begin(), [&](double x) { return python_round(x, decimals); });
  // From nine decimals on 255 rounding errors stay far below the 1e-6 that clients check.
  if (plain || decimals >= 9) return rounded;
  const double whole = std::pow(10.0, decimals);
  std::vector<std::int64_t> units(p.size());
  std::transform(rounded.begin(), rounded.end(), units.begin(),
                 [&](double x) { return std::llround(x * whole); });
  settle(p, units, std::llround(whole));
  std::transform(units.begin(), units.end(), rounded.begin(),
                 [&](std::int64_t u) { return static_cast<double>(u) / whole; });
  return rounded;
}

Value answer(const Question& question, std::span<const double> probs, const AnswerStyle& style) {
  if (style.decimals < 0 || style.decimals > max_decimals) {
    fail(ErrorKind::usage, "numbers can have 0..{} decimals, not {}", max_decimals, style.decimals);
  }
  check_probabilities(question, probs);
  const auto number = [&](double x) { return python_round(x, style.decimals); };
  Object out;
  if (question.type == QuestionType::noul) {
    out.append("type", "noul");
    out.append("noul", number(probs[1]));
    return out;
  }
  const std::vector<std::string> keys = option_keys(question);
  const double sure = number(confidence(question.type, probs));
  if (question.type == QuestionType::choice) {
    out.append("type", "choice");
    out.append("choice", keys[chosen(probs)]);
    out.append("confidence", sure);
    out.append("probabilities", probability_object(keys, probs, style.decimals));
  } else {
    out.append("type", "score");
    out.append("score", number(mean_index(probs)));
    out.append("legend", legend(question, keys, style.name_empty_levels));
    out.append("probabilities", probability_object(keys, probs, style.decimals));
    out.append("confidence", sure);
  }
  return out;
}

Value answers(std::span<const Question> questions, std::span<const std::vector<double>> probs,
              const AnswerStyle& style) {
  if (questions.size() != probs.size()) {
    fail(ErrorKind::internal, "{} read-outs for {} questions", probs.size(), questions.size());
  }
  Object out;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    out.append(questions[i].id, answer(questions[i], probs[i], style));
  }
  return out;
}

std::string answers_json_python(const Value& answers) {
  return write_python_json(answers);
}

Value reply(std::string model, Value answers, const Usage& usage, double latency_ms,
            std::span<const Question> questions, std::optional<std::span<const Reasoning>> reasoning) {
  Object counts;
  counts.append("input_tokens", usage.input_tokens);
  counts.append("output_tokens", usage.output_tokens);
  counts.append("reasoning_tokens", usage.reasoning_tokens);
  counts.append("cached_tokens", usage.cached_tokens);
  Object out;
  out.append("model", std::move(model));
  out.append("answers", std::move(answers));
  out.append("usage", std::move(counts));
  out.append("latency_ms", python_round(latency_ms, 3));
  if (!reasoning) return out;
  if (reasoning->size() != questions.size()) {
    fail(ErrorKind::internal, "{} chains for {} questions", reasoning->size(), questions.size());
  }
  Object chains;
  for (std::size_t i = 0; i < questions.size(); ++i) {
    const Reasoning& r = (*reasoning)[i];
    Object chain;
    chain.append("thought", r.thought);
    chain.append("closed", r.closed);
    chain.append("tokens", r.tokens);
    chain.append("text", r.text);
    if (r.deadline) chain.append("deadline", true);
    chains.append(questions[i].id, std::move(chain));
  }
  out.append("reasoning", std::move(chains));
  return out;
}

}  // namespace ponder::decide
