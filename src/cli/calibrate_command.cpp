// ponder calibrate: the temperature that makes direct answers as sure as they are right.
#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/answer_arguments.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "cli/output_file.hpp"
#include "cli/progress.hpp"
#include "cli/record_reader.hpp"
#include "decide/answer.hpp"
#include "decide/calibration.hpp"
#include "decide/decision_model.hpp"
#include "decide/evaluator.hpp"
#include "decide/json_write.hpp"
#include "decide/metrics.hpp"
#include "decide/python_format.hpp"

namespace ponder::cli {
namespace {

using namespace decide;

namespace fs = std::filesystem;

// A temperature is written with so many decimals: far more than a fit can tell.
constexpr int kDecimals = 6;

struct CalibrateArguments {
  std::shared_ptr<ModelArguments> model = std::make_shared<ModelArguments>();
  std::shared_ptr<AnswerArguments> answering = std::make_shared<AnswerArguments>();
  std::vector<std::string> files;
  std::optional<std::int64_t> limit;
  int batch = 16;
  bool write = false;
  bool json = false;
};

// Answers with a label, the probabilities in one piece.
class LabelledAnswers {
 public:
  void add(const std::vector<double>& probs, std::size_t label) {
    probs_.insert(probs_.end(), probs.begin(), probs.end());
    ends_.push_back(probs_.size());
    labels_.push_back(label);
  }

  std::vector<LabelledProbs> views() const {
    std::vector<LabelledProbs> out;
    std::size_t begin = 0;
    for (std::size_t i = 0; i < ends_.size(); ++i) {
      out.push_back({std::span<const double>(probs_).subspan(begin, ends_[i] - begin), labels_[i]});
      begin = ends_[i];
    }
    return out;
  }

 private:
  std::vector<double> probs_;
  std::vector<std::size_t> ends_, labels_;
};

Metrics measure(const std::vector<LabelledProbs>& answers, double ratio) {
  MetricSums sums;
  for (const LabelledProbs& a : answers) {
    const std::vector<double> probs =
        ratio == 1 ? std::vector<double>(a.probs.begin(), a.probs.end()) : retempered(a.probs, ratio);
    sums.add(probs, chosen(a.probs), a.label);
  }
  return sums.total();
}

struct Calibration {
  double old_temperature = 1, temperature = 1;
  bool at_bound = false;
  Metrics before, after;
  std::size_t records = 0, unanswerable = 0, failed = 0;
  std::optional<std::string> written;  // the file

  std::string text() const {
    std::string out =
        fmt::format("{} records, {} labelled questions answered directly\n\n", records, before.count);
    out += fmt::format("{:<10}{:>12}  {:>8}  {:>8}  {:>8}  {:>8}\n", "", "temperature", "nll", "ece", "brier",
                       "acc");
    const auto row = [](const char* name, double t, const Metrics& m) {
      return fmt::format("{:<10}{:>12.6g}  {:>8.4f}  {:>8.4f}  {:>8.4f}  {:>8.4f}\n", name, t, m.nll, m.ece,
                         m.brier, m.accuracy());
    };
    out += row("before", old_temperature, before) + row("after", temperature, after);
    if (unanswerable > 0)
      out += fmt::format("{} questions whose state does not say are left out\n", unanswerable);
    if (failed > 0) out += fmt::format("{} questions were not answered and are left out\n", failed);
    if (at_bound)
      out += "the loss has no minimum between the bounds: these answers do not tell a temperature\n";
    if (written) {
      out += fmt::format("written to {}\n", *written);
    } else if (!at_bound) {
      out += "not written; --write does\n";
    }
    return out;
  }

  Value json() const {
    const auto side = [](double t, const Metrics& m) {
      Object o;
      o.append("temperature", t);
      o.append("nll", m.nll);
      o.append("ece", m.ece);
      o.append("brier", m.brier);
      o.append("accuracy", m.accuracy());
      return o;
    };
    Object out;
    out.append("records", whole(records));
    out.append("questions", whole(before.count));
    out.append("unanswerable", whole(unanswerable));
    out.append("failed", whole(failed));
    out.append("before", side(old_temperature, before));
    out.append("after", side(temperature, after));
    out.append("at_bound", at_bound);
    out.append("written", written ? Value(*written) : Value());
    return out;
  }
};

class Calibrate {
 public:
  explicit Calibrate(const CalibrateArguments& args) : args_(args), folder_(folder_of(args)) {
    args.answering->check();
    if (args.limit) check_range("--limit", *args.limit, 1, max_setting);
    check_range("--batch", args.batch, 1, 4096);
    if (args.write) require_writable(target());
  }

  int run() {
    std::optional<std::size_t> limit;
    if (args_.limit) limit = static_cast<std::size_t>(*args_.limit);
    total_ = check_records(args_.files, limit).records;
    answer();
    fit();
    if (args_.write) write();
    print(args_.json ? write_json(result_.json(), 2) + "\n" : result_.text());
    return 0;
  }

 private:
  static fs::path folder_of(const CalibrateArguments& args) {
    if (args.write && args.model->model.empty()) {
      fail(ErrorKind::usage,
           "--write: the demo model is part of the program; copy its folder and name the copy with --model");
    }
    return args.model->folder();
  }

  fs::path target() const { return folder_ / "export.json"; }

  void answer() {
    LoadOptions options = args_.model->load_options();
    args_.answering->apply_to(options);
    options.drafter.emplace();  // nothing is thought here
    progress_.show("loading the model");
    const auto model = DecisionModel::load(folder_, options);
    progress_.clear();
    args_.model->announce(model->describe());
    result_.old_temperature = model->info().temperature;
    RecordReader reader(args_.files);
    std::vector<LabelledRecord> records;
    while (result_.records < total_) {
      auto record = reader.next();
      if (!record) fail(ErrorKind::invalid_input, "{}: has fewer records than before", args_.files.back());
      records.push_back(std::move(*record));
      ++result_.records;
      if (records.size() < static_cast<std::size_t>(args_.batch) && result_.records < total_) continue;
      keep(records, direct_answers(*model, records));
      records.clear();
      progress_.show(fmt::format("{} of {} records", result_.records, total_));
    }
    progress_.clear();
  }

  void keep(const std::vector<LabelledRecord>& records, const std::vector<std::vector<double>>& probs) {
    std::size_t at = 0;
    for (const LabelledRecord& record : records) {
      for (const Label& label : record.labels) {
        const std::vector<double>& p = probs[at++];
        if (!label.option) {
          ++result_.unanswerable;
        } else if (p.empty()) {
          ++result_.failed;
        } else {
          answers_.add(p, *label.option);
        }
      }
    }
  }

  void fit() {
    const std::vector<LabelledProbs> answers = answers_.views();
    if (answers.empty()) {
      fail(ErrorKind::invalid_input, "{}: no question with a label was answered, expected at least one",
           printable(args_.files.front(), 4000));
    }
    const TemperatureFit found = fit_temperature(answers, result_.old_temperature);
    result_.at_bound = found.at_bound;
    result_.temperature = python_round(found.temperature, kDecimals);
    result_.before = measure(answers, 1);
    result_.after = measure(answers, result_.old_temperature / result_.temperature);
  }

  void write() {
    if (result_.at_bound) {
      fail(ErrorKind::invalid_input,
           "not written: the loss of these answers has no minimum between temperatures {} and {}",
           least_temperature, greatest_temperature);
    }
    std::string text;
    try {
      text = with_temperature(Input(target().string()).all(), result_.temperature);
    } catch (const Error& error) {
      fail(error.kind(), "{}: {}", printable(target().string(), 4000), error.what());
    }
    write_whole_file(target(), text);
    result_.written = target().string();
  }

  CalibrateArguments args_;
  fs::path folder_;
  Progress progress_;
  std::size_t total_ = 0;
  LabelledAnswers answers_;
  Calibration result_;
};

}  // namespace

Action add_calibrate(CLI::App& app) {
  auto args = std::make_shared<CalibrateArguments>();
  app.add_option("data", args->files, "Labelled records, one a line")->type_name("FILE")->required();
  ModelArguments::add_all(app, args->model);
  AnswerArguments::add_limits(app, args->answering);
  app.add_option("--limit", args->limit, "Only the first N records")->type_name("N");
  app.add_option("--batch", args->batch, "Requests answered together")->type_name("N")->capture_default_str();
  app.add_flag("--write", args->write, "Write the temperature into the model's export.json");
  app.add_flag("--json", args->json, "Print JSON");
  return [args] { return Calibrate(*args).run(); };
}

}  // namespace ponder::cli
