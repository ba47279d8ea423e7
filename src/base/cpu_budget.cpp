#include "base/cpu_budget.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/cpu_set.hpp"
#include "base/error.hpp"

namespace ponder {
namespace {

// ---- quotas ----

struct Quota {
  std::uint64_t time = 0;    // microseconds of CPU in each period
  std::uint64_t period = 1;  // microseconds, not 0
  std::string source;

  double cpus() const { return static_cast<double>(time) / static_cast<double>(period); }
};

// "max 100000" or "250000 100000".
std::optional<Quota> quota_v2(const SystemSources& sources, const std::string& directory,
                              SystemNotes& notes) {
  const std::string path = directory + "/cpu.max";
  const auto text = read_system_file(sources, path);
  if (!text) return std::nullopt;  // the root group has none
  std::string_view rest = trimmed(*text);
  const std::string_view time = next_field(rest, ' ');
  if (time == "max") return std::nullopt;
  const auto time_us = parse_decimal(time);
  const auto period_us = parse_decimal(trimmed(rest));
  if (!time_us || !period_us || *period_us == 0) {
    notes.malformed(path, *text);
    return std::nullopt;
  }
  return Quota{*time_us, *period_us, directory};
}

std::optional<Quota> quota_v1(const SystemSources& sources, const std::string& directory,
                              SystemNotes& notes) {
  const std::string quota_path = directory + "/cpu.cfs_quota_us";
  const std::string period_path = directory + "/cpu.cfs_period_us";
  const auto time = read_system_file(sources, quota_path);
  const auto period = read_system_file(sources, period_path);
  if (!time || trimmed(*time) == "-1") return std::nullopt;
  const auto time_us = parse_decimal(trimmed(*time));
  if (!time_us) {
    notes.malformed(quota_path, *time);
    return std::nullopt;
  }
  const auto period_us = parse_decimal(trimmed(period.value_or("")));
  if (!period_us || *period_us == 0) {
    notes.malformed(period_path, period.value_or(""));
    return std::nullopt;
  }
  return Quota{*time_us, *period_us, directory};
}

std::optional<Quota> tightest_quota(const SystemSources& sources, SystemNotes& notes) {
  std::optional<Quota> tightest;
  for (const ControlGroup& group : control_groups(sources, "cpu")) {
    auto quota = group.version == 2 ? quota_v2(sources, group.directory, notes)
                                    : quota_v1(sources, group.directory, notes);
    if (quota && (!tightest || quota->cpus() < tightest->cpus())) tightest = std::move(quota);
  }
  return tightest;
}

// ---- cores and memory nodes ----

// What tells one physical core from another: the first of the CPUs it shows as, or package and core number.
using CoreKey = std::tuple<int, std::uint64_t, std::uint64_t>;

CoreKey core_of(const SystemSources& sources, int cpu, SystemNotes& notes) {
  const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
  for (const char* const name : {"core_cpus_list", "thread_siblings_list"}) {
    const auto text = read_system_file(sources, topology + name);
    if (!text) continue;
    const auto siblings = parse_cpu_list(*text);
    if (siblings && std::binary_search(siblings->begin(), siblings->end(), cpu))
      return {0, 0, siblings->front()};
    notes.malformed(topology + name, *text);
  }
  const auto package = read_system_file(sources, topology + "physical_package_id");
  const auto core = read_system_file(sources, topology + "core_id");
  if (package && core) {
    const auto package_id = parse_decimal(trimmed(*package));
    const auto core_id = parse_decimal(trimmed(*core));
    if (package_id && core_id) return {1, *package_id, *core_id};
  }
  return {2, 0, static_cast<std::uint64_t>(cpu)};  // nothing known: a core of its own
}

// The node of each CPU; empty on machines that show no nodes.
std::map<int, int> nodes_of_cpus(const SystemSources& sources, SystemNotes& notes) {
  std::map<int, int> nodes;
  const std::string base = "/sys/devices/system/node/";
  const auto online = read_system_file(sources, base + "online");
  if (!online) return nodes;
  const auto numbers = parse_cpu_list(*online);
  if (!numbers) notes.malformed(base + "online", *online);
  for (const int node : numbers.value_or(std::vector<int>{})) {
    const std::string path = fmt::format("{}node{}/cpulist", base, node);
    const auto text = read_system_file(sources, path);
    if (!text) continue;
    const auto cpus = parse_cpu_list(*text);
    if (!cpus) notes.malformed(path, *text);
    for (const int cpu : cpus.value_or(std::vector<int>{})) nodes.emplace(cpu, node);
  }
  return nodes;
}

struct Node {
  std::vector<int> cpus;
  std::set<CoreKey> cores;
};

// Fills in the counts of CPUs, cores and nodes, and the node to keep to; returns the cores a default may use.
int count_cores(const SystemSources& sources, const std::vector<int>& allowed, CpuBudget& budget,
                SystemNotes& notes) {
  const std::map<int, int> node_of = nodes_of_cpus(sources, notes);
  std::set<CoreKey> cores;
  std::map<int, Node> nodes;
  for (const int cpu : allowed) {
    const CoreKey core = core_of(sources, cpu, notes);
    const auto found = node_of.find(cpu);
    Node& node = nodes[found == node_of.end() ? 0 : found->second];
    node.cpus.push_back(cpu);
    node.cores.insert(core);
    cores.insert(core);
  }
  budget.allowed_cpus = static_cast<int>(allowed.size());
  budget.physical_cores = static_cast<int>(cores.size());
  budget.numa_nodes = static_cast<int>(nodes.size());
  if (nodes.size() == 1) return budget.physical_cores;
  const auto fewer = [](const auto& a, const auto& b) {
    return a.second.cores.size() < b.second.cores.size();
  };
  const auto largest = std::max_element(nodes.begin(), nodes.end(), fewer);  // the lowest number among equals
  budget.numa_node = largest->first;
  budget.cpus = largest->second.cpus;
  return static_cast<int>(largest->second.cores.size());
}

// ---- the line for the log ----

std::string counted(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string explain(const CpuBudget& budget, int usable_cores, bool affinity_known,
                    const SystemNotes& notes) {
  std::string why = counted(budget.physical_cores, "core");
  if (budget.allowed_cpus != budget.physical_cores) why += " with " + counted(budget.allowed_cpus, "CPU");
  why += affinity_known ? " allowed by affinity" : " (affinity unknown)";
  if (budget.numa_nodes > 1) {
    why += fmt::format(", {} of them on node {} of {}", usable_cores, budget.numa_node, budget.numa_nodes);
  }
  if (budget.quota) {
    why += fmt::format(", cgroup quota {:.2f} from {}", *budget.quota, printable(budget.quota_source, 200));
  } else {
    why += ", no cgroup quota";
  }
  why += notes.text();
  return why;
}

struct Detected {
  CpuBudget budget;
  std::string why;
};

Detected detect(const SystemSources& sources) {
  SystemNotes notes;
  CpuBudget budget;
  std::vector<int> allowed = sources.affinity ? *sources.affinity : allowed_cpus();
  std::sort(allowed.begin(), allowed.end());
  allowed.erase(std::unique(allowed.begin(), allowed.end()), allowed.end());
  const bool affinity_known = !allowed.empty();
  if (!affinity_known) {
    const int count = std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
    for (int cpu = 0; cpu < count; ++cpu) allowed.push_back(cpu);
  }
  const int cores = count_cores(sources, allowed, budget, notes);
  budget.threads = std::clamp(cores, 1, kMostThreads);
  if (const auto quota = tightest_quota(sources, notes)) {
    budget.quota = quota->cpus();
    budget.quota_source = quota->source;
    const std::uint64_t whole = std::max<std::uint64_t>(1, quota->time / quota->period);
    budget.threads = static_cast<int>(std::min<std::uint64_t>(whole, budget.threads));
  }
  std::string why = explain(budget, cores, affinity_known, notes);
  return {std::move(budget), std::move(why)};
}

}  // namespace

CpuBudget detect_cpu_budget(const CpuBudgetSources& sources) {
  return cpu_budget(std::nullopt, sources);
}

CpuBudget cpu_budget(std::optional<std::int64_t> requested, const CpuBudgetSources& sources) {
  if (requested && (*requested < 1 || *requested > kMostThreads)) {
    fail(ErrorKind::usage, "--threads {}: expected 1 to {}", *requested, kMostThreads);
  }
  auto [budget, why] = detect(sources);
  if (!requested) {
    budget.reason = fmt::format("{} ({})", counted(budget.threads, "thread"), why);
    return budget;
  }
  const int by_default = budget.threads;
  budget.threads = static_cast<int>(*requested);
  // More than the node has cores: confining them to it would defeat the request.
  if (budget.cpus.size() < static_cast<std::size_t>(budget.threads)) budget.cpus.clear();
  budget.reason = fmt::format("{} (--threads; the default is {}: {})", counted(budget.threads, "thread"),
                              by_default, why);
  return budget;
}

ThreadPoolOptions pool_options(const CpuBudget& budget) {
  ThreadPoolOptions options;
  const double usable = std::min<double>(budget.allowed_cpus, budget.quota.value_or(budget.allowed_cpus));
  if (budget.threads > std::max(1.0, usable)) options.spin = std::chrono::microseconds(0);
  options.cpus = budget.cpus;
  return options;
}

}  // namespace ponder
