#include <algorithm>

#include "decide/answerer_rows.hpp"

namespace ponder::decide {
Answerer::Answerer(engine::Engine& engine, const Encoder& encoder, const hybrid::PointerHead& head,
                   const AnswerLimits& limits)
    : engine_(engine),
      encoder_(encoder),
      head_(head),
      limits_(limits),
      cycles_(engine,
              {.limit = std::min<std::int64_t>(engine.model().vocab_size(), encoder.tokenizer().vocab_size()),
               .banned = encoder.banned().data(),
               .end = encoder.think_end()},
              limits.block, limits.fixed_block, counters_),
      prefixes_(engine, limits.prefix_cache_bytes) {}

// The rows a draft cycle may run past the end, and a closing token: part of the published accounting.
std::int64_t Answerer::room(const EncodedQuestion& encoded) const {
  const std::int64_t slack = limits_.block + (limits_.block - 1) + 2;
  return limits_.max_len - static_cast<std::int64_t>(encoded.prompt.size() + encoded.remainder.size()) -
         slack;
}

void Answerer::check_length(const Question& question, const EncodedQuestion& encoded) const {
  if (room(encoded) >= static_cast<std::int64_t>(encoder_.empty_think().size())) return;
  fail(ErrorKind::too_large, "question '{}': input of {} tokens exceeds the limit of {} tokens",
       printable(question.id), encoded.prompt.size() + encoded.remainder.size(), limits_.max_len);
}

void Answerer::encode(const Request& request, std::vector<QuestionResult>& results) const {
  if (request.options.skill) {
    fail(ErrorKind::invalid_input, "skill '{}': this model has no skills", printable(*request.options.skill));
  }
  const std::string state = state_text(request.state);
  std::int64_t tokens = 0;
  for (std::size_t q = 0; q < request.questions.size(); ++q) {
    EncodedQuestion& encoded = results[q].encoded;
    encoded = encoder_.encode(state, request.questions[q]);
    check_length(request.questions[q], encoded);
    tokens += static_cast<std::int64_t>(encoded.prompt.size() + encoded.remainder.size());
    if (tokens > limits_.max_request_tokens) {
      fail(ErrorKind::too_large,
           "question '{}': {} tokens in the {} questions up to it exceed a request's limit of {}",
           printable(request.questions[q].id), tokens, q + 1, limits_.max_request_tokens);
    }
  }
}

std::vector<RequestOutcome> Answerer::answer_batch(std::span<const Request> requests,
                                                   const std::stop_token& stop) {
  started_.restart();
  std::vector<RequestOutcome> outcomes(requests.size());
  for (std::size_t r = 0; r < requests.size(); ++r) {
    try {
      outcomes[r].questions.resize(requests[r].questions.size());
      encode(requests[r], outcomes[r].questions);
    } catch (const Error& error) {
      outcomes[r].error = error;
    }
  }
  std::vector<Group> direct, thinking;
  plan_groups(requests, outcomes, false, direct);
  plan_groups(requests, outcomes, true, thinking);
  for (Group& group : direct) {
    share_prefix(group, stop);
    read_without_thinking(group, stop);
  }
  // Of those that may think, groups in which nobody has room to.
  for (Group& group : thinking) {
    if (group.anyone()) continue;
    share_prefix(group, stop);
    read_without_thinking(group, stop);
  }
  std::erase_if(thinking, [](const Group& group) { return !group.anyone(); });
  think(thinking, stop);
  return outcomes;
}

void Answerer::plan_groups(std::span<const Request> requests, std::vector<RequestOutcome>& outcomes,
                           bool thinking, std::vector<Group>& groups) {
  std::vector<std::size_t> mine, sizes;
  for (std::size_t r = 0; r < requests.size(); ++r) {
    const Options& options = requests[r].options;
    if (outcomes[r].error || (options.think && options.max_think > 0) != thinking) continue;
    mine.push_back(r);
    sizes.push_back(requests[r].questions.size());
  }
  for (const auto& places : pack_requests(sizes, static_cast<std::size_t>(limits_.max_rows))) {
    Group& group = groups.emplace_back();
    for (const Place& place : places) {
      RequestOutcome& outcome = outcomes[mine[place.request]];
      Row& row = group.rows.emplace_back(cycles_.new_chain());
      row.options = &requests[mine[place.request]].options;
      row.question = &requests[mine[place.request]].questions[place.question];
      row.result = &outcome.questions[place.question];
      row.error = &outcome.error;
      const std::int64_t budget = row.options->think ? row.options->max_think : 0;
      row.chain.cap = std::max<std::int64_t>(0, std::min(budget, room(row.encoded())));
    }
  }
}

// Runs the group's common prefix once; every row continues on a fork of it.
void Answerer::share_prefix(Group& group, const std::stop_token& stop) {
  std::vector<std::span<const std::int32_t>> prompts;
  prompts.reserve(group.rows.size());
  for (const Row& row : group.rows) prompts.emplace_back(row.encoded().prompt);
  const bool several = group.rows.size() > 1;
  const std::size_t shared = several ? common_prefix(prompts) : 0;
  // A question alone has nobody to share with but later requests: whole pages do.
  const std::size_t fed = several               ? shared
                          : prefixes_.enabled() ? (prompts[0].size() - 1) / ops::kPageRows * ops::kPageRows
                                                : 0;
  feed_prefix(group, prompts[0].first(fed), stop);
  counters_.shared_tokens += shared * (group.rows.size() - 1);
  for (std::size_t i = 0; i < group.rows.size(); ++i) {
    Row& row = group.rows[i];
    row.prefix = fed;
    const std::size_t prompt = row.encoded().prompt.size();
    row.result->prompt_tokens = static_cast<std::int64_t>(i == 0 ? prompt : prompt - shared);
  }
}

// From the longest prefix known, keeping what later requests may begin with: the state, and all of `ids`,
// both cut to whole pages.
void Answerer::feed_prefix(Group& group, std::span<const std::int32_t> ids, const std::stop_token& stop) {
  group.prefix = prefixes_.find(ids);
  const auto known = static_cast<std::size_t>(group.prefix->size());
  counters_.reused_tokens += known;
  counters_.prefill_tokens += ids.size() - known;
  const auto question = std::find(ids.begin(), ids.end(), encoder_.question_marker());
  const auto whole_pages = [](std::size_t n) { return n / ops::kPageRows * ops::kPageRows; };
  // A state that grows may join its last word with what follows, so its last tokens are left out.
  constexpr std::ptrdiff_t last_word = 8;
  const auto state =
      static_cast<std::size_t>(std::max(question - ids.begin() - last_word, std::ptrdiff_t{0}));
  const std::size_t cuts[] = {whole_pages(state), whole_pages(ids.size()), ids.size()};
  for (const std::size_t cut : cuts) {
    const auto at = static_cast<std::size_t>(group.prefix->size());
    if (cut <= at) continue;
    const engine::ExtendJob job{&*group.prefix, ids.subspan(at, cut - at), {}, {}};
    engine_.extend({&job, 1}, stop);
    prefixes_.put(ids.first(cut), *group.prefix);
  }
}

// Nobody thinks: the rest of the prompt, the empty think and the remainder in one go.
void Answerer::read_without_thinking(Group& group, const std::stop_token& stop) {
  std::vector<ReadOut> read_outs;
  std::vector<engine::Sequence> sequences;
  for (Row& row : group.rows) {
    std::vector<std::int32_t> before(row.encoded().prompt.begin() + static_cast<std::ptrdiff_t>(row.prefix),
                                     row.encoded().prompt.end());
    append(before, encoder_.empty_think());
    read_outs.push_back(make_read_out(std::move(before), row.encoded(), 0));
    counters_.prefill_tokens += read_outs.back().ids.size();
    sequences.push_back(group.prefix->fork());
  }
  group.prefix.reset();
  run_read_outs(
      engine_, head_, hidden_, read_outs, sequences, stop,
      [&](std::size_t i, std::vector<double> probs) {
        group.rows[i].result->probs = probs;
        group.rows[i].result->nothink_probs = std::move(probs);
      },
      [&](std::size_t i, const Error& error) { group.rows[i].fail_with(error); });
}

}  // namespace ponder::decide
