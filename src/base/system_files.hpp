// What the kernel says about the machine in /proc and /sys, readable from a made-up tree in tests.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ponder {

// Where the facts come from. The default is the machine itself.
struct SystemSources {
  std::string root;                          // put before every /proc and /sys path
  std::optional<std::vector<int>> affinity;  // the allowed CPUs; unset: ask the kernel
};

using CpuBudgetSources = SystemSources;
using MemoryBudgetSources = SystemSources;

// The whole text of a file such as "/proc/self/cgroup"; nothing when it cannot be read or is absurdly large.
std::optional<std::string> read_system_file(const SystemSources& sources, std::string_view path);

// `text` without surrounding blanks and line ends.
std::string_view trimmed(std::string_view text);
// The text up to the next `separator`, which goes with it; `rest` keeps what follows.
std::string_view next_field(std::string_view& rest, char separator);

// Decimal digits only, the whole text; nothing on overflow.
std::optional<std::uint64_t> parse_decimal(std::string_view text);
// "0-3,8,10-11" as single numbers, ascending and without repeats; nothing when malformed or beyond a million.
std::optional<std::vector<int>> parse_cpu_list(std::string_view text);

// The files that were ignored because they make no sense, for the one line a budget explains itself with.
class SystemNotes {
 public:
  void malformed(std::string_view path, std::string_view text);
  // `; ignored: /sys/x holds "abc", ...`, or nothing; three at most, then a count.
  std::string text() const;

 private:
  std::vector<std::string> notes_;
};

// A group whose limits bind this process.
struct ControlGroup {
  int version = 2;        // 1 or 2: the file names differ
  std::string directory;  // as this process sees it, "/sys/fs/cgroup/..."; without `sources.root`
};

// The control groups that `controller` ("cpu", "memory") may limit this process by: its own, then each parent
// up to where the hierarchy is mounted, for version 2 and for version 1 where both are in use. When the mount
// shows only a part of the hierarchy that does not hold our group (a namespace entered from outside), its top
// group stands in: that is the limit the surroundings were given.
std::vector<ControlGroup> control_groups(const SystemSources& sources, std::string_view controller);

}  // namespace ponder
