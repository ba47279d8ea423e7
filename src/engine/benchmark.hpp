// How fast a model runs, next to what the machine can do: prompts, steps of one token for several sequences.
#pragma once

#include <cstdint>
#include <vector>

#include "cpu/peaks.hpp"
#include "engine/engine.hpp"
#include "ops/profiled_backend.hpp"

namespace ponder::engine {

// The arithmetic that products with weights of a type are done in.
enum class Arithmetic : std::uint8_t { f32, bf16, int8 };
Arithmetic arithmetic_of(ops::WeightType weights, ops::ActivationType activations);
double peak_of(Arithmetic arithmetic, const cpu::Peaks& peaks);

struct Spread {
  double median = 0, min = 0, max = 0;
  static Spread of(std::vector<double> values);  // not empty
};

// What has to be done, whoever does it; see ops::OpRecord.
struct Work {
  std::uint64_t weight_bytes = 0, kv_bytes = 0, state_bytes = 0, multiply_adds = 0;
  std::uint64_t bytes() const { return weight_bytes + kv_bytes + state_bytes; }
  static Work of(const std::vector<ops::OpRecord>& ops);
};

// Operations of one recorded prompt, or of some recorded steps.
struct Profile {
  std::vector<ops::OpRecord> ops;
  int steps = 0;
  double seconds = 0;  // of the whole, with what happens between operations
};

struct Figure {
  int rows = 0;      // tokens of the prompt, or sequences of a step
  Spread seconds;    // for the prompt, or for one step
  Work work;         // of the prompt, or of the first step behind the context
  cpu::Peaks peaks;  // the better of the rounds just before and just after
  Profile profile;   // empty unless asked for
};

class Benchmark {
 public:
  // `profiled` is the backend of the engine's model; both outlive this. Measures the machine once.
  Benchmark(Engine& engine, ops::ProfiledBackend& profiled, cpu::PeakMeter& meter);

  // A fresh sequence of `tokens` random ids, with the choice of the next token; `repeat` times after a
  // warm-up.
  Figure prompt(int tokens, int repeat);

  // Steps of one token for the first `rows` sequences, every token being the last step's choice: `repeat`
  // samples, each the mean of kSampleSteps steps. All start from `context` random ids of their own.
  Figure decode(int rows, int context, int repeat, bool profile);
  static constexpr int kSampleSteps = 8;

  // The best of all rounds so far, and the least.
  const cpu::Peaks& best() const noexcept { return best_; }
  const cpu::Peaks& worst() const noexcept { return worst_; }

 private:
  std::vector<std::int32_t> random_ids(int count);
  double run_prompt(const std::vector<std::int32_t>& ids);
  void grow_contexts(int rows, int context);
  void step(std::vector<Sequence>& sequences, std::vector<std::int32_t>& ids);
  double sample(std::vector<Sequence>& sequences, std::vector<std::int32_t>& ids, int steps);
  cpu::Peaks measure_machine();

  Engine& engine_;
  ops::ProfiledBackend& profiled_;
  cpu::PeakMeter& meter_;
  cpu::Peaks last_, best_, worst_;
  std::uint64_t ids_made_ = 0;
  bool warm_ = false;
  int context_ = 0;
  std::vector<Sequence> contexts_;       // [rows] of context_ ids, kept to start from
  std::vector<std::int32_t> first_ids_;  // the choice behind each
  std::vector<float> hidden_;
  std::vector<ExtendJob> jobs_;
};

}  // namespace ponder::engine
