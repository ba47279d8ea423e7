#include "decide/answerer.hpp"

#include <algorithm>

namespace ponder::decide {
namespace {

// How much of its time budget a question may think away: reading the answer comes after.
constexpr double kThinkingShare = 0.9;

std::span<const std::int32_t> tail(const std::vector<std::int32_t>& ids, std::size_t from) {
  return std::span<const std::int32_t>(ids).subspan(from);
}

void append(std::vector<std::int32_t>& to, std::span<const std::int32_t> more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

// One question of a group.
struct Answerer::Row {
  const Options* options = nullptr;
  const Question* question = nullptr;
  QuestionResult* result = nullptr;
  std::optional<Error>* error = nullptr;  // of the whole request
  std::optional<engine::Sequence> sequence;
  std::int64_t cap = 0;     // tokens it may think
  std::int32_t token = -1;  // the newest of the chain, not yet fed
  bool active = false;      // still thinking

  const EncodedQuestion& encoded() const { return result->encoded; }
  bool failed() const { return error->has_value(); }
  void fail_with(const Error& e) const {
    *error = Error(e.kind(), fmt::format("question '{}': {}", printable(question->id), e.what()));
  }
  bool wants_nothink() const {
    return cap == 0 || options->nothink_threshold.has_value() || options->deadline_ms.has_value();
  }
};

Answerer::Answerer(engine::Engine& engine, const Encoder& encoder, const hybrid::PointerHead& head,
                   const AnswerLimits& limits)
    : engine_(engine), encoder_(encoder), head_(head), limits_(limits) {
  token_limit_ = std::min<std::int64_t>(engine_.model().vocab_size(), encoder_.tokenizer().vocab_size());
}

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
  for (const bool thinking : {false, true}) {
    std::vector<std::size_t> mine;
    std::vector<std::size_t> sizes;
    for (std::size_t r = 0; r < requests.size(); ++r) {
      const Options& options = requests[r].options;
      if (outcomes[r].error || (options.think && options.max_think > 0) != thinking) continue;
      mine.push_back(r);
      sizes.push_back(requests[r].questions.size());
    }
    for (const auto& group : pack_requests(sizes, static_cast<std::size_t>(limits_.max_rows))) {
      std::vector<Row> rows;
      for (const Place& place : group) {
        RequestOutcome& outcome = outcomes[mine[place.request]];
        if (outcome.error) continue;  // an earlier group of the same request failed
        Row& row = rows.emplace_back();
        row.options = &requests[mine[place.request]].options;
        row.question = &requests[mine[place.request]].questions[place.question];
        row.result = &outcome.questions[place.question];
        row.error = &outcome.error;
      }
      if (!rows.empty()) run_group(rows, stop);
    }
  }
  return outcomes;
}

void Answerer::run_group(std::vector<Row>& rows, const std::stop_token& stop) {
  bool anyone = false;
  for (Row& row : rows) {
    const std::int64_t budget = row.options->think ? row.options->max_think : 0;
    row.cap = std::max<std::int64_t>(0, std::min(budget, room(row.encoded())));
    anyone = anyone || row.cap > 0;
  }
  const std::size_t shared = share_prefix(rows, stop);
  if (!anyone) {
    read_without_thinking(rows, shared, stop);
    return;
  }
  feed_prompts(rows, shared, stop);
  read_nothink(rows, stop);
  decode(rows, stop);
  read_after_chains(rows, stop);
}

// Runs the group's common prefix once; every row continues on a fork of it.
std::size_t Answerer::share_prefix(std::vector<Row>& rows, const std::stop_token& stop) {
  std::vector<std::span<const std::int32_t>> prompts;
  prompts.reserve(rows.size());
  for (const Row& row : rows) prompts.emplace_back(row.encoded().prompt);
  const std::size_t shared = rows.size() > 1 ? common_prefix(prompts) : 0;
  engine::Sequence prefix = engine_.new_sequence();
  if (shared > 0) {
    const engine::ExtendJob job{&prefix, prompts[0].subspan(0, shared), {}, {}};
    engine_.extend({&job, 1}, stop);
    counters_.prefill_tokens += shared;
    counters_.shared_tokens += shared * (rows.size() - 1);
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    rows[i].sequence = prefix.fork();
    const std::size_t prompt = rows[i].encoded().prompt.size();
    rows[i].result->prompt_tokens = static_cast<std::int64_t>(i == 0 ? prompt : prompt - shared);
  }
  return shared;
}

namespace {

// Remainders to read in several states at once: which ids each row feeds, and where its options end.
struct ReadOut {
  std::vector<std::int32_t> ids;
  std::vector<int> wanted;  // option ends, then the decide row
};

ReadOut make_read_out(std::vector<std::int32_t> before, const EncodedQuestion& encoded, std::size_t skip) {
  ReadOut out;
  out.ids = std::move(before);
  const std::size_t base = out.ids.size();
  append(out.ids, tail(encoded.remainder, skip));
  for (const std::size_t end : encoded.option_ends) out.wanted.push_back(static_cast<int>(base + end - skip));
  out.wanted.push_back(static_cast<int>(out.ids.size()) - 1);
  return out;
}

// Feeds every read-out to its sequence and turns the hidden rows into probabilities; `done(i, probs)` gets
// them, `failed(i, error)` a read-out that is no number.
template <class Done, class Failed>
void run_read_outs(engine::Engine& engine, const hybrid::PointerHead& head, std::vector<float>& hidden,
                   std::span<const ReadOut> read_outs, std::span<engine::Sequence> sequences,
                   const std::stop_token& stop, Done&& done, Failed&& failed) {
  const auto width = static_cast<std::size_t>(engine.model().hidden_size());
  std::size_t rows = 0;
  for (const ReadOut& r : read_outs) rows += r.wanted.size();
  hidden.resize(rows * width);
  std::vector<engine::ExtendJob> jobs;
  float* at = hidden.data();
  for (std::size_t i = 0; i < read_outs.size(); ++i) {
    jobs.push_back(
        {&sequences[i], read_outs[i].ids, read_outs[i].wanted, {at, static_cast<std::int64_t>(width)}});
    at += read_outs[i].wanted.size() * width;
  }
  engine.extend(jobs, stop);
  for (std::size_t i = 0; i < read_outs.size(); ++i) {
    const int options = static_cast<int>(read_outs[i].wanted.size()) - 1;
    try {
      done(i, head.probabilities(jobs[i].hidden, options, jobs[i].hidden[options]));
    } catch (const Error& error) {
      failed(i, error);
    }
  }
}

}  // namespace

// Nobody thinks: the rest of the prompt, the empty think and the remainder in one go.
void Answerer::read_without_thinking(std::vector<Row>& rows, std::size_t shared,
                                     const std::stop_token& stop) {
  std::vector<ReadOut> read_outs;
  std::vector<engine::Sequence> sequences;
  for (Row& row : rows) {
    std::vector<std::int32_t> before(row.encoded().prompt.begin() + static_cast<std::ptrdiff_t>(shared),
                                     row.encoded().prompt.end());
    append(before, encoder_.empty_think());
    read_outs.push_back(make_read_out(std::move(before), row.encoded(), 0));
    counters_.prefill_tokens += read_outs.back().ids.size();
    sequences.push_back(std::move(*row.sequence));
  }
  run_read_outs(
      engine_, head_, hidden_, read_outs, sequences, stop,
      [&](std::size_t i, std::vector<double> probs) {
        rows[i].result->probs = probs;
        rows[i].result->nothink_probs = std::move(probs);
      },
      [&](std::size_t i, const Error& error) { rows[i].fail_with(error); });
}

// Greedy choices for the first `rows` rows of hidden_; -1 where no logit is a number.
std::vector<std::int32_t> Answerer::pick(std::size_t rows) {
  std::vector<std::int32_t> ids(rows);
  engine_.model().argmax({hidden_.data(), engine_.model().hidden_size()}, static_cast<int>(rows),
                         token_limit_, encoder_.banned().data(), ids.data());
  return ids;
}

// The rest of each prompt; a row's first token comes from its last prompt row.
void Answerer::feed_prompts(std::vector<Row>& rows, std::size_t shared, const std::stop_token& stop) {
  const auto width = static_cast<std::size_t>(engine_.model().hidden_size());
  hidden_.resize(rows.size() * width);
  std::vector<int> last;
  last.reserve(rows.size());
  for (const Row& row : rows) last.push_back(static_cast<int>(row.encoded().prompt.size() - shared) - 1);
  std::vector<engine::ExtendJob> jobs;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto ids = tail(rows[i].encoded().prompt, shared);
    counters_.prefill_tokens += ids.size();
    jobs.push_back({&*rows[i].sequence,
                    ids,
                    {&last[i], 1},
                    {hidden_.data() + i * width, static_cast<std::int64_t>(width)}});
  }
  engine_.extend(jobs, stop);
  const std::vector<std::int32_t> first = pick(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].token = first[i];
}

// The no-think answers, read on forks; a confident one ends its row's thinking before it starts.
void Answerer::read_nothink(std::vector<Row>& rows, const std::stop_token& stop) {
  std::vector<std::size_t> who;
  std::vector<ReadOut> read_outs;
  std::vector<engine::Sequence> forks;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].wants_nothink()) continue;
    who.push_back(i);
    read_outs.push_back(make_read_out(encoder_.empty_think(), rows[i].encoded(), 0));
    counters_.prefill_tokens += read_outs.back().ids.size();
    forks.push_back(rows[i].sequence->fork());
  }
  run_read_outs(
      engine_, head_, hidden_, read_outs, forks, stop,
      [&](std::size_t n, std::vector<double> probs) {
        Row& row = rows[who[n]];
        const double top = *std::max_element(probs.begin(), probs.end());
        if (row.options->nothink_threshold && top >= *row.options->nothink_threshold) row.cap = 0;
        row.result->probs = probs;
        row.result->nothink_probs = std::move(probs);
      },
      [&](std::size_t n, const Error& error) { rows[who[n]].fail_with(error); });
}

// Greedy decoding, one token a row and step, all thinking rows together. Every token of a chain is fed, the
// last one too: the remainder is read in the state behind it.
void Answerer::decode(std::vector<Row>& rows, const std::stop_token& stop) {
  for (Row& row : rows) {
    row.active = row.cap > 0 && !row.failed();
    row.result->thought = row.active;
  }
  const auto width = static_cast<std::size_t>(engine_.model().hidden_size());
  const int only_row = 0;
  std::vector<engine::ExtendJob> jobs;
  std::vector<Row*> fed;
  while (true) {
    jobs.clear();
    fed.clear();
    hidden_.resize(rows.size() * width);
    for (Row& row : rows) {
      if (!row.active) continue;
      if (row.token < 0) {
        row.active = false;
        row.fail_with(Error(ErrorKind::internal, "thinking met logits of which none is a number"));
        continue;
      }
      const auto& deadline = row.options->deadline_ms;
      if (deadline && started_.elapsed_ms() > kThinkingShare * static_cast<double>(*deadline)) {
        row.active = row.result->thought = false;
        row.result->deadline = true;
        continue;
      }
      row.result->chain.push_back(row.token);
      jobs.push_back({&*row.sequence,
                      {&row.result->chain.back(), 1},
                      {&only_row, 1},
                      {hidden_.data() + fed.size() * width, static_cast<std::int64_t>(width)}});
      fed.push_back(&row);
    }
    if (jobs.empty()) return;
    engine_.extend(jobs, stop);
    counters_.cycles += fed.size();
    counters_.thought_tokens += fed.size();
    const std::vector<std::int32_t> next = pick(fed.size());
    for (std::size_t i = 0; i < fed.size(); ++i) {
      Row& row = *fed[i];
      row.result->closed = row.token == encoder_.think_end();
      if (row.result->closed || static_cast<std::int64_t>(row.result->chain.size()) >= row.cap)
        row.active = false;
      row.token = next[i];
    }
  }
}

// The remainder behind each chain, without its own </think> where the chain closed itself.
void Answerer::read_after_chains(std::vector<Row>& rows, const std::stop_token& stop) {
  std::vector<std::size_t> who;
  std::vector<ReadOut> read_outs;
  std::vector<engine::Sequence> sequences;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].failed() || !rows[i].result->thought) continue;
    who.push_back(i);
    read_outs.push_back(make_read_out({}, rows[i].encoded(), rows[i].result->closed ? 1 : 0));
    counters_.prefill_tokens += read_outs.back().ids.size();
    sequences.push_back(std::move(*rows[i].sequence));
  }
  run_read_outs(
      engine_, head_, hidden_, read_outs, sequences, stop,
      [&](std::size_t n, std::vector<double> probs) { rows[who[n]].result->probs = std::move(probs); },
      [&](std::size_t n, const Error& error) { rows[who[n]].fail_with(error); });
}

}  // namespace ponder::decide
