// How many threads to compute with: what this process may use, not what the machine has.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/system_files.hpp"
#include "base/thread_pool.hpp"

namespace ponder {

inline constexpr int kMostThreads = 1024;

struct CpuBudget {
  int threads = 1;
  std::string reason;  // one line for the log: how many threads, and why

  int allowed_cpus = 1;         // logical CPUs in the affinity mask, cpusets included
  int physical_cores = 1;       // distinct cores among them
  std::optional<double> quota;  // the tightest cgroup quota, in CPUs
  std::string quota_source;     // the group's directory; empty without a quota
  int numa_nodes = 1;           // memory nodes the mask spans
  int numa_node = 0;            // the one the default keeps to, when it spans several
  std::vector<int> cpus;        // that node's allowed CPUs; empty when there is one node or several are used
};

// The default: one thread for each physical core in the affinity mask, on one memory node, at most as many as
// the tightest cgroup quota allows (version 1 or 2, own group or any parent; 2.5 CPUs are 2 threads, 0.5 is
// 1). Two threads on one core would share its arithmetic units; more threads than the quota would be stopped
// by the kernel in turns, while the others wait. Never fails: files that are missing count as no limit, files
// that make no sense are named in `reason`.
CpuBudget detect_cpu_budget(const CpuBudgetSources& sources = {});

// `requested` is the value of --threads, which wins over everything detected; unset: the default above. Fails
// with ErrorKind::usage outside 1..1024.
CpuBudget cpu_budget(std::optional<std::int64_t> requested, const CpuBudgetSources& sources = {});

// How a pool of budget.threads should behave: no spinning when it has more threads than it may use CPUs, and
// on the budget's memory node.
ThreadPoolOptions pool_options(const CpuBudget& budget);

}  // namespace ponder
