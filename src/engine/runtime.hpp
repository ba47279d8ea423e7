// What a program runs models on: threads, instruction set, activations; chosen once at start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/thread_pool.hpp"
#include "cpu/cpu_features.hpp"
#include "ops/backend.hpp"

namespace ponder::engine {

struct RuntimeOptions {
  std::optional<std::int64_t> threads;     // --threads; default: what affinity and cgroup quotas allow
  std::optional<cpu::InstructionSet> isa;  // --isa; default: the best this machine has
  std::optional<ops::ActivationType> activations;  // --activations; default: choose_activations()
  std::shared_ptr<ThreadPool> pool;                // null: one of its own, of `threads`
  bool reference = false;  // the scalar reference instead of the CPU backend, for checking
};

// What inputs of products are rounded to unless the user says: small models are cheap and feel every
// rounding, so they keep their inputs; from a hidden size of 1024 on, what suits the weights.
ops::ActivationType choose_activations(const RuntimeOptions& options, int hidden_size);

// `options.activations` must be set, else f32. Throws Error(usage) for a thread count out of range,
// Error(unsupported) for an instruction set that is not there.
std::shared_ptr<ops::Backend> make_backend(const RuntimeOptions& options);

}  // namespace ponder::engine
