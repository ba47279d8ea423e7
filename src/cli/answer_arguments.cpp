#include "cli/answer_arguments.hpp"

#include "base/error.hpp"

namespace ponder::cli {

using namespace decide;

void check_range(const char* option, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value < low || value > high)
    fail(ErrorKind::usage, "{} {}: expected {} to {}", option, value, low, high);
}

void check_share(const char* option, const std::optional<double>& value) {
  if (value && !(*value >= 0 && *value <= 1)) {
    fail(ErrorKind::usage, "{} {}: expected 0 to 1", option, *value);
  }
}

void AnswerArguments::add_limits(CLI::App& app, const std::shared_ptr<AnswerArguments>& args) {
  app.add_option("--max-rows", args->limits.max_rows, "Questions answered side by side")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--max-len", args->limits.max_len, "Most tokens of prompt, chain and answer together")
      ->type_name("N")
      ->capture_default_str();
}

void AnswerArguments::add_thinking(CLI::App& app, const std::shared_ptr<AnswerArguments>& args) {
  DraftArguments::add(app, args->draft);
  app.add_flag("--no-drafter", args->no_drafter, "Think without drafts");
  app.add_option(
         "--block", args->block,
         "Candidate rows of every draft cycle, 1 to 8 (default: up to 4, as many as pay); the answers do not "
         "depend on it")
      ->type_name("K");
  app.add_option("--max-think", args->max_think,
                 "Thinking budget of a question in tokens, where a request gives none")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--nothink-threshold", args->threshold,
                 "Do not think where the direct answer is at least this sure, where a request does not say")
      ->type_name("P");
}

void AnswerArguments::check() const {
  check_range("--max-rows", limits.max_rows, 1, 4096);
  check_range("--max-len", limits.max_len, 1, max_setting);
  check_range("--block", block.value_or(1), 1, ops::kHeldRows);
  check_range("--max-think", max_think, 0, max_setting);
  check_share("--nothink-threshold", threshold);
  draft->checked_memory();
  if (draft->drafter && no_drafter) fail(ErrorKind::usage, "--drafter and --no-drafter exclude each other");
}

void AnswerArguments::apply_to(LoadOptions& options) const {
  const std::uint64_t prefixes = options.limits.prefix_cache_bytes;
  options.limits = limits;
  options.limits.prefix_cache_bytes = prefixes;
  if (block) {
    options.limits.block = *block;
    options.limits.fixed_block = true;
  }
  if (draft->drafter) options.drafter = *draft->drafter;
  if (no_drafter) options.drafter.emplace();
  options.draft_memory = draft->checked_memory();
}

}  // namespace ponder::cli
