// A made-up /proc and /sys in a directory of its own, for what the budgets read.
#pragma once

#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <stdlib.h>

#include "base/system_files.hpp"

namespace ponder::test {

class FakeSystem {
 public:
  FakeSystem() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ponder-fake-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary directory");
    sources_.root = pattern;
    sources_.affinity = std::vector<int>{0};
  }
  ~FakeSystem() {
    std::error_code ignored;
    std::filesystem::remove_all(sources_.root, ignored);
  }
  FakeSystem(const FakeSystem&) = delete;
  FakeSystem& operator=(const FakeSystem&) = delete;

  const SystemSources& sources() const { return sources_; }

  FakeSystem& write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = sources_.root + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << text;
    return *this;
  }

  FakeSystem& affinity(std::vector<int> cpus) {
    sources_.affinity = std::move(cpus);
    return *this;
  }

  // CPUs 0 .. count-1, all allowed; each a core of its own, or `threads_per_core` neighbours sharing one.
  FakeSystem& cpus(int count, int threads_per_core = 1) {
    std::vector<int> all;
    for (int cpu = 0; cpu < count; ++cpu) {
      const int first = cpu / threads_per_core * threads_per_core;
      const int last = first + threads_per_core - 1;
      write(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu),
            first == last ? fmt::format("{}\n", first) : fmt::format("{}-{}\n", first, last));
      all.push_back(cpu);
    }
    return affinity(std::move(all));
  }

  FakeSystem& own_groups(const std::string& text) { return write("/proc/self/cgroup", text); }
  FakeSystem& mounts(const std::string& text) { return write("/proc/self/mountinfo", kOtherMounts + text); }

  // The usual machine with version 2 only, this process being in `group`.
  FakeSystem& v2(const std::string& group) {
    own_groups("0::" + group + "\n");
    return mounts("30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  }

  // The usual machine with version 1, this process being in `group` of every hierarchy.
  FakeSystem& v1(const std::string& group) {
    own_groups("12:memory:" + group + "\n4:cpu,cpuacct:" + group + "\n1:name=systemd:" + group + "\n");
    return mounts(
        "31 25 0:27 / /sys/fs/cgroup ro - tmpfs tmpfs ro,mode=755\n"
        "33 31 0:30 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
        "34 31 0:31 / /sys/fs/cgroup/cpuset rw shared:10 - cgroup cgroup rw,cpuset\n"
        "35 31 0:32 / /sys/fs/cgroup/memory rw shared:11 master:3 - cgroup cgroup rw,memory\n");
  }

 private:
  static constexpr const char* kOtherMounts =
      "24 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
      "25 24 0:22 / /proc rw - proc proc rw\n"
      "not a mount line\n";
  SystemSources sources_;
};

}  // namespace ponder::test
