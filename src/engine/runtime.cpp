#include "engine/runtime.hpp"

#include "base/cpu_budget.hpp"
#include "base/thread_pool.hpp"
#include "cpu/backend.hpp"

namespace ponder::engine {

ops::ActivationType choose_activations(const RuntimeOptions& options, int hidden_size) {
  constexpr int small_model = 1024;
  return options.activations.value_or(hidden_size < small_model ? ops::ActivationType::f32
                                                                : ops::ActivationType::native);
}

std::shared_ptr<ops::Backend> make_backend(const RuntimeOptions& options) {
  const ops::ActivationType activations = options.activations.value_or(ops::ActivationType::f32);
  if (options.reference) return ops::make_reference_backend(activations);
  const CpuBudget budget = cpu_budget(options.threads);
  cpu::CpuBackendOptions backend;
  backend.isa = options.isa;
  backend.pool = options.pool;
  if (backend.pool == nullptr) {
    backend.pool = std::make_shared<ThreadPool>(budget.threads, pool_options(budget));
  }
  backend.activations = activations;
  backend.thread_reason = budget.reason;
  return cpu::make_cpu_backend(backend);
}

}  // namespace ponder::engine
