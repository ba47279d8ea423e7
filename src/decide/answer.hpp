// Probabilities to answers, answers to a reply.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "decide/json_value.hpp"
#include "decide/request.hpp"

namespace ponder::decide {

inline constexpr int max_decimals = 17;

struct AnswerStyle {
  int decimals = 6;               // of every number, 0..max_decimals
  bool name_empty_levels = true;  // the legend gives a level that renders to nothing its index

  // Two decimals mean the public Jeeves server's replies to the byte, empty legend texts included.
  static AnswerStyle with_decimals(int decimals) { return {decimals, decimals != 2}; }
};

// First index of the largest probability.
std::size_t chosen(std::span<const double> probs);

// choice: (max p - 1/k)/(1 - 1/k); score: 1 - sum p_i |i - mode|/(k - 1); 1 for k = 1. Not for noul.
double confidence(QuestionType type, std::span<const double> probs);

// `probs` rounded for printing. Up to two decimals each is rounded alone, as the public server does; from
// three on the result sums to 1 in decimal: where independent rounding misses, the values nearest to their
// rounding edge go the other way, so each stays within one unit of the last place, and neither the order of
// two options nor `chosen` changes.
std::vector<double> rounded_probabilities(std::span<const double> probs, int decimals);

// The answer object of one question; its keys are in the contract's order. Throws Error(internal) when
// `probs` is not one finite probability per option with a sum of 1 (within 1e-3).
Value answer(const Question& question, std::span<const double> probs, const AnswerStyle& style = {});

// {id: answer}. One entry of `probs` a question.
Value answers(std::span<const Question> questions, std::span<const std::vector<double>> probs,
              const AnswerStyle& style = {});

// The text whose token count is usage.output_tokens: json.dumps(answers) of Python.
std::string answers_json_python(const Value& answers);

struct Usage {
  std::int64_t input_tokens = 0;
  std::int64_t output_tokens = 0;
  std::int64_t reasoning_tokens = 0;
  std::int64_t cached_tokens = 0;
};

// How one question was thought about; part of a reply on request.
struct Reasoning {
  bool thought = false;
  bool closed = false;
  std::int64_t tokens = 0;  // of the chain, the closing one included
  std::string text;         // without the closing token
  bool deadline = false;    // answered without thinking because time ran out
};

// The body of a 200. `reasoning` (one a question, same order) goes in when given. latency_ms carries three
// decimals.
Value reply(std::string model, Value answers, const Usage& usage, double latency_ms,
            std::span<const Question> questions = {},
            std::optional<std::span<const Reasoning>> reasoning = std::nullopt);

}  // namespace ponder::decide
