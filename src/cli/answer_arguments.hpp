// Options about how questions are answered, which several verbs share.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <CLI/CLI.hpp>

#include "cli/arguments.hpp"
#include "decide/decision_model.hpp"

namespace ponder::cli {

// Throws Error(usage) naming the option unless low <= value <= high.
void check_range(const char* option, std::int64_t value, std::int64_t low, std::int64_t high);
void check_share(const char* option, const std::optional<double>& value);  // 0 to 1

struct AnswerArguments {
  decide::AnswerLimits limits;
  std::shared_ptr<DraftArguments> draft = std::make_shared<DraftArguments>();
  bool no_drafter = false;
  std::optional<int> block;
  std::int64_t max_think = decide::Options{}.max_think;
  std::optional<double> threshold;

  // --max-rows and --max-len.
  static void add_limits(CLI::App& app, const std::shared_ptr<AnswerArguments>& args);
  // The drafter's options, --max-think and --nothink-threshold.
  static void add_thinking(CLI::App& app, const std::shared_ptr<AnswerArguments>& args);

  void check() const;  // throws Error(usage)
  void apply_to(decide::LoadOptions& options) const;
};

}  // namespace ponder::cli
