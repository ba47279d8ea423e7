// ponder bench: prompt and decode speed of a model, beside what the machine can do.
#include <algorithm>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "base/cpu_budget.hpp"
#include "base/error.hpp"
#include "base/memory_budget.hpp"
#include "cli/arguments.hpp"
#include "cli/bench_report.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "decide/decision_model.hpp"
#include "decide/json_write.hpp"
#include "engine/benchmark.hpp"
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

// One line on a terminal that is written over again and again; nothing elsewhere.
class Progress {
 public:
  void show(const std::string& what) const {
    if (terminal_) fmt::print(stderr, "\r\033[K{} ...", what);
  }
  ~Progress() {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
};

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
    check_range("--context", args.context, 1, most_tokens);
    check_range("--repeat", args.repeat, 1, 1000);
    check_range("--seed", args.seed, 0, std::numeric_limits<std::int64_t>::max());
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
  void open() {
    if (args_.random) {
      config_ = hybrid::Config::parse(Input(args_.config).all(), args_.config);
    } else {
      files_ = decide::BackboneFiles::open(args_.model->folder());
      config_ = files_->config;
    }
    config_.kv_type = options_.kv;
    config_.kv_type = options_.kv;
  }

  // Bytes of keys, values and recurrent states that the measurements hold at one time, with some to spare.
  double state_bytes() const {
    const auto attention = static_cast<double>(
        std::count(config_.layers.begin(), config_.layers.end(), hybrid::LayerKind::attention));
    const double delta = static_cast<double>(config_.num_hidden_layers) - attention;
    const ops::KvShape kv = config_.kv_shape();
    const double page = attention * ops::kPageRows * kv.heads * (kv.key_dim + kv.value_dim) * sizeof(float);
    const double conv = static_cast<double>(config_.linear_conv_kernel_dim - 1) * config_.conv_dim();
    const double recurrent =
        delta * (conv + static_cast<double>(ops::DeltaStateLayout(config_.delta_shape()).floats)) *
        sizeof(float);
    const auto pages = [](int tokens) { return static_cast<double>(tokens) / ops::kPageRows + 2; };
    const int longest = prompts_.empty() ? 0 : prompts_.back();
    const int most = rows_.empty() ? 0 : rows_.back();
    const int steps = (args_.repeat + 2) * engine::Benchmark::kSampleSteps;
    const double decode_pages = most * (pages(args_.context) + pages(args_.context + steps));
    return std::max(pages(longest), decode_pages) * page + (2.0 * most + 1) * recurrent;
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
    const hybrid::MemoryNeeds needs =
        args_.random ? hybrid::estimate_random_memory(config_, options_.type)
                     : hybrid::estimate_memory(config_, files_->checkpoint, options_.type);
    const double besides =
        state_bytes() + workspace_bytes() + static_cast<double>(cpu::PeakMeter::buffer_bytes());
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
    report.best = benchmark.best();
    report.worst = benchmark.worst();
  }

  BenchArguments args_;
  decide::LoadOptions options_;
  std::vector<int> prompts_, rows_;
  std::optional<decide::BackboneFiles> files_;
  hybrid::Config config_;
  Progress progress_;
  std::shared_ptr<ThreadPool> pool_;
  std::shared_ptr<ops::ProfiledBackend> profiled_;
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace

Action add_bench(CLI::App& app) {
  auto args = std::make_shared<BenchArguments>();
  ModelArguments::add_all(app, args->model);
  app.add_option("--config", args->config, "A config.json instead of a model; needs --random")
      ->type_name("FILE");
  app.add_flag("--random", args->random, "Random weights of the shape in --config (--type auto: bf16)");
  app.add_option("--seed", args->seed, "Of the random weights")->type_name("N")->capture_default_str();
  app.add_option("--prompt", args->prompts, "Prompt lengths in tokens; 0: none")
      ->delimiter(',')
      ->type_name("512,2048")
      ->capture_default_str();
  app.add_option("--rows", args->rows, "Sequences that decode together, up to --step-rows; 0: none")
      ->delimiter(',')
      ->type_name("1,2,4,8,16")
      ->capture_default_str();
  app.add_option("--context", args->context, "Tokens of each sequence before it decodes")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--repeat", args->repeat, "Timed runs of each figure, after a warm-up")
      ->type_name("N")
      ->capture_default_str();
  app.add_flag("--ops", args->ops, "Add tables of operations by time");
  app.add_flag("--json", args->json, "Print JSON");
  return [args] { return Bench(*args).run(); };
}

}  // namespace ponder::cli
