// ponder decide: requests in, answers out.
#include <memory>
#include <new>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "cli/answer_arguments.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "decide/answer.hpp"
#include "decide/decision_model.hpp"
#include "decide/json_write.hpp"

namespace ponder::cli {
namespace {

using namespace decide;

struct DecideArguments {
  std::shared_ptr<ModelArguments> model = std::make_shared<ModelArguments>();
  std::string request;
  bool jsonl = false;
  bool batch = false;
  bool trace = false;
  bool pretty = false;
  int decimals = 6;
  std::shared_ptr<AnswerArguments> answering = std::make_shared<AnswerArguments>();
  bool no_think = false;
  bool return_reasoning = false;
  std::int64_t prefix_cache = 1024;
};

Value optional_probs(const std::optional<std::vector<double>>& probs) {
  if (!probs) return nullptr;
  return Array(probs->begin(), probs->end());
}

template <class Ids>
Array numbers(const Ids& ids) {
  Array out;
  out.reserve(ids.size());
  for (const auto id : ids) out.emplace_back(static_cast<std::int64_t>(id));
  return out;
}

class Decide {
 public:
  explicit Decide(DecideArguments args) : args_(std::move(args)) {
    check_arguments();
    defaults_.think = !args_.no_think;
    defaults_.max_think = args_.answering->max_think;
    defaults_.nothink_threshold = args_.answering->threshold;
    defaults_.return_reasoning = args_.return_reasoning;
  }

  int run() {
    Input input(args_.request);
    if (!args_.jsonl && !args_.batch) {
      const Request request = parse(input.all());  // before the model: a wrong request costs nothing
      load();
      return answer({&request, 1}, {});
    }
    return args_.batch ? run_batch(input) : run_lines(input);
  }

 private:
  void check_arguments() const {
    args_.answering->check();
    check_range("--decimals", args_.decimals, 0, max_decimals);
    check_range("--prefix-cache", args_.prefix_cache, 0, std::int64_t{1} << 30);
    if (args_.jsonl && args_.batch) fail(ErrorKind::usage, "--jsonl and --batch exclude each other");
  }

  Request parse(std::string_view text) const { return parse_request(parse_json(text), defaults_); }

  void load() {
    LoadOptions options = args_.model->load_options();
    options.limits.prefix_cache_bytes = static_cast<std::uint64_t>(args_.prefix_cache) << 20U;
    args_.answering->apply_to(options);
    model_ = DecisionModel::load(args_.model->folder(), options);
    args_.model->announce(model_->describe());
  }

  // Each line on its own: a bad one gets an error object in its place and the others go on.
  int run_lines(Input& input) {
    load();
    int status = 0;
    bool more = true;
    while (more) {
      try {
        const auto line = input.line();
        more = line.has_value();
        if (!more) break;
        const Request request = parse(*line);
        status |= answer({&request, 1}, "line " + std::to_string(input.line_number()));
      } catch (const Error& error) {
        status |= report(error, "line " + std::to_string(input.line_number()));
      } catch (const std::bad_alloc&) {
        status |= report(Error(ErrorKind::no_memory, "out of memory"),
                         "line " + std::to_string(input.line_number()));
      }
    }
    return status;
  }

  int run_batch(Input& input) {
    std::vector<Request> requests;
    while (const auto line = input.line()) {
      try {
        requests.push_back(parse(*line));
      } catch (const Error& error) {
        fail(error.kind(), "line {}: {}", input.line_number(), error.what());
      }
    }
    load();
    return answer(requests, "request");
  }

  // Prints one line (or, pretty, one block) a request. `where` is empty for a single request, whose error is
  // the program's.
  int answer(std::span<const Request> requests, const std::string& where) {
    model_->check_unchanged();
    const Stopwatch watch;
    const std::vector<RequestOutcome> outcomes = model_->answerer().answer_batch(requests);
    const double latency = watch.elapsed_ms();
    int status = 0;
    for (std::size_t r = 0; r < requests.size(); ++r) {
      if (outcomes[r].error) {
        if (where.empty()) throw Error(*outcomes[r].error);
        status |=
            report(*outcomes[r].error, requests.size() > 1 ? fmt::format("{} {}", where, r + 1) : where);
        continue;
      }
      print_value(args_.trace ? trace(requests[r], outcomes[r])
                              : reply_to(requests[r], outcomes[r], latency));
    }
    return status;
  }

  static int report(const Error& error, const std::string& where) {
    Object detail;
    detail.append("detail", error.what());
    print(write_json(Value(std::move(detail))) + "\n");
    complain(fmt::format("ponder: {}: {}", where, printable(error.what(), 4000)));
    return 1;
  }

  void print_value(const Value& value) const {
    print(write_json(value, args_.pretty ? 2 : 0) + "\n");
    flush();
  }

  Value reply_to(const Request& request, const RequestOutcome& outcome, double latency) const {
    const text::Tokenizer& tokenizer = model_->encoder().tokenizer();
    Usage usage;
    std::vector<std::vector<double>> probs;
    std::vector<Reasoning> reasoning;
    for (const QuestionResult& result : outcome.questions) {
      probs.push_back(result.probs);
      usage.input_tokens += result.prompt_tokens;
      usage.reasoning_tokens += static_cast<std::int64_t>(result.chain.size());
      std::vector<std::int32_t> thoughts = result.chain;
      std::erase(thoughts, model_->encoder().think_end());
      reasoning.push_back({result.thought, result.closed, static_cast<std::int64_t>(result.chain.size()),
                           tokenizer.decode(thoughts), result.deadline});
    }
    Value all = answers(request.questions, probs, AnswerStyle::with_decimals(args_.decimals));
    // Counted as the public server counts: a label that spells a control token is that token here.
    usage.output_tokens = static_cast<std::int64_t>(
        tokenizer.encode(answers_json_python(all), text::SpecialTokens::parse).size());
    std::optional<std::span<const Reasoning>> shown;
    if (request.options.return_reasoning) shown = reasoning;
    return reply(request.model.value_or(model_->name()), std::move(all), usage, latency, request.questions,
                 shown);
  }

  Value trace(const Request& request, const RequestOutcome& outcome) const {
    Object questions;
    for (std::size_t q = 0; q < request.questions.size(); ++q) {
      const QuestionResult& result = outcome.questions[q];
      Object o;
      o.append("probs", Array(result.probs.begin(), result.probs.end()));
      o.append("thought", result.thought);
      o.append("closed", result.closed);
      o.append("chain", numbers(result.chain));
      o.append("accepted", numbers(result.accepted));
      o.append("nothink_probs", optional_probs(result.nothink_probs));
      o.append("prompt_tokens", result.prompt_tokens);
      o.append("prompt_ids", numbers(result.encoded.prompt));
      o.append("remainder_ids", numbers(result.encoded.remainder));
      questions.append(request.questions[q].id, std::move(o));
    }
    const AnswerCounters& counters = model_->answerer().counters();
    Object accepted;  // tokens a cycle gave -> how often
    for (std::size_t j = 0; j < counters.accepted.size(); ++j) {
      if (counters.accepted[j] > 0) accepted.append(std::to_string(j + 1), whole(counters.accepted[j]));
    }
    Object totals;
    totals.append("cycles", whole(counters.cycles));
    totals.append("accepted", std::move(accepted));
    totals.append("prefill_tokens", whole(counters.prefill_tokens));
    totals.append("shared_tokens", whole(counters.shared_tokens));
    totals.append("reused_tokens", whole(counters.reused_tokens));
    totals.append("thought_tokens", whole(counters.thought_tokens));
    totals.append("draft_rows", whole(counters.draft_rows));
    totals.append("engine_steps", whole(model_->engine().counters().steps));
    totals.append("engine_rows", whole(model_->engine().counters().rows));
    Object out;
    out.append("questions", std::move(questions));
    out.append("counters", std::move(totals));
    return out;
  }

  DecideArguments args_;
  Options defaults_;
  std::unique_ptr<DecisionModel> model_;
};

}  // namespace

Action add_decide(CLI::App& app) {
  auto args = std::make_shared<DecideArguments>();
  app.add_option("request", args->request, "Request as JSON; - or nothing: standard input")
      ->type_name("FILE");
  ModelArguments::add_all(app, args->model);
  app.add_flag("--jsonl", args->jsonl, "One request a line, one reply a line");
  app.add_flag("--batch", args->batch, "One request a line, all answered as one batch");
  app.add_flag("--trace", args->trace,
               "Print unrounded probabilities, token ids and counters instead of the reply");
  app.add_flag("--pretty", args->pretty, "Indent the output");
  app.add_option("--decimals", args->decimals, "Decimals of the numbers; 2 rounds as the public server does")
      ->type_name("N")
      ->capture_default_str();
  AnswerArguments::add_limits(app, args->answering);
  AnswerArguments::add_thinking(app, args->answering);
  app.add_option("--prefix-cache", args->prefix_cache,
                 "Memory for beginnings of earlier prompts, in MiB; 0: none")
      ->type_name("MIB")
      ->capture_default_str();
  app.add_flag("--no-think", args->no_think, "Answer directly where a request does not say whether to think");
  app.add_flag("--return-reasoning", args->return_reasoning,
               "Add the chains of thought where a request does not say");
  return [args] { return Decide(*args).run(); };
}

}  // namespace ponder::cli
