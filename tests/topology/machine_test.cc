#include "src/topology/machine.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

namespace catenary {
namespace {

// A control group tree made of plain files.
class CgroupQuota : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ + path).substr(0, (root_ + path).find_last_of('/')));
    std::ofstream(root_ + path) << text << "\n";
  }
  const std::string root_ =
      (std::filesystem::temp_directory_path() / ("catenary_cgroup_" + std::to_string(::getpid())))
          .string();
};

TEST_F(CgroupQuota, is_infinite_where_nothing_limits) {
  EXPECT_TRUE(std::isinf(cgroup_quota("", root_)));
  EXPECT_TRUE(std::isinf(cgroup_quota("0::/\n", root_)));
  write("/a/cpu.max", "max 100000");
  EXPECT_TRUE(std::isinf(cgroup_quota("0::/a\n", root_)));
  EXPECT_TRUE(std::isinf(cgroup_quota("nonsense\n", root_)));
}

TEST_F(CgroupQuota, is_the_tightest_of_all_ancestors) {
  write("/a/cpu.max", "150000 100000");
  write("/a/b/cpu.max", "400000 100000");
  EXPECT_DOUBLE_EQ(cgroup_quota("0::/a/b\n", root_), 1.5);
  EXPECT_DOUBLE_EQ(cgroup_quota("0::/a\n", root_), 1.5);
}

TEST_F(CgroupQuota, of_a_container_is_at_the_root_of_its_mount) {
  write("/cpu.max", "50000 100000");
  EXPECT_DOUBLE_EQ(cgroup_quota("0::/not/mounted/here\n", root_), 0.5);
}

TEST_F(CgroupQuota, reads_version_1) {
  write("/cpu,cpuacct/job/cpu.cfs_quota_us", "300000");
  write("/cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  EXPECT_DOUBLE_EQ(cgroup_quota("4:memory:/job\n3:cpu,cpuacct:/job\n", root_), 3);
  write("/cpu,cpuacct/job/cpu.cfs_quota_us", "-1");
  EXPECT_TRUE(std::isinf(cgroup_quota("3:cpu,cpuacct:/job\n", root_)));
}

TEST_F(CgroupQuota, of_memory_is_what_is_left_in_the_tightest_group) {
  EXPECT_TRUE(std::isinf(cgroup_memory_left("0::/a/b\n", root_)));
  write("/a/memory.max", "3000");
  write("/a/memory.current", "1000");
  write("/a/b/memory.max", "max");
  write("/a/b/memory.current", "1000");
  EXPECT_DOUBLE_EQ(cgroup_memory_left("0::/a/b\n", root_), 2000);
  write("/a/b/memory.max", "800");
  EXPECT_DOUBLE_EQ(cgroup_memory_left("0::/a/b\n", root_), 0);
  write("/memory/job/memory.limit_in_bytes", "5000");
  write("/memory/job/memory.usage_in_bytes", "1");
  EXPECT_DOUBLE_EQ(cgroup_memory_left("4:memory:/job\n3:cpu,cpuacct:/job\n", root_), 4999);
}

TEST(UsableCores, follow_the_affinity_mask) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_GE(usable_cores(), 1);
  EXPECT_LE(usable_cores(), CPU_COUNT(&before));
  int first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(usable_cores(), 1);
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
}

TEST(CacheBytes, are_parsed_as_the_system_writes_them) {
  EXPECT_EQ(parse_cache_bytes("48K"), 48u << 10);
  EXPECT_EQ(parse_cache_bytes("32768K\n"), 32u << 20);
  EXPECT_EQ(parse_cache_bytes("2M"), 2u << 20);
  EXPECT_EQ(parse_cache_bytes("512"), 512u);
  EXPECT_EQ(parse_cache_bytes(""), 0u);
  EXPECT_EQ(parse_cache_bytes("12X"), 0u);
  EXPECT_GE(last_level_cache_bytes(), 1u << 16);
  EXPECT_GE(second_level_cache_bytes(), 1u << 16);
  EXPECT_LE(second_level_cache_bytes(), last_level_cache_bytes());
}

TEST(CoreTime, is_that_of_the_cores_asked_for) {
  const std::string stat =
      "cpu  1 1 1 1 1 1 1 1 1 1\n"
      "cpu0 100 10 20 500 30 1 2 3 40 0\n"
      "cpu1 7 7 7 7 7 7 7 7 7 7\n"
      "cpu10 50 0 0 50 0 0 0 0 0 0\n"
      "intr 12345 0 0\n";
  const int cores[] = {0, 10};
  const CoreTime time = core_time(stat, cores, 10);
  EXPECT_DOUBLE_EQ(time.busy_s, 13.6 + 5);
  EXPECT_DOUBLE_EQ(time.all_s, 66.6 + 10);
  EXPECT_EQ(core_time("", cores, 10).all_s, 0);
  const CoreTime now = core_time();
  EXPECT_GT(now.busy_s, 0);
  EXPECT_LE(now.busy_s, now.all_s);
}

TEST(MachineMemory, has_no_more_available_than_in_all) {
  const MachineMemory memory = machine_memory();
  EXPECT_GT(memory.total_bytes, 0u);
  EXPECT_LE(memory.available_bytes, memory.total_bytes);
}

CoreGrant grant_of(std::initializer_list<int> cores, int usable) {
  CoreGrant grant;
  for (const int core : cores)
    grant.allowed[static_cast<std::size_t>(core) / 64] |= 1ull << (core % 64);
  grant.usable = usable;
  return grant;
}

TEST(SharedCores, are_those_of_all_processes_together) {
  const CoreGrant first = grant_of({0}, 1);
  const CoreGrant second = grant_of({1}, 1);
  const CoreGrant both = grant_of({0, 1}, 2);
  EXPECT_EQ(shared_cores(std::vector{first, second}), 2);  // each bound to one of its own
  EXPECT_EQ(shared_cores(std::vector{first, first}), 1);
  EXPECT_EQ(shared_cores(std::vector{both, both, both}), 2);
  EXPECT_EQ(shared_cores(std::vector{grant_of({0, 1, 70}, 3), second}), 3);
}

TEST(SharedCores, are_no_more_than_a_quota_grants) {
  const CoreGrant cut = grant_of({0, 1, 2, 3}, 2);
  EXPECT_EQ(shared_cores(std::vector{cut, cut}), 2);
  EXPECT_EQ(shared_cores(std::vector{core_grant()}), usable_cores());
}

// As ranks and cores.
std::pair<int, int> crowd(const std::vector<CoreGrant>& sharing,
                          const std::vector<CoreGrant>& on_kernel) {
  const Crowd found = crowd_of(sharing, on_kernel);
  return {found.ranks, found.cores};
}

TEST(Machine, is_as_crowded_as_those_that_share_memory_or_all_on_its_kernel) {
  const CoreGrant both = grant_of({0, 1}, 2);
  const CoreGrant first = grant_of({0}, 1);
  const CoreGrant second = grant_of({1}, 1);
  const std::vector two{both, both};
  EXPECT_EQ(crowd(two, two), std::pair(2, 2));
  EXPECT_EQ(crowd(two, {both, both, both, both}), std::pair(4, 2));  // two containers
  EXPECT_EQ(crowd({both}, {both, both}), std::pair(2, 2));           // no less room, but more ranks
  // Others have their own cores, or the kernel does not tell what it is called.
  EXPECT_EQ(crowd({first, first}, {first, first, second, second}), std::pair(4, 2));
  EXPECT_EQ(crowd({first, first}, {first, first, second}), std::pair(2, 1));
  EXPECT_EQ(crowd(two, {}), std::pair(2, 2));
  // A quota of each container's own is none of all.
  const CoreGrant cut = grant_of({0, 1, 2, 3}, 1);
  EXPECT_EQ(crowd({cut}, {cut, cut, cut}), std::pair(1, 1));
  EXPECT_EQ(crowd({cut, cut}, {cut, cut, cut}), std::pair(2, 1));
}

}  // namespace
}  // namespace catenary
