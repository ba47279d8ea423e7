#include "base/cpu_budget.hpp"

#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cpu_set.hpp"
#include "base/error.hpp"
#include "fake_system.hpp"

namespace ponder {
namespace {

using test::FakeSystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(CpuBudget, Complaint50_QuotaOfTwoOnManyCores) {
  FakeSystem system;
  system.cpus(64).v2("/app").write("/sys/fs/cgroup/app/cpu.max", "200000 100000\n");
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 2);
  EXPECT_EQ(budget.allowed_cpus, 64);
  EXPECT_EQ(budget.physical_cores, 64);
  EXPECT_EQ(budget.quota, 2.0);
  EXPECT_EQ(budget.quota_source, "/sys/fs/cgroup/app");
}

TEST(CpuBudget, Complaint50_CpusetOfTwo) {
  FakeSystem system;
  system.cpus(16).v2("/").affinity({5, 11});
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 2);
  EXPECT_EQ(budget.allowed_cpus, 2);
  EXPECT_FALSE(budget.quota.has_value());
}

TEST(CpuBudget, Complaint50_VersionOneQuota) {
  FakeSystem system;
  system.cpus(32).v1("/docker/abc");
  system.write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us", "300000\n");
  system.write("/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us", "100000\n");
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 3);
  EXPECT_EQ(budget.quota_source, "/sys/fs/cgroup/cpu,cpuacct/docker/abc");
}

TEST(CpuBudget, Complaint50_VersionOneLimitOnAParent) {
  FakeSystem system;
  system.cpus(32).v1("/kube/pod/box");
  const std::string base = "/sys/fs/cgroup/cpu,cpuacct/kube";
  system.write(base + "/cpu.cfs_quota_us", "50000\n").write(base + "/cpu.cfs_period_us", "10000\n");
  system.write(base + "/pod/cpu.cfs_quota_us", "400000\n").write(base + "/pod/cpu.cfs_period_us", "100000\n");
  system.write(base + "/pod/box/cpu.cfs_quota_us", "-1\n")
      .write(base + "/pod/box/cpu.cfs_period_us", "100000\n");
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 4);  // 4.0 of the pod, not 5.0 above it
  EXPECT_EQ(budget.quota_source, base + "/pod");
}

TEST(CpuBudget, Complaint50_VersionTwoLimitOnAParent) {
  FakeSystem system;
  system.cpus(32).v2("/a/b/c");
  system.write("/sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  system.write("/sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  system.write("/sys/fs/cgroup/a/b/c/cpu.max", "1600000 100000\n");
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 2);
  EXPECT_EQ(budget.quota, 2.5);
  EXPECT_EQ(budget.quota_source, "/sys/fs/cgroup/a");
}

TEST(CpuBudget, Complaint50_LimitAtTheMountItself) {
  // In a namespace of its own the process sees its group as "/" and the limit at the top of the mount.
  FakeSystem system;
  system.cpus(32).v2("/").write("/sys/fs/cgroup/cpu.max", "700000 100000\n");
  EXPECT_EQ(detect_cpu_budget(system.sources()).threads, 7);
}

struct Rounding {
  const char* text;
  int threads;
};
class CpuBudgetRounding : public ::testing::TestWithParam<Rounding> {};

TEST_P(CpuBudgetRounding, Complaint50_QuotasRoundDownToAtLeastOne) {
  FakeSystem system;
  system.cpus(8).v2("/x").write("/sys/fs/cgroup/x/cpu.max", GetParam().text);
  EXPECT_EQ(detect_cpu_budget(system.sources()).threads, GetParam().threads) << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(Quotas, CpuBudgetRounding,
                         ::testing::Values(Rounding{"150000 100000\n", 1}, Rounding{"50000 100000\n", 1},
                                           Rounding{"199999 100000\n", 1}, Rounding{"200000 100000\n", 2},
                                           Rounding{"1000 1000000\n", 1}, Rounding{"299999 100000", 2},
                                           Rounding{"30000 10000\n", 3}, Rounding{"max 100000\n", 8},
                                           Rounding{"6400000 100000\n", 8},
                                           Rounding{"18446744073709551615 1\n", 8}));

TEST(CpuBudget, Complaint50_HybridTakesTheTighterOfBothVersions) {
  FakeSystem system;
  system.cpus(16);
  system.own_groups("4:cpu:/one\n1:name=systemd:/one\n0::/two\n");
  system.mounts(
      "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
      "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  system.write("/sys/fs/cgroup/cpu/one/cpu.cfs_quota_us", "600000\n");
  system.write("/sys/fs/cgroup/cpu/one/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(detect_cpu_budget(system.sources()).threads, 6);
  system.write("/sys/fs/cgroup/unified/two/cpu.max", "400000 100000\n");
  EXPECT_EQ(detect_cpu_budget(system.sources()).threads, 4);
}

TEST(CpuBudget, ThreadsOfOneCoreCountOnce) {
  FakeSystem system;
  system.cpus(8, 2).v2("/");
  EXPECT_EQ(detect_cpu_budget(system.sources()).threads, 4);
  system.affinity({0, 1, 2, 5});  // both of core 0, one each of cores 1 and 2
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 3);
  EXPECT_EQ(budget.allowed_cpus, 4);
  EXPECT_EQ(budget.physical_cores, 3);
}

TEST(CpuBudget, CoresAreToldApartByNumberWhereSiblingsAreNotListed) {
  FakeSystem system;
  // Two packages whose cores have the same numbers, two threads a core: CPUs n and n + 4.
  for (int cpu = 0; cpu < 8; ++cpu) {
    const std::string topology = fmt::format("/sys/devices/system/cpu/cpu{}/topology/", cpu);
    system.write(topology + "physical_package_id", fmt::format("{}\n", cpu % 4 / 2));
    system.write(topology + "core_id", fmt::format("{}\n", cpu % 2));
  }
  system.affinity({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(detect_cpu_budget(system.sources()).threads, 4);
}

TEST(CpuBudget, WithoutTopologyEveryCpuIsACore) {
  FakeSystem system;
  system.affinity({0, 2, 4, 2});
  EXPECT_EQ(detect_cpu_budget(system.sources()).threads, 3);
}

TEST(CpuBudget, MoreThanAThousandCpus) {
  FakeSystem system;
  std::vector<int> cpus(4000);
  std::iota(cpus.begin(), cpus.end(), 0);
  system.affinity(cpus);
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.allowed_cpus, 4000);
  EXPECT_EQ(budget.threads, kMostThreads);
}

TEST(CpuBudget, Complaint54_OneMemoryNodeByDefault) {
  FakeSystem system;
  system.cpus(16, 2).v2("/");
  system.write("/sys/devices/system/node/online", "0-1\n");
  system.write("/sys/devices/system/node/node0/cpulist", "0-7\n");
  system.write("/sys/devices/system/node/node1/cpulist", "8-15\n");
  const CpuBudget both = detect_cpu_budget(system.sources());
  EXPECT_EQ(both.threads, 4);
  EXPECT_EQ(both.numa_nodes, 2);
  EXPECT_EQ(both.numa_node, 0);
  EXPECT_THAT(both.cpus, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(pool_options(both).cpus, both.cpus);
  EXPECT_THAT(both.reason, HasSubstr("8 cores with 16 CPUs allowed by affinity, 4 of them on node 0 of 2"));

  system.affinity({6, 7, 10, 12, 14});  // one core of node 0, three of node 1
  const CpuBudget second = detect_cpu_budget(system.sources());
  EXPECT_EQ(second.threads, 3);
  EXPECT_EQ(second.numa_node, 1);
  EXPECT_THAT(second.cpus, ElementsAre(10, 12, 14));

  system.affinity({8, 10});  // all on one node: nothing to choose, nobody to confine
  const CpuBudget inside = detect_cpu_budget(system.sources());
  EXPECT_EQ(inside.threads, 2);
  EXPECT_EQ(inside.numa_nodes, 1);
  EXPECT_TRUE(inside.cpus.empty());

  // Asked for more than a node has, the threads may go anywhere.
  system.cpus(16, 2);
  EXPECT_TRUE(cpu_budget(12, system.sources()).cpus.empty());
}

TEST(CpuBudget, Complaint53_OneLineSaysHowManyAndWhy) {
  FakeSystem system;
  system.cpus(2).v2("/x").write("/sys/fs/cgroup/x/cpu.max", "250000 100000\n");
  EXPECT_EQ(detect_cpu_budget(system.sources()).reason,
            "2 threads (2 cores allowed by affinity, cgroup quota 2.50 from /sys/fs/cgroup/x)");
  system.cpus(2, 2).write("/sys/fs/cgroup/x/cpu.max", "max 100000\n");
  EXPECT_EQ(detect_cpu_budget(system.sources()).reason,
            "1 thread (1 core with 2 CPUs allowed by affinity, no cgroup quota)");
}

TEST(CpuBudget, Complaint53_TheGroupsNameCannotBreakTheLine) {
  FakeSystem system;
  system.cpus(2);
  system.own_groups("0::/\n");
  system.mounts("30 24 0:26 / /sys/fs/c\\012group rw - cgroup2 cgroup2 rw\n");
  system.write("/sys/fs/c\ngroup/cpu.max", "100000 100000\n");
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 1);
  EXPECT_THAT(budget.reason, AllOf(HasSubstr("c\\x0agroup"), Not(HasSubstr("\n"))));
}

class CpuBudgetMalformed : public ::testing::TestWithParam<const char*> {};

TEST_P(CpuBudgetMalformed, IgnoredAndNamed) {
  FakeSystem system;
  system.cpus(4).v2("/a/b").write("/sys/fs/cgroup/a/b/cpu.max", GetParam());
  system.write("/sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 3);  // the sound file still counts
  EXPECT_THAT(budget.reason,
              AllOf(HasSubstr("; ignored: /sys/fs/cgroup/a/b/cpu.max holds \""), Not(HasSubstr("\n"))));
}

INSTANTIATE_TEST_SUITE_P(Texts, CpuBudgetMalformed,
                         ::testing::Values("", "\n", "abc", "-1 100000", "100000 0", "100000", "1e5 100000",
                                           "100000 max", "99999999999999999999999 100000", "200000\n100000\n",
                                           "1 2 3", "Max 1", "\x01\xff\n9"));

TEST(CpuBudget, MalformedVersionOneFilesAreIgnoredAndNamed) {
  FakeSystem system;
  system.cpus(4).v1("/g");
  const std::string base = "/sys/fs/cgroup/cpu,cpuacct/g";
  system.write(base + "/cpu.cfs_quota_us", "100000\n");  // no period at all
  CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 4);
  EXPECT_THAT(budget.reason, HasSubstr("cpu.cfs_period_us"));
  system.write(base + "/cpu.cfs_quota_us", "-2\n").write(base + "/cpu.cfs_period_us", "100000\n");
  budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 4);
  EXPECT_THAT(budget.reason, HasSubstr("cpu.cfs_quota_us holds \"-2\""));
}

TEST(CpuBudget, ATopologyThatMakesNoSenseCountsCpus) {
  FakeSystem system;
  system.cpus(4);
  system.write("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "0-99999999999\n");
  system.write("/sys/devices/system/cpu/cpu2/topology/thread_siblings_list", "7-3\n");
  system.write("/sys/devices/system/cpu/cpu3/topology/thread_siblings_list", "0\n");  // not even itself
  system.write("/sys/devices/system/node/online", "x\n");
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 4);
  EXPECT_THAT(budget.reason, HasSubstr(" and 1 more"));
}

TEST(CpuBudget, NothingReadableIsNoLimit) {
  FakeSystem system;
  system.affinity({0, 1, 2});
  const CpuBudget budget = detect_cpu_budget(system.sources());
  EXPECT_EQ(budget.threads, 3);
  EXPECT_EQ(budget.reason, "3 threads (3 cores allowed by affinity, no cgroup quota)");
  system.affinity({});
  EXPECT_GE(detect_cpu_budget(system.sources()).threads, 1);
}

TEST(CpuBudget, Complaint50_ARequestWinsAndIsSaid) {
  FakeSystem system;
  system.cpus(4).v2("/x").write("/sys/fs/cgroup/x/cpu.max", "200000 100000\n");
  const CpuBudget budget = cpu_budget(3, system.sources());
  EXPECT_EQ(budget.threads, 3);
  EXPECT_EQ(budget.reason,
            "3 threads (--threads; the default is 2: 4 cores allowed by affinity, cgroup quota 2.00 from "
            "/sys/fs/cgroup/x)");
  EXPECT_EQ(cpu_budget(1, system.sources()).threads, 1);
  EXPECT_EQ(cpu_budget(1024, system.sources()).threads, 1024);
}

TEST(CpuBudget, RequestsOutsideTheRangeAreRefused) {
  FakeSystem system;
  for (const std::int64_t wrong :
       {std::int64_t{0}, std::int64_t{-1}, std::int64_t{1025}, INT64_MIN, INT64_MAX}) {
    try {
      cpu_budget(wrong, system.sources());
      ADD_FAILURE() << wrong << " was accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      EXPECT_EQ(std::string(error.what()), fmt::format("--threads {}: expected 1 to 1024", wrong));
    }
  }
}

TEST(CpuBudget, Complaint50_NoSpinningBeyondTheCpusAllowed) {
  FakeSystem system;
  system.cpus(4).v2("/x");
  EXPECT_GT(pool_options(cpu_budget(4, system.sources())).spin.count(), 0);
  EXPECT_EQ(pool_options(cpu_budget(5, system.sources())).spin.count(), 0);
  system.write("/sys/fs/cgroup/x/cpu.max", "150000 100000\n");
  EXPECT_EQ(pool_options(cpu_budget(2, system.sources())).spin.count(), 0);
  EXPECT_GT(pool_options(cpu_budget(std::nullopt, system.sources())).spin.count(), 0);
}

TEST(CpuBudget, Complaint50_TheRealMaskIsHonoured) {
  // In a child, because a narrowed mask cannot always be widened again.
  const std::vector<int> before = allowed_cpus();
  ASSERT_FALSE(before.empty());
  const pid_t child = fork();
  ASSERT_NE(child, -1);
  if (child == 0) {
    const int one = before.back();
    const bool narrowed = restrict_thread(pthread_self(), std::vector<int>{one});
    const CpuBudget budget = detect_cpu_budget();
    _exit(narrowed && allowed_cpus() == std::vector<int>{one} && budget.threads == 1 &&
                  budget.allowed_cpus == 1
              ? 0
              : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(CpuBudget, TheMachineItselfCanBeAsked) {
  const CpuBudget budget = detect_cpu_budget();
  EXPECT_GE(budget.threads, 1);
  EXPECT_LE(budget.threads, budget.allowed_cpus);
  EXPECT_EQ(budget.allowed_cpus, static_cast<int>(allowed_cpus().size()));
  EXPECT_THAT(budget.reason, StartsWith(fmt::format("{} thread", budget.threads)));
}

TEST(CpuSet, ImpossibleSetsAreRefused) {
  EXPECT_FALSE(restrict_thread(pthread_self(), std::vector<int>{}));
  EXPECT_FALSE(restrict_thread(pthread_self(), std::vector<int>{-1}));
  EXPECT_FALSE(restrict_thread(pthread_self(), std::vector<int>{1 << 30}));
  EXPECT_FALSE(restrict_thread(pthread_self(), std::vector<int>{100000}));
}

}  // namespace
}  // namespace ponder
