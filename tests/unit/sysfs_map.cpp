// SPDX-License-Identifier: MIT
// Distances without hwloc, in the machine of topology_map.cpp: package 0 has a switch with a GPU and a NIC and a second
// NIC on a root port of its own; package 1 has a GPU and a NIC behind one switch. hwloc counts the same.
#include "topology/sysfs_map.hpp"

#include "sysfs_tree.hpp"

namespace xio::topology {
namespace {

constexpr const char *k_gpu = "0x120000", *k_nic = "0x020700", *k_drive = "0x010802", *k_bridge = "0x060400";

class sysfs_paths : public testing::Test {
 protected:
  sysfs_paths() {
    add("pci0000:10/0000:10:01.0", k_bridge, 0);
    add("pci0000:10/0000:10:01.0/0000:11:00.0", k_gpu, 0);
    add("pci0000:10/0000:10:01.0/0000:12:00.0", k_nic, 0);
    add("pci0000:10/0000:10:02.0", k_bridge, 0);
    add("pci0000:10/0000:10:02.0/0000:14:00.0", k_nic, 0);
    add("pci0000:20/0000:20:01.0/0000:21:00.0", k_drive, 0);
    add("pci0000:80/0000:80:01.0/0000:81:00.0", k_gpu, 1);
    add("pci0000:80/0000:80:01.0/0000:82:00.0", k_nic, 1);
    machine_.folder(std::string("/sys/devices/pci0000:10/0000:10:01.0/0000:12:00.0/infiniband/mlx5_0"));
    machine_.folder(std::string("/sys/devices/pci0000:10/0000:10:01.0/0000:12:00.0/net/eth0"));
  }
  void add(const std::string& path, const char* device_class, int numa_node) {
    machine_.file("/sys/devices/" + path + "/class", std::string(device_class) + "\n");
    machine_.file("/sys/devices/" + path + "/numa_node", std::to_string(numa_node) + "\n");
    machine_.link("/sys/bus/pci/devices/" + path.substr(path.rfind('/') + 1), "../../../devices/" + path);
  }

  const test::sysfs_tree machine_;
  const sysfs_map m{machine_.root};
};

TEST_F(sysfs_paths, one_switch_is_nearer_than_one_package_is_nearer_than_another) {
  EXPECT_TRUE(m.known());
  EXPECT_EQ(m.distance("0000:12:00.0", "0000:11:00.0"), 2) << "up to the switch and down";
  EXPECT_EQ(m.distance("0000:14:00.0", "0000:11:00.0"), 4) << "over the host bridge";
  EXPECT_EQ(m.distance("0000:21:00.0", "0000:11:00.0"), 6) << "over the package";
  EXPECT_EQ(m.distance("0000:82:00.0", "0000:11:00.0"), 8) << "over the machine";
  EXPECT_EQ(m.distance("0000:11:00.0", "0000:11:00.0"), 0);
}

TEST_F(sysfs_paths, says_what_two_have_in_common) {
  EXPECT_EQ(m.common("0000:12:00.0", "0000:11:00.0"), "one PCIe bridge");
  EXPECT_EQ(m.common("0000:14:00.0", "0000:11:00.0"), "one host bridge");
  EXPECT_EQ(m.common("0000:21:00.0", "0000:11:00.0"), "one NUMA node");
  EXPECT_EQ(m.common("0000:82:00.0", "0000:11:00.0"), "one machine");
  EXPECT_EQ(m.common("0000:82:00.0", "0000:77:00.0"), "");
}

TEST_F(sysfs_paths, lists_devices_with_node_and_names) {
  const auto all = m.devices();
  ASSERT_EQ(all.size(), 6u) << "no bridges";
  EXPECT_PAIRS((all[0].bus_id, "0000:11:00.0"), (all[0].role, device_role::gpu), (all[1].role, device_role::nic),
               (all[1].names, (std::vector<std::string>{"eth0", "mlx5_0"})), (all[3].role, device_role::drive),
               (all[5].numa_node, 1));
}

TEST_F(sysfs_paths, what_is_not_there_is_most_distant) {
  EXPECT_EQ(m.distance("", "0000:11:00.0"), k_most_distant) << "a software device";
  EXPECT_EQ(m.distance("0000:77:00.0", "0000:11:00.0"), k_most_distant);
  EXPECT_EQ(m.distance("../../etc", "0000:11:00.0"), k_most_distant);
  EXPECT_EQ(m.distance("0000:12:00.0", ""), 0) << "no GPU, and nothing says which processors are its own";
}

TEST_F(sysfs_paths, without_a_gpu_the_processors_decide) {
  machine_.file("/sys/devices/pci0000:10/0000:10:01.0/0000:12:00.0/local_cpulist", "0-1023\n");
  machine_.file("/sys/devices/pci0000:80/0000:80:01.0/0000:82:00.0/local_cpulist", "1022-1023\n");
  EXPECT_PAIRS((m.distance("0000:12:00.0", ""), 0), (m.distance("0000:82:00.0", ""), 2));
}

TEST(sysfs_map, a_machine_without_pci_is_not_known) {
  const test::sysfs_tree bare;
  const sysfs_map m(bare.root);
  EXPECT_FALSE(m.known());
  EXPECT_TRUE(m.devices().empty());
  EXPECT_EQ(m.distance("0000:12:00.0", "0000:11:00.0"), k_most_distant);
}

}  // namespace
}  // namespace xio::topology
