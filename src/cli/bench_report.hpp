// What `ponder bench` found, for people and for programs.
#pragma once

#include <string>
#include <vector>

#include "cli/think_report.hpp"
#include "decide/json_value.hpp"
#include "engine/benchmark.hpp"
#include "models/hybrid/model.hpp"

namespace ponder::cli {

struct BenchReport {
  std::string backend;      // one line: instruction set, threads and why
  std::string model;        // what was measured
  std::string weight_type;  // of most of the weights
  engine::Arithmetic arithmetic = engine::Arithmetic::f32;
  std::uint64_t parameters = 0;    // numbers in matrices
  std::uint64_t matrix_bytes = 0;  // what they take
  int layers = 0, hidden = 0, vocabulary = 0;
  std::string kv;  // how keys and values are held
  int threads = 0, step_rows = 0, context = 0, repeat = 0;
  ops::ActivationType activations = ops::ActivationType::f32;

  cpu::Peaks best, worst;
  std::string int8_instruction, bf16_instruction, f32_instruction;
  std::vector<engine::Figure> prompts;
  std::vector<engine::Figure> decodes;
  bool ops = false;
  ThinkReport thinking;

  // Counts the model's matrices and says what they are held as.
  void describe(const hybrid::HybridModel& model);

  std::string text() const;
  decide::Value json() const;
};

}  // namespace ponder::cli
