#include "base/cpu_set.hpp"

#ifdef __linux__
#include <sched.h>
#endif

#include <cerrno>
#include <memory>

namespace ponder {

#ifdef __linux__

namespace {

constexpr int kMostCpus = 1 << 20;

struct CpuSetDeleter {
  void operator()(cpu_set_t* set) const { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, CpuSetDeleter>;

}  // namespace

std::vector<int> allowed_cpus() {
  // The kernel refuses a set smaller than its own, and says no more than that.
  for (int capacity = 1024; capacity <= kMostCpus; capacity *= 2) {
    const CpuSet set(CPU_ALLOC(static_cast<std::size_t>(capacity)));
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
    if (!set) return {};
    CPU_ZERO_S(bytes, set.get());
    if (sched_getaffinity(0, bytes, set.get()) != 0) {
      if (errno == EINVAL) continue;
      return {};
    }
    std::vector<int> cpus;
    for (int cpu = 0; cpu < capacity; ++cpu) {
      if (CPU_ISSET_S(static_cast<std::size_t>(cpu), bytes, set.get())) cpus.push_back(cpu);
    }
    return cpus;
  }
  return {};
}

bool restrict_thread(pthread_t thread, std::span<const int> cpus) noexcept {
  int most = -1;
  for (const int cpu : cpus) {
    if (cpu < 0 || cpu >= kMostCpus) return false;
    most = cpu > most ? cpu : most;
  }
  if (most < 0) return false;
  const auto capacity = static_cast<std::size_t>(most) + 1;
  const CpuSet set(CPU_ALLOC(capacity));
  const std::size_t bytes = CPU_ALLOC_SIZE(capacity);
  if (!set) return false;
  CPU_ZERO_S(bytes, set.get());
  for (const int cpu : cpus) CPU_SET_S(static_cast<std::size_t>(cpu), bytes, set.get());
  return pthread_setaffinity_np(thread, bytes, set.get()) == 0;
}

#else

std::vector<int> allowed_cpus() {
  return {};
}
bool restrict_thread(pthread_t, std::span<const int>) noexcept {
  return false;
}

#endif

}  // namespace ponder
