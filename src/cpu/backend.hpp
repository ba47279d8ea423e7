// The operations of ops/backend.hpp for CPUs: one instruction set, one thread pool.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/thread_pool.hpp"
#include "cpu/cpu_features.hpp"
#include "ops/backend.hpp"

namespace ponder::cpu {

struct CpuBackendOptions {
  // Nothing: the best this machine has.
  std::optional<InstructionSet> isa = {};
  // Nothing: what this machine has. Fewer switch off what instruction sets may use on top of themselves.
  std::optional<CpuFeatures> features = {};
  // Null: the calling thread alone.
  std::shared_ptr<ThreadPool> pool = {};
  ops::ActivationType activations = ops::ActivationType::f32;
  // Why there are as many threads as there are, for describe(); may be empty.
  std::string thread_reason = {};
};

// Results depend on the instruction set (lanes of a sum), never on the number of threads. Throws
// Error(unsupported), naming what is missing, for an instruction set that this machine or this build lacks.
std::unique_ptr<ops::Backend> make_cpu_backend(const CpuBackendOptions& options = {});

}  // namespace ponder::cpu
