// Which CPUs the kernel lets a thread run on.
#pragma once

#include <span>
#include <vector>

#include <pthread.h>

namespace ponder {

// The CPUs the calling thread may run on, ascending; cpusets included, any number of CPUs. Empty when the
// system does not say.
std::vector<int> allowed_cpus();

// Confines a thread to `cpus`. False, with nothing changed, when the system refuses.
bool restrict_thread(pthread_t thread, std::span<const int> cpus) noexcept;

}  // namespace ponder
