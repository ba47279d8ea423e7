// Tiny golden checkpoints, loaded for tests.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/thread_pool.hpp"
#include "cpu/backend.hpp"
#include "formats/safetensors.hpp"
#include "models/hybrid/model.hpp"

namespace ponder::test {

inline std::filesystem::path golden_folder(const std::string& checkpoint) {
  return std::filesystem::path(PONDER_TEST_DATA) / "hybrid" / checkpoint;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(ErrorKind::bad_file, "{}: cannot read", path.string());
  return {std::istreambuf_iterator<char>(in), {}};
}

inline nlohmann::ordered_json read_json(const std::filesystem::path& path) {
  return nlohmann::ordered_json::parse(read_text(path));
}

// A way to run a model: which backend, how many threads.
struct Runner {
  std::string name;  // letters, digits and underscores: part of a test's name
  bool reference = false;
  cpu::InstructionSet isa = cpu::InstructionSet::scalar;
  int threads = 1;
  ops::ActivationType activations = ops::ActivationType::f32;
};

inline std::shared_ptr<ops::Backend> make_backend(const Runner& runner) {
  if (runner.reference) return ops::make_reference_backend(runner.activations);
  cpu::CpuBackendOptions options;
  options.isa = runner.isa;
  options.pool = std::make_shared<ThreadPool>(runner.threads);
  options.activations = runner.activations;
  return cpu::make_cpu_backend(options);
}

// The reference and every instruction set of this machine.
inline std::vector<Runner> all_runners(ops::ActivationType activations = ops::ActivationType::f32) {
  std::vector<Runner> out = {{"reference", true, cpu::InstructionSet::scalar, 1, activations}};
  for (const cpu::InstructionSet isa : cpu::attainable(cpu::detect_cpu_features())) {
    out.push_back({std::string(cpu::name(isa)), false, isa, 2, activations});
  }
  return out;
}

inline std::unique_ptr<hybrid::HybridModel> load_model(const std::string& checkpoint, const Runner& runner,
                                                       hybrid::TypeChoice type = std::nullopt,
                                                       int max_rows = 64, ops::KvType kv = ops::KvType::f32) {
  const std::filesystem::path folder = golden_folder(checkpoint);
  const std::string config_file = (folder / "config.json").string();
  hybrid::Config config = hybrid::Config::parse(read_text(config_file), config_file);
  config.kv_type = kv;
  const std::shared_ptr<ops::Backend> backend = make_backend(runner);
  hybrid::Weights weights = hybrid::load_weights(config, formats::open_model_folder(folder), *backend, type);
  return std::make_unique<hybrid::HybridModel>(std::move(config), std::move(weights), backend, max_rows);
}

}  // namespace ponder::test
