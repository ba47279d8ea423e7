#include "base/memory_budget.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "base/checked_math.hpp"
#include "base/error.hpp"

namespace ponder {
namespace {

// The number after `key` and blanks at the start of a line.
std::optional<std::uint64_t> value_of(std::string_view text, std::string_view key, std::string_view suffix) {
  while (!text.empty()) {
    const std::string_view line = next_field(text, '\n');
    if (!line.starts_with(key)) continue;
    std::string_view value = trimmed(line.substr(key.size()));
    if (!value.ends_with(suffix)) return std::nullopt;
    return parse_decimal(trimmed(value.substr(0, value.size() - suffix.size())));
  }
  return std::nullopt;
}

std::optional<std::uint64_t> kilobytes(std::string_view meminfo, std::string_view key) {
  const auto value = value_of(meminfo, key, "kB");
  return value ? checked_mul<std::uint64_t>(*value, 1024) : std::nullopt;
}

// The files of the two versions say the same under other names.
struct Names {
  const char* limit;
  const char* usage;
  const char* reclaimable;
};
constexpr Names kNamesV2 = {"/memory.max", "/memory.current", "inactive_file "};
constexpr Names kNamesV1 = {"/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_inactive_file "};

struct Group {
  std::uint64_t limit = 0;
  std::uint64_t left = 0;
};

std::optional<Group> read_group(const SystemSources& sources, const ControlGroup& group, SystemNotes& notes) {
  const Names& names = group.version == 2 ? kNamesV2 : kNamesV1;
  const std::string limit_path = group.directory + names.limit;
  const auto limit_text = read_system_file(sources, limit_path);
  if (!limit_text || trimmed(*limit_text) == "max" || trimmed(*limit_text) == "-1") return std::nullopt;
  const auto limit = parse_decimal(trimmed(*limit_text));
  if (!limit) {
    notes.malformed(limit_path, *limit_text);
    return std::nullopt;
  }
  const auto usage_text = read_system_file(sources, group.directory + names.usage);
  const auto stat_text = read_system_file(sources, group.directory + "/memory.stat");
  const std::uint64_t usage = parse_decimal(trimmed(usage_text.value_or(""))).value_or(0);
  const std::uint64_t reclaimable = value_of(stat_text.value_or(""), names.reclaimable, "").value_or(0);
  const std::uint64_t used = usage - std::min(usage, reclaimable);
  return Group{*limit, *limit - std::min(*limit, used)};
}

void read_machine(const SystemSources& sources, MemoryBudget& budget, SystemNotes& notes) {
  const auto meminfo = read_system_file(sources, "/proc/meminfo");
  if (!meminfo) return;
  const auto total = kilobytes(*meminfo, "MemTotal:");
  if (!total) {
    notes.malformed("/proc/meminfo", *meminfo);
    return;
  }
  budget.total = *total;
  // Kernels before 3.14 have no MemAvailable.
  budget.available = std::min(*total, kilobytes(*meminfo, "MemAvailable:").value_or(*total));
}

std::string size_text(std::uint64_t bytes) {
  return bytes == UINT64_MAX ? "unknown" : format_bytes(bytes);
}

std::string total_source(const MemoryBudget& budget) {
  if (!budget.limit_source.empty()) return "cgroup limit of " + printable(budget.limit_source, 200);
  return budget.total == UINT64_MAX ? "no limit known" : "the machine's memory";
}

}  // namespace

MemoryBudget detect_memory_budget(const MemoryBudgetSources& sources) {
  MemoryBudget budget;
  SystemNotes notes;
  read_machine(sources, budget, notes);
  for (const ControlGroup& group : control_groups(sources, "memory")) {
    const auto found = read_group(sources, group, notes);
    if (!found) continue;
    // An unlimited version 1 group shows a number near 2^63.
    if (found->limit < std::min<std::uint64_t>(budget.total, std::uint64_t{1} << 62)) {
      budget.total = found->limit;
      budget.limit_source = group.directory;
    }
    budget.available = std::min(budget.available, found->left);
  }
  budget.available = std::min(budget.available, budget.total);
  budget.reason = fmt::format("{} of memory available of {} ({})", size_text(budget.available),
                              size_text(budget.total), total_source(budget));
  budget.reason += notes.text();
  return budget;
}

void require_memory(const MemoryBudget& budget, std::uint64_t mapped_bytes, std::uint64_t allocated_bytes,
                    std::string_view what) {
  const auto sum = checked_add(mapped_bytes, allocated_bytes);
  if (sum && *sum <= budget.total && allocated_bytes <= budget.available) return;
  std::string need = format_bytes(allocated_bytes) + " of memory";
  if (mapped_bytes > 0) need += fmt::format(" and {} of mapped files", format_bytes(mapped_bytes));
  fail(ErrorKind::no_memory, "{} needs {}, but this process has {} available of {} ({})",
       printable(what, 200), need, size_text(budget.available), size_text(budget.total),
       total_source(budget));
}

}  // namespace ponder
