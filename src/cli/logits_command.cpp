// ponder logits: what a model computes for given ids, for checking against a reference.
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/arguments.hpp"
#include "cli/commands.hpp"
#include "cli/io.hpp"
#include "decide/decision_model.hpp"

namespace ponder::cli {
namespace {

struct LogitsArguments {
  std::shared_ptr<ModelArguments> model = std::make_shared<ModelArguments>();
  std::vector<std::int32_t> ids;
  std::vector<int> chunks;
  bool all = false;
  bool hidden = false;
};

// [a, b, ...]
void append_row(std::string& out, const float* values, std::size_t count) {
  out += '[';
  for (std::size_t i = 0; i < count; ++i) {
    if (i > 0) out += ", ";
    append_number(out, values[i]);
  }
  out += ']';
}

// [[...], ...] of rows of `cols` floats.
void append_matrix(std::string& out, const std::vector<float>& values, std::size_t cols) {
  out += '[';
  for (std::size_t at = 0; at < values.size(); at += cols) {
    if (at > 0) out += ", ";
    append_row(out, values.data() + at, cols);
  }
  out += ']';
}

class Logits {
 public:
  explicit Logits(const LogitsArguments& args) : args_(args) {
    if (args.ids.empty()) fail(ErrorKind::usage, "--ids: expected at least one token id");
    if (args_.chunks.empty()) args_.chunks = {static_cast<int>(args.ids.size())};
    std::size_t sum = 0;
    for (const int c : args_.chunks) {
      if (c < 1) fail(ErrorKind::usage, "--chunks: a piece of {} ids, expected at least 1", c);
      sum += static_cast<std::size_t>(c);
    }
    if (sum != args.ids.size()) {
      fail(ErrorKind::usage, "--chunks: pieces of {} ids in all, --ids has {}", sum, args.ids.size());
    }
  }

  int run() {
    const auto files = decide::BackboneFiles::open(args_.model->folder());
    engine_ = decide::load_backbone(files, args_.model->load_options(), 1,
                                    static_cast<std::int64_t>(args_.ids.size()));
    width_ = static_cast<std::size_t>(engine_->model().hidden_size());
    hidden_.resize(args_.ids.size() * width_);
    feed();
    write();
    return 0;
  }

 private:
  void feed() {
    engine::Sequence sequence = engine_->new_sequence();
    const models::LayerObserver observer = [&](int layer, ops::ConstRows x, int rows) {
      const auto at = static_cast<std::size_t>(layer);
      if (layers_.size() <= at) layers_.resize(at + 1);
      for (int r = 0; r < rows; ++r) layers_[at].insert(layers_[at].end(), x[r], x[r] + width_);
    };
    std::size_t at = 0;
    for (const int chunk : args_.chunks) {
      std::vector<int> wanted(static_cast<std::size_t>(chunk));
      std::iota(wanted.begin(), wanted.end(), 0);
      const engine::ExtendJob job{&sequence,
                                  std::span<const std::int32_t>(args_.ids).subspan(at, wanted.size()),
                                  wanted,
                                  {hidden_.data() + at * width_, static_cast<std::int64_t>(width_)}};
      engine_->extend({&job, 1}, {}, args_.hidden ? &observer : nullptr);
      at += wanted.size();
    }
  }

  void write() {
    const auto vocab = static_cast<std::size_t>(engine_->model().vocab_size());
    const std::size_t rows = args_.ids.size();
    std::vector<float> row(vocab);
    print(R"({"logits": )");
    std::string out = args_.all ? "[" : "";
    const std::size_t first = args_.all ? 0 : rows - 1;
    for (std::size_t r = first; r < rows; ++r) {
      engine_->model().logits({hidden_.data() + r * width_, static_cast<std::int64_t>(width_)}, 1,
                              {row.data(), static_cast<std::int64_t>(vocab)});
      if (r > first) out += ", ";
      append_row(out, row.data(), vocab);
      print(out);
      out.clear();
    }
    out = args_.all ? "]" : "";
    if (args_.hidden) {
      out += R"(, "layers": [)";
      for (std::size_t i = 0; i < layers_.size(); ++i) {
        if (i > 0) out += ", ";
        append_matrix(out, layers_[i], width_);
      }
      out += R"(], "final_norm": )";
      append_matrix(out, hidden_, width_);
    }
    print(out + "}\n");
  }

  LogitsArguments args_;
  std::unique_ptr<engine::Engine> engine_;
  std::size_t width_ = 0;
  std::vector<float> hidden_;               // [rows][hidden], final-normed
  std::vector<std::vector<float>> layers_;  // [layer][rows][hidden]
};

}  // namespace

Action add_logits(CLI::App& app) {
  auto args = std::make_shared<LogitsArguments>();
  ModelArguments::add_all(app, args->model);
  add_numbers(app, "--ids", args->ids, "1,2,3", "Token ids, separated by commas")->required();
  add_numbers(app, "--chunks", args->chunks, "3,1,4", "Feed the ids in pieces of these sizes");
  app.add_flag("--all", args->all, "Logits of every row instead of the last");
  app.add_flag("--hidden", args->hidden,
               "Add the residual stream of every layer (0: the embedding) and the final norm");
  return [args] { return Logits(*args).run(); };
}

}  // namespace ponder::cli
