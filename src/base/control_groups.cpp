// Finding the control groups of this process: /proc/self/cgroup says which, /proc/self/mountinfo says where.
// Formats: proc(5), cgroups(7), cgroup_namespaces(7).
#include <algorithm>
#include <cstddef>

#include "base/system_files.hpp"

namespace ponder {
namespace {

constexpr std::size_t kLongestPath = 4096;  // PATH_MAX

using Components = std::vector<std::string>;

// One hierarchy the process belongs to.
struct Membership {
  int version;
  Components path;  // from the root of the process's namespace; may begin with ".."
};

struct Mount {
  int version;
  Components root;  // which group is mounted, in the same terms as Membership::path
  std::string point;
};

Components split_path(std::string_view path) {
  Components parts;
  while (!path.empty()) {
    const std::string_view part = next_field(path, '/');
    if (!part.empty() && part != ".") parts.emplace_back(part);
  }
  return parts;
}

bool contains_field(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    if (next_field(list, ',') == wanted) return true;
  }
  return false;
}

// Blanks, tabs, line ends and backslashes in mountinfo are written as three octal digits.
std::string unescaped(std::string_view text) {
  const auto octal = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '7'; };
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && octal(i + 1) && octal(i + 2) && octal(i + 3)) {
      out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

// Lines "4:cpu,cpuacct:/path" (version 1) and "0::/path" (version 2). The path may hold colons.
std::vector<Membership> memberships(std::string_view text, std::string_view controller) {
  std::vector<Membership> found;
  while (!text.empty()) {
    std::string_view line = next_field(text, '\n');
    const std::string_view id = next_field(line, ':');
    const std::string_view controllers = next_field(line, ':');
    if (line.empty() || line.front() != '/' || line.size() > kLongestPath) continue;
    if (id == "0" && controllers.empty()) {
      found.push_back({2, split_path(line)});
    } else if (contains_field(controllers, controller)) {
      found.push_back({1, split_path(line)});
    }
  }
  return found;
}

// Lines "36 35 98:0 /root /mount/point options [tags...] - type source superoptions".
std::vector<Mount> mounts(std::string_view text, std::string_view controller) {
  std::vector<Mount> found;
  while (!text.empty()) {
    std::string_view line = next_field(text, '\n');
    const std::size_t dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    std::string_view tail = line.substr(dash + 3);
    const std::string_view type = next_field(tail, ' ');
    next_field(tail, ' ');  // source
    const bool v1 = type == "cgroup" && contains_field(trimmed(tail), controller);
    if (!v1 && type != "cgroup2") continue;
    for (int skipped = 0; skipped < 3; ++skipped) next_field(line, ' ');
    const std::string root = unescaped(next_field(line, ' '));
    std::string point = unescaped(next_field(line, ' '));
    if (root.empty() || root.front() != '/' || point.empty() || point.front() != '/') continue;
    while (point.size() > 1 && point.back() == '/') point.pop_back();
    found.push_back({v1 ? 1 : 2, split_path(root), std::move(point)});
  }
  return found;
}

// The way from the mounted group down to ours; nothing when ours is not below it. A mounted group above our
// namespace's root, "/../..", is an ancestor, but the names in between are not told: the way is then empty,
// which leaves the mounted group itself.
std::optional<Components> way_down(const Components& root, const Components& path) {
  const auto up = [](const std::string& part) { return part == ".."; };
  const auto [root_end, path_at] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (std::all_of(root_end, root.end(), up)) {
    if (root_end != root.end()) return Components{};
    if (path_at == path.end() || !up(*path_at)) return Components(path_at, path.end());
  }
  return std::nullopt;
}

void add_chain(std::vector<ControlGroup>& groups, const Mount& mount, Components way) {
  for (;;) {
    std::string directory = mount.point == "/" ? "" : mount.point;
    for (const std::string& part : way) directory += "/" + part;
    if (directory.empty()) directory = "/";
    const auto same = [&](const ControlGroup& group) { return group.directory == directory; };
    if (std::none_of(groups.begin(), groups.end(), same))
      groups.push_back({mount.version, std::move(directory)});
    if (way.empty()) return;
    way.pop_back();
  }
}

}  // namespace

std::vector<ControlGroup> control_groups(const SystemSources& sources, std::string_view controller) {
  const auto own = read_system_file(sources, "/proc/self/cgroup");
  const auto table = read_system_file(sources, "/proc/self/mountinfo");
  if (!own || !table) return {};
  const std::vector<Mount> all = mounts(*table, controller);
  std::vector<ControlGroup> groups;
  for (const Membership& member : memberships(*own, controller)) {
    const Mount* fallback = nullptr;
    bool found = false;
    for (const Mount& mount : all) {
      if (mount.version != member.version) continue;
      if (fallback == nullptr) fallback = &mount;
      if (auto way = way_down(mount.root, member.path)) {
        add_chain(groups, mount, std::move(*way));
        found = true;
      }
    }
    if (!found && fallback != nullptr) add_chain(groups, *fallback, {});
  }
  return groups;
}

}  // namespace ponder
