// SPDX-License-Identifier: MIT
// Who holds a drive's disks, as proc and sysfs of Linux 6.12 show it.
#include "transport/nvme/holders.hpp"

#include <gtest/gtest.h>

#include "sysfs_tree.hpp"

namespace xio::nvme {
namespace {

constexpr const char* k_bdf = "0000:3b:00.0";

struct holders : testing::Test {
  holders() {
    t.folder("/sys/bus/pci/devices/0000:3b:00.0/nvme/nvme0/nvme0n1");
    t.folder("/sys/bus/pci/devices/0000:3b:00.0/nvme/nvme0/power");
    t.file("/sys/block/nvme0n1/dev", "259:0\n");
    t.file("/sys/block/nvme0n1/nvme0n1p1/dev", "259:1\n");
    t.file("/sys/block/nvme0n1/nvme0n1p1/partition", "1\n");
    t.file("/sys/block/nvme0n1/nvme0n1p2/dev", "259:2\n");
    t.file("/sys/block/nvme0n1/nvme0n1p2/partition", "2\n");
    t.file("/sys/block/nvme0n1/queue/dev", "259:9\n");  // no partition
    t.file("/proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n");
    t.file("/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n/dev/sda2 partition 999 0 -2\n");
  }
  void mount(const std::string& line) const {
    t.file("/proc/self/mountinfo", "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n" + line + "\n");
  }
  std::string who() const { return holder_of_disks(t.root, disks_of(t.root, k_bdf)); }

  test::sysfs_tree t;
};

TEST_F(holders, nobody) {
  EXPECT_EQ(disks_of(t.root, k_bdf), std::vector<std::string>{"nvme0n1"});
  EXPECT_EQ(who(), "");
}

TEST_F(holders, an_unknown_function_has_no_disks) { EXPECT_TRUE(disks_of(t.root, "0000:00:01.0").empty()); }

TEST_F(holders, a_mounted_partition) {
  mount("40 22 259:1 / /home rw,noatime shared:20 - ext4 /dev/nvme0n1p1 rw");
  EXPECT_EQ(who(), "nvme0n1p1 is mounted on /home");
}

// Optional fields between the sixth and " - " come and go (proc(5)).
TEST_F(holders, a_mount_without_optional_fields) {
  mount("40 22 259:2 / /srv rw,noatime - xfs /dev/mapper/elsewhere rw");
  EXPECT_EQ(who(), "nvme0n1p2 is mounted on /srv");
}

TEST_F(holders, the_whole_disk_mounted) {
  mount("40 22 259:0 / /mnt rw - ext4 /dev/nvme0n1 rw");
  EXPECT_EQ(who(), "nvme0n1 is mounted on /mnt");
}

TEST_F(holders, the_root_file_system_under_its_other_name) {
  t.file("/proc/self/mountinfo", "22 1 259:1 / / rw,relatime - ext4 /dev/root rw\n");
  EXPECT_EQ(who(), "nvme0n1p1 is mounted as the root file system");
}

TEST_F(holders, a_file_system_with_a_number_of_its_own) {
  mount("41 22 0:35 /@data /data rw shared:3 - btrfs /dev/nvme0n1p2 rw");
  EXPECT_EQ(who(), "nvme0n1p2 is mounted on /data");
}

TEST_F(holders, a_longer_name_is_another_disk) {
  mount("40 22 259:31 / /home rw - ext4 /dev/nvme0n1p11 rw");
  EXPECT_EQ(who(), "");
}

TEST_F(holders, swap) {
  t.file("/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/nvme0n1p2 partition 1048572 0 -2\n");
  EXPECT_EQ(who(), "nvme0n1p2 is swapped on");
}

TEST_F(holders, a_raid) {
  t.folder("/sys/block/nvme0n1/nvme0n1p2/holders/md127");
  EXPECT_EQ(who(), "nvme0n1p2 is part of md127");
}

TEST_F(holders, a_logical_volume_by_its_name) {
  t.folder("/sys/block/nvme0n1/holders/dm-3");
  t.file("/sys/block/dm-3/dm/name", "vg0-home\n");
  EXPECT_EQ(who(), "nvme0n1 is part of dm-3 (vg0-home)");
}

// With native multipath the controller has nvme2c1n1 and the disk is nvme2n1.
TEST_F(holders, multipath) {
  t.folder("/sys/bus/pci/devices/0000:3c:00.0/nvme/nvme1/nvme2c1n1");
  t.file("/sys/block/nvme2n1/dev", "259:7\n");
  EXPECT_EQ(disks_of(t.root, "0000:3c:00.0"), std::vector<std::string>{"nvme2n1"});
  mount("40 22 259:7 / /big rw - ext4 /dev/nvme2n1 rw");
  EXPECT_EQ(holder_of_disks(t.root, {"nvme2n1"}), "nvme2n1 is mounted on /big");
}

TEST_F(holders, the_second_disk_of_two) {
  t.folder("/sys/bus/pci/devices/0000:3b:00.0/nvme/nvme0/nvme0n2");
  t.file("/sys/block/nvme0n2/dev", "259:5\n");
  mount("40 22 259:5 / /two rw - ext4 /dev/nvme0n2 rw");
  EXPECT_EQ(who(), "nvme0n2 is mounted on /two");
}

// What is cut off or empty holds nobody up.
TEST_F(holders, broken_tables) {
  for (const char* text : {"", "\n", "40", "40 22 259:1 / /home", "40 22 259:1 / /home rw - ", " - "}) {
    t.file("/proc/self/mountinfo", text);
    t.file("/proc/swaps", text);
    EXPECT_TRUE(who().empty() || who() == "nvme0n1p1 is mounted on /home") << text;
  }
}

}  // namespace
}  // namespace xio::nvme
