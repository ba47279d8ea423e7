#include "base/memory_budget.hpp"

#include <cstdint>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "fake_system.hpp"

namespace ponder {
namespace {

using test::FakeSystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// 16 GiB of memory, 12 GiB of it available.
void add_meminfo(FakeSystem& system) {
  system.write("/proc/meminfo",
               "MemTotal:       16777216 kB\nMemFree:         1048576 kB\nMemAvailable:   12582912 kB\n"
               "Buffers:          100000 kB\n");
}

TEST(MemoryBudget, TheMachineWithoutLimits) {
  FakeSystem system;
  add_meminfo(system);
  const MemoryBudget budget = detect_memory_budget(system.sources());
  EXPECT_EQ(budget.total, 16 * kGiB);
  EXPECT_EQ(budget.available, 12 * kGiB);
  EXPECT_EQ(budget.reason, "12.0 GiB of memory available of 16.0 GiB (the machine's memory)");
}

TEST(MemoryBudget, Complaint50_VersionTwoLimit) {
  FakeSystem system;
  add_meminfo(system);
  system.v2("/box").write("/sys/fs/cgroup/box/memory.max", "4294967296\n");
  system.write("/sys/fs/cgroup/box/memory.current", "3221225472\n");
  system.write("/sys/fs/cgroup/box/memory.stat", "anon 1\nfile 9\nactive_file 5\ninactive_file 1073741824\n");
  const MemoryBudget budget = detect_memory_budget(system.sources());
  EXPECT_EQ(budget.total, 4 * kGiB);
  EXPECT_EQ(budget.available, 2 * kGiB);  // 4 - (3 - 1)
  EXPECT_EQ(budget.limit_source, "/sys/fs/cgroup/box");
  EXPECT_EQ(budget.reason, "2.00 GiB of memory available of 4.00 GiB (cgroup limit of /sys/fs/cgroup/box)");
}

TEST(MemoryBudget, Complaint50_TheParentsCountEachInItsOwnRight) {
  FakeSystem system;
  add_meminfo(system);
  system.v2("/a/b");
  // The own group has the lower limit, the parent has less left.
  system.write("/sys/fs/cgroup/a/b/memory.max", "2147483648\n")
      .write("/sys/fs/cgroup/a/b/memory.current", "0\n");
  system.write("/sys/fs/cgroup/a/memory.max", "8589934592\n")
      .write("/sys/fs/cgroup/a/memory.current", "8053063680\n");
  MemoryBudget budget = detect_memory_budget(system.sources());
  EXPECT_EQ(budget.total, 2 * kGiB);
  EXPECT_EQ(budget.available, kGiB / 2);
  // A limit on the parent alone.
  system.write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  budget = detect_memory_budget(system.sources());
  EXPECT_EQ(budget.total, 8 * kGiB);
  EXPECT_EQ(budget.limit_source, "/sys/fs/cgroup/a");
}

TEST(MemoryBudget, Complaint50_VersionOneLimit) {
  FakeSystem system;
  add_meminfo(system);
  system.v1("/docker/abc");
  const std::string base = "/sys/fs/cgroup/memory";
  system.write(base + "/memory.limit_in_bytes", "9223372036854771712\n");  // no limit
  system.write(base + "/docker/memory.limit_in_bytes", "6442450944\n");
  system.write(base + "/docker/memory.usage_in_bytes", "2147483648\n");
  system.write(base + "/docker/memory.stat", "inactive_file 7\ntotal_inactive_file 1073741824\n");
  system.write(base + "/docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  const MemoryBudget budget = detect_memory_budget(system.sources());
  EXPECT_EQ(budget.total, 6 * kGiB);
  EXPECT_EQ(budget.available, 5 * kGiB);
  EXPECT_EQ(budget.limit_source, base + "/docker");
}

TEST(MemoryBudget, TheMachinesAvailableMemoryStillBinds) {
  FakeSystem system;
  system.write("/proc/meminfo", "MemTotal: 16777216 kB\nMemAvailable: 1048576 kB\n");
  system.v2("/box").write("/sys/fs/cgroup/box/memory.max", "4294967296\n");
  const MemoryBudget budget = detect_memory_budget(system.sources());
  EXPECT_EQ(budget.total, 4 * kGiB);
  EXPECT_EQ(budget.available, kGiB);
}

TEST(MemoryBudget, MoreUsedThanAllowedLeavesNothing) {
  FakeSystem system;
  add_meminfo(system);
  system.v2("/")
      .write("/sys/fs/cgroup/memory.max", "1073741824\n")
      .write("/sys/fs/cgroup/memory.current", "2147483648\n");
  EXPECT_EQ(detect_memory_budget(system.sources()).available, 0u);
  // More inactive pages than use, as happens while the two files are read: all is free, no more than that.
  system.write("/sys/fs/cgroup/memory.stat", "inactive_file 99999999999\n");
  EXPECT_EQ(detect_memory_budget(system.sources()).available, kGiB);
}

TEST(MemoryBudget, OldKernelsWithoutAnAvailableFigure) {
  FakeSystem system;
  system.write("/proc/meminfo", "MemTotal: 1048576 kB\nMemFree: 1 kB\n");
  EXPECT_EQ(detect_memory_budget(system.sources()).available, kGiB);
}

TEST(MemoryBudget, FilesThatMakeNoSenseAreIgnoredAndNamed) {
  for (const char* const text : {"", "lots\n", "1.5\n", "-7\n", "99999999999999999999999\n"}) {
    FakeSystem system;
    add_meminfo(system);
    system.v2("/box").write("/sys/fs/cgroup/box/memory.max", text);
    const MemoryBudget budget = detect_memory_budget(system.sources());
    EXPECT_EQ(budget.total, 16 * kGiB) << text;
    EXPECT_THAT(budget.reason,
                AllOf(HasSubstr("; ignored: /sys/fs/cgroup/box/memory.max"), Not(HasSubstr("\n"))));
  }
  for (const char* const text : {"", "MemTotal: many kB\n", "MemTotal: 99999999999999999999 kB\n",
                                 "MemTotal: 18446744073709551615 kB\n", "MemTotal: 5 MB\n", "MemTotal:"}) {
    FakeSystem system;
    system.write("/proc/meminfo", text);
    const MemoryBudget budget = detect_memory_budget(system.sources());
    EXPECT_EQ(budget.total, UINT64_MAX) << text;
    EXPECT_THAT(budget.reason, HasSubstr("; ignored: /proc/meminfo"));
  }
}

TEST(MemoryBudget, NothingKnownAllowsEverything) {
  FakeSystem system;
  const MemoryBudget budget = detect_memory_budget(system.sources());
  EXPECT_EQ(budget.reason, "unknown of memory available of unknown (no limit known)");
  EXPECT_NO_THROW(require_memory(budget, 5 * kGiB, 1000 * kGiB, "model x"));
}

TEST(MemoryBudget, TheMachineItselfCanBeAsked) {
  const MemoryBudget budget = detect_memory_budget();
  EXPECT_GT(budget.total, 64 * kMiB);
  EXPECT_LT(budget.total, std::uint64_t{1} << 50);
  EXPECT_GT(budget.available, 0u);
  EXPECT_LE(budget.available, budget.total);
}

MemoryBudget eight_of_sixteen() {
  MemoryBudget budget;
  budget.total = 16 * kGiB;
  budget.available = 8 * kGiB;
  return budget;
}

TEST(RequireMemory, EachLimitIsExact) {
  const MemoryBudget budget = eight_of_sixteen();
  EXPECT_NO_THROW(require_memory(budget, 0, 8 * kGiB, "m"));
  EXPECT_THROW(require_memory(budget, 0, 8 * kGiB + 1, "m"), Error);
  EXPECT_NO_THROW(require_memory(budget, 16 * kGiB, 0, "m"));  // mapped pages need not be free
  EXPECT_THROW(require_memory(budget, 16 * kGiB + 1, 0, "m"), Error);
  EXPECT_NO_THROW(require_memory(budget, 12 * kGiB, 4 * kGiB, "m"));
  EXPECT_THROW(require_memory(budget, 12 * kGiB, 4 * kGiB + 1, "m"), Error);
  EXPECT_THROW(require_memory(budget, UINT64_MAX, 2, "m"), Error);  // the sum wraps round to 1
  EXPECT_THROW(require_memory(budget, 2, UINT64_MAX, "m"), Error);
}

TEST(RequireMemory, TheRefusalNamesTheNeedAndTheMachine) {
  MemoryBudget budget = eight_of_sixteen();
  budget.limit_source = "/sys/fs/cgroup/box";
  try {
    require_memory(budget, 14 * kGiB + 512 * kMiB, 2 * kGiB, "model a\nb.cmf");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::no_memory);
    EXPECT_STREQ(
        error.what(),
        "model a\\x0ab.cmf needs 2.00 GiB of memory and 14.5 GiB of mapped files, but this process has "
        "8.00 GiB available of 16.0 GiB (cgroup limit of /sys/fs/cgroup/box)");
  }
  try {
    require_memory(eight_of_sixteen(), 0, 9 * kGiB, "model a");
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "model a needs 9.00 GiB of memory, but this process has 8.00 GiB available of 16.0 GiB (the "
                 "machine's memory)");
  }
}

TEST(FormatBytes, SizesForPeople) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(1536), "1.50 KiB");
  EXPECT_EQ(format_bytes(10239), "10.0 KiB");  // not 10.00: one decimal from ten on
  EXPECT_EQ(format_bytes(10 * kMiB), "10.0 MiB");
  EXPECT_EQ(format_bytes(kMiB - 1), "1.00 MiB");  // never "1024.0 KiB"
  EXPECT_EQ(format_bytes(1023 * kMiB), "1023.0 MiB");
  EXPECT_EQ(format_bytes(25276972236), "23.5 GiB");
  EXPECT_EQ(format_bytes(UINT64_MAX), "16.0 EiB");
}

}  // namespace
}  // namespace ponder
