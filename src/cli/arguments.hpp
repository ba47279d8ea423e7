// Options that several verbs share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "decide/decision_model.hpp"

namespace ponder::cli {

struct ModelArguments {
  std::string model;  // empty: the demo model
  std::string type = "auto";
  std::optional<std::int64_t> threads;
  std::string isa;
  std::string activations = "auto";
  std::string kv = "f32";
  int step_rows = 512;
  bool verbose = false;

  // --model alone, for verbs that compute nothing.
  static void add_model(CLI::App& app, const std::shared_ptr<ModelArguments>& args);
  // --model and everything that says how to compute.
  static void add_all(CLI::App& app, const std::shared_ptr<ModelArguments>& args);

  // The folder given, or the demo model's: beside the installed program, or in the source tree it was built
  // in. Throws Error(bad_file) when neither is there.
  std::filesystem::path folder() const;
  decide::LoadOptions load_options() const;
  // On a terminal, or with --verbose: one line on stderr about instruction set and threads.
  void announce(const std::string& description) const;
};

// The drafter of a model, and what it remembers.
struct DraftArguments {
  std::optional<std::string> drafter;
  std::string kv = "q8";
  hybrid::DraftMemory memory;

  static void add(CLI::App& app, const std::shared_ptr<DraftArguments>& args);
  // Throws Error(usage) for values out of range.
  hybrid::DraftMemory checked_memory() const;
};

// An option that takes whole numbers separated by commas and nothing else; `example` shows how.
CLI::Option* add_numbers(CLI::App& app, const char* name, std::vector<std::int32_t>& values,
                         const char* example, const char* what);

// "auto", "f32", "bf16", "f16", "fp8", "q8", "q4", "q4tp". Throws Error(usage).
hybrid::TypeChoice parse_weight_type(const std::string& text);
// "f32", "bf16", "q8". Throws Error(usage).
ops::KvType parse_kv_type(const std::string& text, const char* option);

}  // namespace ponder::cli
