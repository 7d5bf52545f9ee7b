// SPDX-License-Identifier: MIT
// Which memory cgroup leaves least, in made-up trees as the kernel's Documentation/admin-guide/cgroup-v1/memory.rst and
// cgroup-v2.rst describe them.
#include "gpu/memory_group.hpp"

#include "sysfs_tree.hpp"

namespace {

using xio::gpu::tightest_memory_group;
using xio::test::sysfs_tree;

TEST(memory_group, no_group_has_a_limit) {
  const sysfs_tree t;
  EXPECT_FALSE(tightest_memory_group(t.root));
  t.file("/proc/self/cgroup", "0::/user/one\n");
  t.file("/sys/fs/cgroup/user/one/memory.max", "max\n");
  t.file("/sys/fs/cgroup/user/memory.max", "max\n");
  EXPECT_FALSE(tightest_memory_group(t.root));
}

TEST(memory_group, one_above_may_be_the_tightest) {
  const sysfs_tree t;
  t.file("/proc/self/cgroup", "0::/user/one\n");
  t.file("/sys/fs/cgroup/user/one/memory.max", "1000000\n");
  t.file("/sys/fs/cgroup/user/one/memory.current", "100\n");
  t.file("/sys/fs/cgroup/user/memory.max", "1000000\n");
  t.file("/sys/fs/cgroup/user/memory.current", "700000\n");
  t.file("/sys/fs/cgroup/user/memory.stat", "anon 500000\nactive_file 30000\ninactive_file 50000\n");
  const auto found = tightest_memory_group(t.root);
  ASSERT_TRUE(found);
  EXPECT_PAIRS((found->limit_file, t.root + "/sys/fs/cgroup/user/memory.max"), (found->limit, 1000000u),
               (found->left, 1000000u - (700000u - 80000u)));
}

TEST(memory_group, version_1_is_beside_version_2) {
  const sysfs_tree t;
  t.file("/proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/job/a\n0::/\n");
  t.file("/sys/fs/cgroup/memory/job/a/memory.limit_in_bytes", "5000\n");
  t.file("/sys/fs/cgroup/memory/job/a/memory.usage_in_bytes", "9000\n");
  t.file("/sys/fs/cgroup/memory/job/memory.limit_in_bytes", "9223372036854771712\n");
  const auto found = tightest_memory_group(t.root);
  ASSERT_TRUE(found);
  EXPECT_PAIRS((found->limit, 5000u), (found->left, 0u));
}

// In a container /proc has a path of outside, and the group lies where the others' root would.
TEST(memory_group, a_container_sees_its_own_as_the_root) {
  const sysfs_tree t;
  t.file("/proc/self/cgroup", "0::/docker/0123\n");
  t.file("/sys/fs/cgroup/memory.max", "67108864\n");
  t.file("/sys/fs/cgroup/memory.current", "1048576\n");
  const auto found = tightest_memory_group(t.root);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->left, 66060288u);
}

}  // namespace
