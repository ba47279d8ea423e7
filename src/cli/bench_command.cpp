// ponder bench: prompt and decode speed of a model, beside what the machine can do; chains of thought.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/cpu_budget.hpp"
#include "base/error.hpp"
#include "base/memory_budget.hpp"
#include "cli/arguments.hpp"
#include "cli/bench_report.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/progress.hpp"
#include "decide/decision_model.hpp"
#include "decide/json_write.hpp"
#include "decide/think_benchmark.hpp"
#include "engine/benchmark.hpp"
#include "formats/safetensors.hpp"
#include "models/hybrid/random_weights.hpp"

namespace ponder::cli {
namespace {

struct BenchArguments {
  std::shared_ptr<ModelArguments> model = std::make_shared<ModelArguments>();
  std::string config;
  bool random = false;
  std::int64_t seed = 1;
  std::vector<int> prompts = {512, 2048};
  std::vector<int> rows = {1, 2, 4, 8, 16};
  int context = 32;
  int repeat = 5;
  bool ops = false;
  bool json = false;
  bool think = false;
  std::vector<int> questions = {1, 8};
  decide::ThinkSettings thinking;
  std::shared_ptr<DraftArguments> draft = std::make_shared<DraftArguments>();
};

void check_range(const char* option, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most) {
    fail(ErrorKind::usage, "{} {}: expected {} to {}", option, value, least, most);
  }
}

// In ascending order, each once; a lone 0 means none.
std::vector<int> checked_list(const char* option, const std::vector<int>& values, int most) {
  if (values.size() == 1 && values.front() == 0) return {};
  for (const int v : values) check_range(option, v, 1, most);
  const std::set<int> sorted(values.begin(), values.end());
  return {sorted.begin(), sorted.end()};
}

class Bench {
 public:
  explicit Bench(const BenchArguments& args) : args_(args), options_(args.model->load_options()) {
    if (args.random && args.config.empty()) fail(ErrorKind::usage, "--random: expected a shape in --config");
    if (!args.config.empty() && !args.random) {
      fail(ErrorKind::usage, "--config: a configuration has no weights; add --random");
    }
    if (!args.config.empty() && !args.model->model.empty()) {
      fail(ErrorKind::usage, "--config and --model: expected one of them");
    }
    constexpr int most_tokens = 1 << 20;
    prompts_ = checked_list("--prompt", args.prompts, most_tokens);
    rows_ = checked_list("--rows", args.rows, options_.step_rows);
    if (args.think) check_thinking(options_.step_rows / ops::kHeldRows);
    check_range("--context", args.context, 1, most_tokens);
    check_range("--repeat", args.repeat, 1, 1000);
    check_range("--seed", args.seed, 0, std::numeric_limits<std::int64_t>::max());
    args_.thinking.context = args.context;
    args_.thinking.repeat = args.repeat;
  }

  int run() {
    open();
    refuse_what_does_not_fit();
    BenchReport report = start();
    measure(report);
    print(args_.json ? decide::write_json(report.json(), 2) + "\n" : report.text());
    return 0;
  }

 private:
  void check_thinking(int most_questions) {
    decide::ThinkSettings& t = args_.thinking;
    for (const int n : args_.questions) check_range("--questions", n, 1, most_questions);
    const std::set<int> questions(args_.questions.begin(), args_.questions.end());
    args_.questions.assign(questions.begin(), questions.end());
    for (const int k : t.blocks) check_range("--blocks", k, 1, ops::kHeldRows);
    const std::set<int> blocks(t.blocks.begin(), t.blocks.end());
    t.blocks.assign(blocks.begin(), blocks.end());
    check_range("--think-tokens", t.tokens, 1, 1 << 20);
    if (t.accept && !(*t.accept >= 0 && *t.accept <= 1)) {
      fail(ErrorKind::usage, "--accept {}: expected 0 to 1", *t.accept);
    }
    if (args_.random && args_.draft->drafter) {
      fail(ErrorKind::usage, "--drafter: random weights come with a random drafter");
    }
    draft_memory_ = args_.draft->checked_memory();
  }

  void open() {
    if (args_.random) {
      config_ = hybrid::Config::parse(Input(args_.config).all(), args_.config);
    } else {
      files_ = decide::BackboneFiles::open(args_.model->folder());
      config_ = files_->config;
      if (args_.think) open_drafter();
    }
    config_.kv_type = options_.kv;
  }

  void open_drafter() {
    options_.drafter = args_.draft->drafter;
    const auto drafter = decide::choose_drafter(files_->folder, options_);
    if (!drafter) {
      fail(ErrorKind::unsupported, "model {}: has no drafter to think with; name one with --drafter",
           printable(files_->folder.string()));
    }
    drafter_ = formats::open_safetensors(*drafter);
  }

  static double pages(double tokens) { return tokens / ops::kPageRows + 2; }

  // Bytes of keys, values and recurrent states that the measurements hold at one time, with some to spare.
  double state_bytes() const {
    const auto attention = static_cast<double>(
        std::count(config_.layers.begin(), config_.layers.end(), hybrid::LayerKind::attention));
    const double delta = static_cast<double>(config_.num_hidden_layers) - attention;
    const ops::KvShape kv = config_.kv_shape();
    const double page = attention * ops::kPageRows * kv.heads * (kv.key_dim + kv.value_dim) * sizeof(float);
    const double conv =
        static_cast<double>(config_.linear_conv_kernel_dim - 1 + ops::kHeldRows) * config_.conv_dim();
    const double recurrent =
        delta * (conv + static_cast<double>(ops::DeltaStateLayout(config_.delta_shape()).floats)) *
        sizeof(float);
    const int longest = prompts_.empty() ? 0 : prompts_.back();
    const int most = rows_.empty() ? 0 : rows_.back();
    const int steps = (args_.repeat + 2) * engine::Benchmark::kSampleSteps;
    const double decode_pages = most * (pages(args_.context) + pages(args_.context + steps));
    const double stepping = std::max(pages(longest), decode_pages) * page + (2.0 * most + 1) * recurrent;
    if (!args_.think) return stepping;
    // Contexts of both engines, and chains.
    const double chains = args_.questions.back(), length = args_.context + args_.thinking.tokens;
    const ops::KvShape draft = hybrid::draft_kv_shape(config_, draft_memory_.type);
    const double draft_page =
        delta * ops::kPageRows *
        (draft.heads * draft.key_dim + static_cast<double>(draft.values()) * draft.value_dim) * sizeof(float);
    return std::max(stepping, 3 * chains * (pages(length) * (page + draft_page) + recurrent));
  }

  // Rows of one step: the residual stream and what the widest block needs besides.
  double workspace_bytes() const {
    const double wide =
        std::max({2.0 * config_.conv_dim() + 2.0 * config_.value_dim(), 2.0 * config_.intermediate_size,
                  3.0 * config_.num_attention_heads * config_.head_dim});
    return options_.step_rows * (2.0 * config_.hidden_size + wide) * sizeof(float);
  }

  void refuse_what_does_not_fit() const {
    const std::string what = args_.random ? args_.config : files_->folder.string();
    hybrid::MemoryNeeds needs = args_.random
                                    ? hybrid::estimate_random_memory(config_, options_.type)
                                    : hybrid::estimate_memory(config_, files_->checkpoint, options_.type);
    if (args_.think) {
      const hybrid::MemoryNeeds drafter =
          args_.random ? hybrid::estimate_random_drafter_memory(config_, options_.type)
                       : hybrid::estimate_drafter_memory(config_, *drafter_, options_.type);
      needs.mapped += drafter.mapped;
      needs.allocated += drafter.allocated;
    }
    const double besides = state_bytes() + (args_.think ? 2 : 1) * workspace_bytes() +
                           static_cast<double>(cpu::PeakMeter::buffer_bytes());
    if (besides > 0x1p62)
      fail(ErrorKind::no_memory, "model {}: its states do not fit 64 bits", printable(what));
    require_memory(detect_memory_budget(options_.memory), needs.mapped,
                   needs.allocated + static_cast<std::uint64_t>(besides), "model " + what);
  }

  // Threads, backend, weights, engine; says on what and what is measured.
  BenchReport start() {
    const bool reference = options_.runtime.reference;
    const CpuBudget budget =
        cpu_budget(reference ? std::optional<std::int64_t>(1) : options_.runtime.threads);
    pool_ = std::make_shared<ThreadPool>(budget.threads, pool_options(budget));
    options_.runtime.pool = pool_;
    options_.runtime.activations = engine::choose_activations(options_.runtime, config_.hidden_size);
    profiled_ = std::make_shared<ops::ProfiledBackend>(engine::make_backend(options_.runtime));
    BenchReport report;
    report.backend = profiled_->describe();
    if (args_.json) {
      args_.model->announce(report.backend);
    } else {
      print(report.backend + "\n");
      flush();
    }
    progress_.show(args_.random ? "making weights" : "loading weights");
    hybrid::Weights weights =
        args_.random ? hybrid::make_random_weights(config_, *profiled_, options_.type,
                                                   static_cast<std::uint64_t>(args_.seed))
                     : hybrid::load_weights(config_, files_->checkpoint, *profiled_, options_.type);
    if (args_.think) start_drafting(weights);
    auto model =
        std::make_unique<hybrid::HybridModel>(config_, std::move(weights), profiled_, options_.step_rows);
    report.activations = profiled_->activation_type();
    report.describe(*model);
    report.model = args_.random ? fmt::format("{} with random weights", printable(args_.config, 4000))
                                : printable(files_->folder.string(), 4000);
    report.kv = args_.model->kv;
    report.threads = pool_->size();
    report.step_rows = options_.step_rows;
    report.context = args_.context;
    report.repeat = args_.repeat;
    report.ops = args_.ops;
    engine_ = std::make_unique<engine::Engine>(std::move(model));
    return report;
  }

  // A second engine on the same weights, with a drafter.
  void start_drafting(const hybrid::Weights& weights) {
    hybrid::Drafter drafter = args_.random
                                  ? hybrid::make_random_drafter(config_, *profiled_, options_.type,
                                                                static_cast<std::uint64_t>(args_.seed) + 1)
                                  : hybrid::load_drafter(config_, *drafter_, *profiled_, options_.type);
    drafting_ = std::make_unique<engine::Engine>(std::make_unique<hybrid::HybridModel>(
        config_, weights, std::move(drafter), draft_memory_, profiled_, options_.step_rows));
  }

  void measure(BenchReport& report) {
    const cpu::InstructionSet isa =
        options_.runtime.reference ? cpu::InstructionSet::scalar
                                   : options_.runtime.isa.value_or(cpu::best(cpu::detect_cpu_features()));
    progress_.show("measuring the machine");
    cpu::PeakMeter meter(isa, pool_);
    report.int8_instruction = meter.int8_instruction();
    report.bf16_instruction = meter.bf16_instruction();
    report.f32_instruction = meter.f32_instruction();
    engine::Benchmark benchmark(*engine_, *profiled_, meter);
    for (const int tokens : prompts_) {
      progress_.show(fmt::format("prompt of {} tokens", tokens));
      report.prompts.push_back(benchmark.prompt(tokens, args_.repeat));
    }
    for (const int rows : rows_) {
      progress_.show(fmt::format("steps of {} row{}", rows, rows == 1 ? "" : "s"));
      report.decodes.push_back(benchmark.decode(rows, args_.context, args_.repeat, args_.ops));
    }
    if (args_.think) think(report);
    report.best = benchmark.best();
    report.worst = benchmark.worst();
  }

  void think(BenchReport& report) {
    report.thinking.settings = args_.thinking;
    report.thinking.memory = draft_memory_;
    report.thinking.draft_kv = args_.draft->kv;
    decide::ThinkBenchmark benchmark(*engine_, *drafting_, args_.thinking);
    for (const int questions : args_.questions) {
      progress_.show(fmt::format("thinking about {} question{}", questions, questions == 1 ? "" : "s"));
      report.thinking.figures.push_back(benchmark.measure(questions));
    }
  }

  BenchArguments args_;
  decide::LoadOptions options_;
  hybrid::DraftMemory draft_memory_;
  std::vector<int> prompts_, rows_;
  std::optional<decide::BackboneFiles> files_;
  std::optional<formats::Checkpoint> drafter_;
  hybrid::Config config_;
  Progress progress_;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<ops::ProfiledBackend> profiled_;
  std::unique_ptr<engine::Engine> engine_;
  std::unique_ptr<engine::Engine> drafting_;  // --think
};

void add_thinking(CLI::App& app, BenchArguments& args) {
  CLI::Option* think = app.add_flag(
      "--think", args.think,
      "Chains of thought, plain and drafted; prompts and steps only where --prompt or --rows asks");
  add_numbers(app, "--questions", args.questions, "1,8", "Chains side by side")->needs(think);
  add_numbers(app, "--blocks", args.thinking.blocks, "2,4,8",
              "Fixed numbers of candidate rows; the largest limits the choice by cost")
      ->needs(think);
  app.add_option("--think-tokens", args.thinking.tokens, "Tokens of each chain")
      ->type_name("N")
      ->capture_default_str()
      ->needs(think);
  app.add_option("--accept", args.thinking.accept,
                 "Guesses are right with this probability, 0 to 1, whatever the drafter says")
      ->type_name("P")
      ->needs(think);
  DraftArguments::add(app, args.draft);
  for (const char* name : {"--drafter", "--draft-window", "--draft-sinks", "--draft-kv"}) {
    app.get_option(name)->needs(think);
  }
}

}  // namespace

Action add_bench(CLI::App& app) {
  auto args = std::make_shared<BenchArguments>();
  ModelArguments::add_all(app, args->model);
  app.add_option("--config", args->config, "A config.json instead of a model; needs --random")
      ->type_name("FILE");
  app.add_flag("--random", args->random, "Random weights of the shape in --config (--type auto: bf16)");
  app.add_option("--seed", args->seed, "Of the random weights")->type_name("N")->capture_default_str();
  const CLI::Option* prompts =
      add_numbers(app, "--prompt", args->prompts, "512,2048", "Prompt lengths in tokens; 0: none");
  const CLI::Option* rows = add_numbers(app, "--rows", args->rows, "1,2,4,8,16",
                                        "Sequences that decode together, up to --step-rows; 0: none");
  app.add_option("--context", args->context, "Tokens of each sequence before it decodes")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--repeat", args->repeat, "Timed runs of each figure, after a warm-up")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--ops", args->ops, "Add tables of operations by time");
  app.add_flag("--json", args->json, "Print JSON");
  add_thinking(app, *args);
  return [args, prompts, rows] {
    if (args->think && prompts->count() == 0) args->prompts = {0};
    if (args->think && rows->count() == 0) args->rows = {0};
    return Bench(*args).run();
  };
}

}  // namespace ponder::cli
