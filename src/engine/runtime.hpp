// What a program runs models on: threads, instruction set, activations; chosen once at start.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "cpu/cpu_features.hpp"
#include "ops/backend.hpp"

namespace ponder::engine {

struct RuntimeOptions {
  std::optional<std::int64_t> threads;     // --threads; default: what affinity and cgroup quotas allow
  std::optional<cpu::InstructionSet> isa;  // --isa; default: the best this machine has
  ops::ActivationType activations = ops::ActivationType::f32;
  bool reference = false;  // the scalar reference instead of the CPU backend, for checking
};

// Throws Error(usage) for a thread count out of range, Error(unsupported) for an instruction set that is not
// there.
std::shared_ptr<ops::Backend> make_backend(const RuntimeOptions& options);

}  // namespace ponder::engine
