// A decision request (POST /v1/systemone, `ponder decide`) from its JSON, checked; messages are the public
// server's.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "decide/json_value.hpp"

namespace ponder::decide {

inline constexpr std::size_t max_options = 255;

enum class QuestionType { choice, noul, score };

struct Question {
  std::string id;  // any text, "" too; never reaches the model
  QuestionType type = QuestionType::noul;
  Value instructions;  // null when absent
  Value criteria;  // choice: object of 1..255; noul: null or object of "true"/"false"; score: array of 1..255
};

// How many options: the length of `probs` that answers this question.
std::size_t option_count(const Question& question);

// Keys of the answer, in option order: the labels; "false", "true"; "0", "1", ...
std::vector<std::string> option_keys(const Question& question);

// What the model reads, in the same order, not yet sanitised.
std::vector<std::string> option_texts(const Question& question);

// Larger budgets and deadlines in a request count as this (2^30), so that sums of them cannot overflow.
inline constexpr std::int64_t max_setting = std::int64_t{1} << 30;

struct Options {
  bool think = true;
  std::int64_t max_think = 2560;            // tokens, 0..max_setting
  std::optional<double> nothink_threshold;  // 0..1
  bool return_reasoning = false;
  std::optional<std::int64_t> deadline_ms;  // 1..max_setting
  std::optional<std::string> skill;
};

struct Request {
  Value state;
  std::vector<Question> questions;  // in the order of the request, ids distinct
  std::optional<std::string> model;
  Options options;
};

// Throws Error(invalid_input) with one line saying what is wrong. What `body` leaves out is taken from
// `defaults`.
Request parse_request(Value body, const Options& defaults = {});

}  // namespace ponder::decide
