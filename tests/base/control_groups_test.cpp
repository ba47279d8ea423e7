#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/system_files.hpp"
#include "fake_system.hpp"

namespace ponder {
namespace {

using test::FakeSystem;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::string> directories(const FakeSystem& system, const std::string& controller = "cpu") {
  std::vector<std::string> found;
  for (const ControlGroup& group : control_groups(system.sources(), controller)) {
    found.push_back(fmt::format("v{} {}", group.version, group.directory));
  }
  return found;
}

TEST(ControlGroups, OwnGroupThenEveryParent) {
  FakeSystem system;
  system.v2("/user.slice/session 1.scope");
  EXPECT_THAT(directories(system), ElementsAre("v2 /sys/fs/cgroup/user.slice/session 1.scope",
                                               "v2 /sys/fs/cgroup/user.slice", "v2 /sys/fs/cgroup"));
}

TEST(ControlGroups, VersionOneHasAHierarchyForEachController) {
  FakeSystem system;
  system.v1("/docker/abc");
  EXPECT_THAT(directories(system),
              ElementsAre("v1 /sys/fs/cgroup/cpu,cpuacct/docker/abc", "v1 /sys/fs/cgroup/cpu,cpuacct/docker",
                          "v1 /sys/fs/cgroup/cpu,cpuacct"));
  EXPECT_THAT(directories(system, "memory"),
              ElementsAre("v1 /sys/fs/cgroup/memory/docker/abc", "v1 /sys/fs/cgroup/memory/docker",
                          "v1 /sys/fs/cgroup/memory"));
  EXPECT_THAT(directories(system, "pids"), IsEmpty());
}

// What mountinfo shows as mounted, what /proc/self/cgroup says, and which directories follow.
struct View {
  const char* root;
  const char* group;
  std::vector<std::string> expected;  // below /m
};

TEST(ControlGroups, NamespacesAndPartialMounts) {
  const std::vector<View> views = {
      {"/", "/", {""}},
      {"/docker/abc", "/docker/abc", {""}},              // a container without a namespace of its own
      {"/docker/abc", "/docker/abc/sub", {"/sub", ""}},  // and a group made inside it
      {"/docker/ab", "/docker/abc", {""}},  // names are compared whole: not below, the top stands in
      {"/docker/abc", "/other", {""}},      // not below the mount
      {"/", "/../x", {""}},                 // moved out of the namespace
      {"/..", "/../x", {"/x", ""}},         // the mount reaches as far out
      {"/../x", "/../x/y", {"/y", ""}},
      {"/../..", "/", {""}},  // ancestors whose names are not told
      {"/../..", "/../x", {""}},
      {"/", "/a//b/./c", {"/a/b/c", "/a/b", "/a", ""}},
      {"/", "/with:colon", {"/with:colon", ""}},
  };
  for (const View& view : views) {
    FakeSystem system;
    system.own_groups(fmt::format("0::{}\n", view.group));
    system.mounts(fmt::format("30 24 0:26 {} /m rw - cgroup2 cgroup2 rw\n", view.root));
    std::vector<std::string> expected;
    for (const std::string& below : view.expected) expected.push_back("v2 /m" + below);
    EXPECT_EQ(directories(system), expected) << "mounted " << view.root << ", own " << view.group;
  }
}

TEST(ControlGroups, AMountThatHoldsTheGroupIsPreferredToOneThatDoesNot) {
  FakeSystem system;
  system.own_groups("0::/b/c\n");
  system.mounts(
      "30 24 0:26 /a /elsewhere rw - cgroup2 cgroup2 rw\n"
      "31 24 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_THAT(directories(system),
              ElementsAre("v2 /sys/fs/cgroup/b/c", "v2 /sys/fs/cgroup/b", "v2 /sys/fs/cgroup"));
}

TEST(ControlGroups, MountPointsAreUnescaped) {
  FakeSystem system;
  system.own_groups("0::/g\n");
  system.mounts("30 24 0:26 / /my\\040cg\\134roups/ rw shared:1 master:2 - cgroup2 cgroup2 rw\n");
  EXPECT_THAT(directories(system), ElementsAre("v2 /my cg\\roups/g", "v2 /my cg\\roups"));
}

TEST(ControlGroups, LinesThatMakeNoSenseAreSkipped) {
  FakeSystem system;
  system.own_groups("\n:\n::\n0::\n0::relative\n7:cpu\nx:y:/z\n0::" + std::string(100000, '/') +
                    "a\n0::/ok\n");
  system.mounts(
      "- \n - cgroup2\n30 - cgroup2 cgroup2 rw\n30 24 0:26 rel /m rw - cgroup2 c rw\n"
      "30 24 0:26 / /m rw - cgroup2 cgroup2 rw");
  EXPECT_THAT(directories(system), ElementsAre("v2 /m/ok", "v2 /m"));
}

TEST(ControlGroups, NoneWithoutTheFiles) {
  FakeSystem system;
  EXPECT_THAT(directories(system), IsEmpty());
  system.own_groups("0::/a\n");
  EXPECT_THAT(directories(system), IsEmpty());
  system.mounts("");
  EXPECT_THAT(directories(system), IsEmpty());
}

TEST(SystemFiles, CpuLists) {
  EXPECT_THAT(parse_cpu_list("0-3,8,10-11\n").value(), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_cpu_list("5").value(), ElementsAre(5));
  EXPECT_THAT(parse_cpu_list("3,1-2,2").value(), ElementsAre(1, 2, 3));
  EXPECT_THAT(parse_cpu_list("\n").value(), IsEmpty());
  for (const char* const wrong : {"a", "1-", "-1", "3-1", "1,,2", "0-1048576", "99999999999999999999", "1 2",
                                  "0x1", "0-1048575,0-1048575", ","}) {
    EXPECT_FALSE(parse_cpu_list(wrong).has_value()) << wrong;
  }
}

TEST(SystemFiles, Decimals) {
  EXPECT_EQ(parse_decimal("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_decimal("0"), 0u);
  for (const char* const wrong : {"", "18446744073709551616", "-1", "+1", " 1", "1 ", "1.0", "ten"}) {
    EXPECT_FALSE(parse_decimal(wrong).has_value()) << wrong;
  }
}

TEST(SystemFiles, AFileTooLargeOrADirectoryIsNotRead) {
  FakeSystem system;
  system.write("/proc/big", std::string((std::size_t{16} << 20) + 1, 'x')).write("/proc/dir/file", "x");
  EXPECT_FALSE(read_system_file(system.sources(), "/proc/big").has_value());
  EXPECT_FALSE(read_system_file(system.sources(), "/proc/dir").has_value());
  EXPECT_FALSE(read_system_file(system.sources(), "/proc/missing").has_value());
  EXPECT_EQ(read_system_file(system.sources(), "/proc/dir/file"), "x");
}

}  // namespace
}  // namespace ponder
