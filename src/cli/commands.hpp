// The verbs. Each adds its options to the parser and runs when it was chosen.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include <CLI/CLI.hpp>

namespace ponder::cli {

// A verb's action; returns the exit status.
using Action = std::function<int()>;

Action add_decide(CLI::App& app);
Action add_tokenize(CLI::App& app);
Action add_logits(CLI::App& app);
Action add_info(CLI::App& app);
Action add_bench(CLI::App& app);
Action add_convert(CLI::App& app);
Action add_eval(CLI::App& app);
Action add_calibrate(CLI::App& app);

class Commands {
 public:
  explicit Commands(CLI::App& app) {
    add(app, "decide", "Answer typed questions about a state with calibrated probabilities", add_decide);
    add(app, "tokenize", "Text to token ids, ids to text, chat messages to text (JSON lines)", add_tokenize);
    add(app, "logits", "Logits and hidden states of a model for given token ids", add_logits);
    add(app, "info", "What a model folder holds and what it needs", add_info);
    add(app, "convert", "Quantise a model folder and pack it for the kernels", add_convert);
    add(app, "eval", "How right and how well calibrated a model is on labelled records", add_eval);
    add(app, "calibrate", "Fit the temperature of a model on labelled records", add_calibrate);
    add(app, "bench", "How fast a model runs, beside what the machine can do", add_bench);
  }

  int run() const {
    for (const Verb& verb : verbs_) {
      if (verb.app->parsed()) return verb.action();
    }
    return 0;
  }

 private:
  struct Verb {
    CLI::App* app;
    Action action;
  };

  template <class Add>
  void add(CLI::App& app, const char* name, const char* description, Add add_options) {
    CLI::App* verb = app.add_subcommand(name, description);
    verbs_.push_back({verb, add_options(*verb)});
  }

  std::vector<Verb> verbs_;
};

}  // namespace ponder::cli
