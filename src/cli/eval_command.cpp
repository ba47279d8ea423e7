// ponder eval: how right and how well calibrated a model's answers to labelled records are.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/random.hpp"
#include "cli/answer_arguments.hpp"
#include "cli/commands.hpp"
#include "cli/eval_plots.hpp"
#include "cli/eval_report.hpp"
#include "cli/io.hpp"
#include "cli/output_file.hpp"
#include "cli/progress.hpp"
#include "cli/record_reader.hpp"
#include "decide/decision_model.hpp"
#include "decide/evaluator.hpp"
#include "decide/json_write.hpp"

namespace ponder::cli {
namespace {

using namespace decide;

struct EvalArguments {
  std::shared_ptr<ModelArguments> model = std::make_shared<ModelArguments>();
  std::shared_ptr<AnswerArguments> answering = std::make_shared<AnswerArguments>();
  std::vector<std::string> files;
  bool think = false, no_think = false;
  std::optional<std::int64_t> limit, sample;
  std::int64_t seed = 1;
  int batch = 1;
  bool checks = false, no_checks = false;
  std::optional<std::string> against;
  std::string html, svg;
  bool json = false;
  std::optional<double> dollars_per_hour;
};

// Says yes `wanted` times in `total` calls, every choice of calls being as likely (selection sampling: each
// call with the probability that it must be one of those still wanted).
class Sampler {
 public:
  Sampler(std::size_t wanted, std::size_t total, std::int64_t seed)
      : wanted_(std::min(wanted, total)), left_(total), random_(static_cast<std::uint64_t>(seed)) {}

  bool take() {
    const bool yes = random_.below(left_--) < wanted_;
    wanted_ -= yes ? 1 : 0;
    return yes;
  }
  bool done() const { return wanted_ == 0; }

 private:
  std::size_t wanted_, left_;
  Random random_;
};

class Eval {
 public:
  explicit Eval(const EvalArguments& args) : args_(args) {
    args.answering->check();
    if (args.limit) check_range("--limit", *args.limit, 1, max_setting);
    if (args.sample) check_range("--sample", *args.sample, 1, max_setting);
    check_range("--seed", args.seed, 0, max_setting);
    check_range("--batch", args.batch, 1, 4096);
    if (args.limit && args.sample) fail(ErrorKind::usage, "--limit and --sample exclude each other");
    if (args.checks && args.no_checks) fail(ErrorKind::usage, "--checks and --no-checks exclude each other");
    if (args.dollars_per_hour && !(*args.dollars_per_hour >= 0 && *args.dollars_per_hour < 1e9)) {
      fail(ErrorKind::usage, "--usd-per-hour {}: expected a price from 0", *args.dollars_per_hour);
    }
    parse_weight_type(args.model->type);
    if (args.against) parse_weight_type(*args.against);
    choose_modes();
    if (!args.html.empty()) require_writable(args.html);
    if (!args.svg.empty()) make_svg_folder();
    checks_ = direct_ && !args.no_checks && (args.checks || !args.html.empty());
    if (args.checks && !direct_) {
      fail(ErrorKind::usage, "--checks: they compare direct answers, which --think alone leaves out");
    }
  }

  int run() {
    std::optional<std::size_t> limit;
    if (args_.limit) limit = static_cast<std::size_t>(*args_.limit);
    found_ = check_records(args_.files, limit);
    chosen_ =
        args_.sample ? std::min(found_.records, static_cast<std::size_t>(*args_.sample)) : found_.records;
    EvalReport report = describe();
    ask(args_.model->type, checks_, report.evaluation, &report);
    if (args_.against) compare(report);
    progress_.clear();
    report.summarize();
    write_files(report);
    print(args_.json ? write_json(report.json(), 2) + "\n" : report.text());
    if (report.failures > 0) {
      flush();
      complain(fmt::format("ponder: {} requests without an answer; {}", report.failures,
                           printable(report.first_failure, 4000)));
    }
    return report.failures > 0 ? 1 : 0;
  }

 private:
  void make_svg_folder() const {
    std::error_code ec;
    std::filesystem::create_directories(args_.svg, ec);
    if (ec) {
      fail(ErrorKind::bad_file, "{}: cannot be created: {}", printable(args_.svg, 4000), ec.message());
    }
    require_writable(std::filesystem::path(args_.svg) / "reliability.svg");
  }

  // Both ways by default; a threshold adds a third, asked as a user would.
  void choose_modes() {
    const AnswerArguments& a = *args_.answering;
    const bool can_think = a.max_think > 0;
    if (args_.think && !can_think)
      fail(ErrorKind::usage, "--think: there is nothing to think with --max-think 0");
    direct_ = args_.no_think || !args_.think || !can_think;
    const bool think = can_think && (args_.think || !args_.no_think);
    if (direct_) modes_.push_back({"no-think", false, {}});
    if (think) modes_.push_back({"think", true, {}});
    if (think && a.threshold)
      modes_.push_back({fmt::format("threshold {}", *a.threshold), true, a.threshold});
    if (!think && a.threshold) fail(ErrorKind::usage, "--nothink-threshold: only where the model may think");
  }

  EvalReport describe() const {
    EvalReport report;
    report.files = args_.files;
    report.max_think = args_.answering->max_think;
    report.max_rows = args_.answering->limits.max_rows;
    report.batch = args_.batch;
    report.seed = args_.seed;
    report.dollars_per_hour = args_.dollars_per_hour;
    if (args_.limit) report.limit = static_cast<std::size_t>(*args_.limit);
    if (args_.sample) report.sample = static_cast<std::size_t>(*args_.sample);
    report.date =
        fmt::format("{:%Y-%m-%d %H:%M} UTC",
                    fmt::gmtime(std::chrono::system_clock::to_time_t(std::chrono::system_clock::now())));
    return report;
  }

  LoadOptions load_options(const std::string& type) const {
    LoadOptions options = args_.model->load_options();
    options.type = parse_weight_type(type);
    options.limits.prefix_cache_bytes = 0;  // each request as if it were the first: latencies compare
    args_.answering->apply_to(options);
    return options;
  }

  // Asks all chosen records of a model held in `type`.
  void ask(const std::string& type, bool checks, Evaluation& evaluation, EvalReport* report) {
    const LoadOptions options = load_options(type);
    progress_.show("loading the model");
    const auto model = DecisionModel::load(args_.model->folder(), options);
    progress_.clear();
    evaluation.form = found_.form;
    Evaluator evaluator(*model, {args_.answering->max_think, checks}, modes_, evaluation);
    if (report != nullptr) {
      args_.model->announce(model->describe());
      report->model = args_.model->folder().lexically_normal().string();
      report->type = type;
      report->backend = model->describe();
      report->drafting = choose_drafter(args_.model->folder(), options).has_value();
    }
    ask_records(evaluator, type);
    if (report == nullptr) return;
    if (checks) report->checks = evaluator.checks();
    report->failures = evaluator.failures();
    report->first_failure = evaluator.first_failure();
  }

  void ask_records(Evaluator& evaluator, const std::string& type) {
    RecordReader reader(args_.files);
    Sampler sampler(chosen_, found_.records, args_.seed);
    std::vector<LabelledRecord> records;
    const Stopwatch watch;
    double shown = 0;
    std::size_t done = 0;
    const auto ask_them = [&] {
      if (records.empty()) return;
      evaluator.ask(records);
      done += records.size();
      records.clear();
      const double ms = watch.elapsed_ms();
      if (!progress_.watched() || ms - shown < 200) return;
      shown = ms;
      const double left = ms / static_cast<double>(done) * static_cast<double>(chosen_ - done) / 1000;
      progress_.show(fmt::format("weights {}: {} of {} records, {:.0f} s left", type, done, chosen_, left));
    };
    while (!sampler.done()) {
      auto record = reader.next();
      if (!record) fail(ErrorKind::invalid_input, "{}: has fewer records than before", args_.files.back());
      if (!sampler.take()) continue;
      records.push_back(std::move(*record));
      if (records.size() == static_cast<std::size_t>(args_.batch)) ask_them();
    }
    ask_them();
  }

  void compare(EvalReport& report) {
    Evaluation other;
    ask(*args_.against, false, other, nullptr);
    Against against;
    against.type = *args_.against;
    for (std::size_t m = 0; m < modes_.size(); ++m) {
      const ModeAnswers &before = report.evaluation.modes[m], &after = other.modes[m];
      against.modes.push_back({modes_[m].name, difference(report.evaluation, before.sheet, after.sheet),
                               summarize(report.evaluation, before, "").metrics,
                               summarize(other, after, "").metrics});
    }
    report.against = std::move(against);
  }

  void write_files(const EvalReport& report) const {
    if (args_.html.empty() && args_.svg.empty()) return;
    const std::vector<NamedPlot> plots = eval_plots(report);
    if (!args_.html.empty()) write_whole_file(args_.html, eval_page(report, plots));
    if (args_.svg.empty()) return;
    for (const NamedPlot& plot : plots)
      write_whole_file(std::filesystem::path(args_.svg) / plot.file, plot.svg);
  }

  EvalArguments args_;
  std::vector<AskMode> modes_;
  bool direct_ = true, checks_ = false;
  RecordCount found_;
  std::size_t chosen_ = 0;
  Progress progress_;
};

}  // namespace

Action add_eval(CLI::App& app) {
  auto args = std::make_shared<EvalArguments>();
  app.add_option("data", args->files, "Labelled records, one a line")->type_name("FILE")->required();
  ModelArguments::add_all(app, args->model);
  AnswerArguments::add_limits(app, args->answering);
  AnswerArguments::add_thinking(app, args->answering);
  app.add_flag("--think", args->think, "Ask with thinking (default: with it and without)");
  app.add_flag("--no-think", args->no_think, "Ask without thinking");
  app.add_option("--limit", args->limit, "Only the first N records")->type_name("N");
  app.add_option("--sample", args->sample, "Only N records, drawn at random")->type_name("N");
  app.add_option("--seed", args->seed, "Of the draw")->type_name("N")->capture_default_str();
  app.add_option("--batch", args->batch, "Requests answered together; latency is measured with 1 only")
      ->type_name("N")
      ->capture_default_str();
  app.add_option("--against", args->against, "Ask again with weights held in this type, and compare")
      ->type_name("TYPE");
  app.add_flag("--checks", args->checks,
               "Ask directly with options, questions and labels put another way (default with --html)");
  app.add_flag("--no-checks", args->no_checks, "Not even with --html");
  app.add_option("--usd-per-hour", args->dollars_per_hour, "What the machine costs, for JevBench's cost")
      ->type_name("USD");
  app.add_option("--html", args->html, "Write a report with plots, one self-contained file")
      ->type_name("FILE");
  app.add_option("--svg", args->svg, "Write the plots into this folder")->type_name("FOLDER");
  app.add_flag("--json", args->json, "Print JSON");
  return [args] { return Eval(*args).run(); };
}

}  // namespace ponder::cli
