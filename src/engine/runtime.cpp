#include "engine/runtime.hpp"

#include "base/cpu_budget.hpp"
#include "base/thread_pool.hpp"
#include "cpu/backend.hpp"

namespace ponder::engine {

std::shared_ptr<ops::Backend> make_backend(const RuntimeOptions& options) {
  if (options.reference) return ops::make_reference_backend(options.activations);
  const CpuBudget budget = cpu_budget(options.threads);
  cpu::CpuBackendOptions backend;
  backend.isa = options.isa;
  backend.pool = std::make_shared<ThreadPool>(budget.threads, pool_options(budget));
  backend.activations = options.activations;
  backend.thread_reason = budget.reason;
  return cpu::make_cpu_backend(backend);
}

}  // namespace ponder::engine
