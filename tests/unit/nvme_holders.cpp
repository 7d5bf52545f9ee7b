// SPDX-License-Identifier: MIT
// The holders of a drive's disks, as proc and sysfs of Linux 6.12 show them.
#include "sysfs_tree.hpp"
#include "transport/nvme/holders.hpp"

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

// A line of mountinfo, and what is said of it.
struct mounted {
  const char *name, *line, *says;
};
struct holders_mounted : holders, testing::WithParamInterface<mounted> {};

TEST_P(holders_mounted, is_named) {
  mount(GetParam().line);
  EXPECT_EQ(who(), GetParam().says);
}
const mounted k_mounted[] = {
    {"a_mounted_partition", "40 22 259:1 / /home rw,noatime shared:20 - ext4 /dev/nvme0n1p1 rw",
     "nvme0n1p1 is mounted on /home"},
    // Optional fields between the sixth and " - " come and go (proc(5)).
    {"a_mount_without_optional_fields", "40 22 259:2 / /srv rw,noatime - xfs /dev/mapper/elsewhere rw",
     "nvme0n1p2 is mounted on /srv"},
    {"the_whole_disk_mounted", "40 22 259:0 / /mnt rw - ext4 /dev/nvme0n1 rw", "nvme0n1 is mounted on /mnt"},
    {"a_file_system_with_a_number_of_its_own", "41 22 0:35 /@data /data rw shared:3 - btrfs /dev/nvme0n1p2 rw",
     "nvme0n1p2 is mounted on /data"},
    {"a_longer_name_is_another_disk", "40 22 259:31 / /home rw - ext4 /dev/nvme0n1p11 rw", ""},
    {"a_list_of_sources", "41 22 0:35 / /data rw shared:3 - bcachefs /dev/sdb:/dev/nvme0n1p2:/dev/sdc rw",
     "nvme0n1p2 is mounted on /data"},
    {"the_log_of_a_file_system",
     "41 22 8:33 / /data rw shared:3 - xfs /dev/sdc1 rw,attr2,logdev=/dev/nvme0n1p2,noquota",
     "nvme0n1p2 is mounted on /data"},
};
INSTANTIATE_TEST_SUITE_P(of, holders_mounted, testing::ValuesIn(k_mounted), [](const auto& i) { return i.param.name; });

// Files and their text, folders with / at the end, links with -> before their target; and what is said, with * at the
// end how that begins.
struct held {
  const char *name, *says;
  std::vector<std::pair<std::string, std::string>> there;
};
struct holders_held : holders, testing::WithParamInterface<held> {};

TEST_P(holders_held, is_named) {
  for (const auto& [path, text] : GetParam().there) {
    if (path.back() == '/')
      t.folder(path);
    else if (text.starts_with("->"))
      t.link(path, text.substr(2));
    else
      t.file(path, text);
  }
  const std::string says = GetParam().says;
  if (says.ends_with('*'))
    EXPECT_EQ(who().find(says.substr(0, says.size() - 1)), 0u) << who();
  else
    EXPECT_EQ(who(), says);
}
const std::string k_mounts = "/proc/self/mountinfo", k_disk = "/sys/block/nvme0n1/", k_udev = "/run/udev/data/b259:2";
const held k_held[] = {
    {"the_root_file_system_under_its_other_name",
     "nvme0n1p1 is mounted as the root file system",
     {{k_mounts, "22 1 259:1 / / rw,relatime - ext4 /dev/root rw\n"}}},
    {"swap",
     "nvme0n1p2 is swapped on",
     {{"/proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n/dev/nvme0n1p2 partition 1048572 0 -2\n"}}},
    {"a_raid", "nvme0n1p2 is part of md127", {{k_disk + "nvme0n1p2/holders/md127/", ""}}},
    {"a_logical_volume_by_its_name",
     "nvme0n1 is part of dm-3 (vg0-home)",
     {{k_disk + "holders/dm-3/", ""}, {"/sys/block/dm-3/dm/name", "vg0-home\n"}}},
    {"the_second_disk_of_two",
     "nvme0n2 is mounted on /two",
     {{"/sys/bus/pci/devices/0000:3b:00.0/nvme/nvme0/nvme0n2/", ""},
      {"/sys/block/nvme0n2/dev", "259:5\n"},
      {k_mounts, "40 22 259:5 / /two rw - ext4 /dev/nvme0n2 rw\n"}}},
    {"a_further_device_of_btrfs",
     "nvme0n1p2 is part of the mounted btrfs 5ad2c4c0-2f4e-4b0c-9f5d-3a6a0b6c0001",
     {{k_mounts, "41 22 0:35 / /data rw shared:3 - btrfs /dev/sdb rw\n"},
      {"/sys/fs/btrfs/5ad2c4c0-2f4e-4b0c-9f5d-3a6a0b6c0001/devices/nvme0n1p2", "->../../../block/x"}}},
    {"a_device_of_bcachefs",
     "nvme0n1p1 is part of the mounted bcachefs 0c6e",
     {{"/sys/fs/bcachefs/0c6e/dev-1/block", "->../../../../devices/pci0/nvme0/nvme0n1/nvme0n1p1"}}},
    // udev's database says what is on a disk, and all may read it.
    {"a_pool_of_zfs",
     "nvme0n1p2 is part of a ZFS pool*",
     {{k_udev, "S:disk/by-id/x\nE:ID_FS_VERSION=5000\nE:ID_FS_TYPE=zfs_member\nG:systemd\n"},
      {"/sys/module/zfs/", ""}}},
    {"a_pool_of_zfs_that_is_not_loaded", "", {{k_udev, "E:ID_FS_TYPE=zfs_member\n"}}},
    {"another_file_system_while_zfs_is_loaded", "", {{"/sys/module/zfs/", ""}, {k_udev, "E:ID_FS_TYPE=ext4\n"}}},
    {"a_bcache", "nvme0n1p2 is part of a bcache", {{k_disk + "nvme0n1p2/bcache/", ""}}},
    {"a_loop_device", "nvme0n1p1 is below loop3", {{"/sys/block/loop3/loop/backing_file", "/dev/nvme0n1p1\n"}}},
    {"a_loop_device_of_another", "", {{"/sys/block/loop3/loop/backing_file", "/dev/nvme0n1p11\n"}}},
    {"a_disk_that_nobody_claims", "", {{"/dev/nvme0n1", ""}, {"/dev/nvme0n1p1", ""}}},
    // A link to itself: nobody may follow it, root neither.
    {"a_disk_that_cannot_be_opened",
     "whether nvme0n1p2 is in use cannot be known*",
     {{"/dev/nvme0n1", ""}, {"/dev/nvme0n1p2", "->nvme0n1p2"}}}};
INSTANTIATE_TEST_SUITE_P(by, holders_held, testing::ValuesIn(k_held), [](const auto& i) { return i.param.name; });

// With native multipath the controller has nvme2c1n1 and the disk is nvme2n1.
TEST_F(holders, multipath) {
  t.folder("/sys/bus/pci/devices/0000:3c:00.0/nvme/nvme1/nvme2c1n1");
  t.file("/sys/block/nvme2n1/dev", "259:7\n");
  EXPECT_EQ(disks_of(t.root, "0000:3c:00.0"), std::vector<std::string>{"nvme2n1"});
  mount("40 22 259:7 / /big rw - ext4 /dev/nvme2n1 rw");
  EXPECT_EQ(holder_of_disks(t.root, {"nvme2n1"}), "nvme2n1 is mounted on /big");
}

// --- What cannot be asked ---

TEST_F(holders, a_disk_that_may_not_be_opened) {
  t.file("/dev/nvme0n1", "");
  std::filesystem::permissions(t.root + "/dev/nvme0n1", std::filesystem::perms::none);
  if (geteuid() != 0) {
    EXPECT_EQ(who().find("whether nvme0n1 is in use cannot be known: Permission denied"), 0u) << who();
    return;
  }
  // Root may open everything: asked by somebody else.
  std::filesystem::permissions(t.root, std::filesystem::perms::all);
  ASSERT_EQ(seteuid(65534), 0);
  const std::string is = who();
  ASSERT_EQ(seteuid(0), 0);
  EXPECT_EQ(is.find("whether nvme0n1 is in use cannot be known: Permission denied"), 0u) << is;
}

TEST_F(holders, a_machine_without_the_node) {
  EXPECT_EQ(holder_of_disks("", {"nvme990n991"}).find("whether nvme990n991 is in use cannot be known"), 0u);
}

// --- Namespaces of several controllers ---

namespace_identity named() {
  namespace_identity is;
  is.nguid = {0x00, 0x25, 0x38, 0x5b, 0x21, 0x40, 0x4a, 0x5f, 0x00, 0x25, 0x38, 0x00, 0x00, 0x00, 0x00, 0x01};
  is.eui64 = {0x00, 0x25, 0x38, 0x5b, 0x21, 0x40, 0x4a, 0x5f};
  is.nsid = 1;
  is.bytes = std::uint64_t{1} << 30;
  return is;
}

TEST_F(holders, the_same_namespace_by_nguid) {
  t.file("/sys/block/nvme0n1/nguid", "0025385b-2140-4a5f-0025-380000000001\n");
  t.file("/sys/block/nvme1n1/nguid", "0025385b-2140-4a5f-0025-380000000002\n");
  t.file("/sys/block/nvme0c0n1/nguid", "0025385b-2140-4a5f-0025-380000000001\n");
  EXPECT_EQ(disks_of_namespace(t.root, named()), std::vector<std::string>{"nvme0n1"});
}

TEST_F(holders, the_same_namespace_by_eui64) {
  t.file("/sys/block/nvme0n1/eui", "00 25 38 5b 21 40 4a 5f\n");
  t.file("/sys/block/nvme1n1/eui", "00 25 38 5b 21 40 4a 60\n");
  EXPECT_EQ(disks_of_namespace(t.root, named()), std::vector<std::string>{"nvme0n1"});
}

TEST_F(holders, no_namespace_by_zeroes) {
  t.file("/sys/block/nvme0n1/nguid", "00000000-0000-0000-0000-000000000000\n");
  t.file("/sys/block/nvme0n1/eui", "00 00 00 00 00 00 00 00\n");
  t.file("/sys/block/nvme0n1/nsid", "1\n");
  t.file("/sys/block/nvme0n1/size", "2097152\n");
  EXPECT_TRUE(disks_of_namespace(t.root, named()).empty());
  // Without identifiers on both sides it may be the same.
  namespace_identity nameless;
  nameless.nsid = 1;
  nameless.bytes = std::uint64_t{1} << 30;
  EXPECT_EQ(disks_of_namespace(t.root, nameless), std::vector<std::string>{"nvme0n1"});
  nameless.bytes /= 2;
  EXPECT_TRUE(disks_of_namespace(t.root, nameless).empty());
}

// Tables that are empty or cut off name no holder and cause no error.
TEST_F(holders, broken_tables) {
  for (const char* text : {"", "\n", "40", "40 22 259:1 / /home", "40 22 259:1 / /home rw - ", " - "}) {
    t.file("/proc/self/mountinfo", text);
    t.file("/proc/swaps", text);
    EXPECT_TRUE(who().empty() || who() == "nvme0n1p1 is mounted on /home") << text;
  }
}

}  // namespace
}  // namespace xio::nvme
