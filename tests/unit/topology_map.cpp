// SPDX-License-Identifier: MIT
// Distances of NICs in a machine of two packages, described as hwloc's XML: package 0 has a switch with a GPU and a NIC
// and a second NIC on a root port of its own; package 1 has a GPU and a NIC behind one switch.
#include "../gtest.hpp"
#include "topology/machine_map.hpp"

namespace xio::topology {
namespace {

std::string pci(const char* bus_id, const char* type, const char* inside = "") {
  return std::string("<object type=\"PCIDev\" gp_index=\"") + std::to_string(bus_id[5] * 100 + bus_id[6]) +
         "\" pci_busid=\"" + bus_id + "\" pci_type=\"" + type + "\" pci_link_speed=\"0\">" + inside + "</object>";
}

std::string bridge(int index, const char* kind, const char* bus, const std::string& inside) {
  return "<object type=\"Bridge\" gp_index=\"" + std::to_string(index) + "\" bridge_type=\"" + kind +
         "\" depth=\"0\" " + bus + ">" + inside + "</object>";
}

constexpr const char* k_gpu = "0302 [10de:2330] [10de:16c1] a1";
constexpr const char* k_nic = "0207 [15b3:1021] [15b3:0023] 00";

std::string package(int index, const char* cpus, const std::string& devices) {
  const std::string n = std::to_string(index);
  const std::string sets = std::string(" cpuset=\"") + cpus + "\" complete_cpuset=\"" + cpus + "\" nodeset=\"" + cpus +
                           "\" complete_nodeset=\"" + cpus + "\"";
  return "<object type=\"Package\" os_index=\"" + n + "\"" + sets + " gp_index=\"" + std::to_string(10 + index) +
         "\"><object type=\"NUMANode\" os_index=\"" + n + "\"" + sets + " gp_index=\"" + std::to_string(20 + index) +
         "\" local_memory=\"1073741824\"/>" + "<object type=\"Core\" os_index=\"" + n + "\"" + sets + " gp_index=\"" +
         std::to_string(30 + index) + "\"><object type=\"PU\" os_index=\"" + n + "\"" + sets + " gp_index=\"" +
         std::to_string(40 + index) + "\"/></object>" + devices + "</object>";
}

std::string two_packages() {
  const std::string left = bridge(50, "0-1", "bridge_pci=\"0000:[10-1f]\"",
                                  bridge(51, "1-1",
                                         "bridge_pci=\"0000:[11-13]\" pci_busid=\"0000:10:01.0\" pci_type=\"0604 "
                                         "[8086:347a] [0000:0000] 04\" pci_link_speed=\"0\"",
                                         pci("0000:11:00.0", k_gpu) + pci("0000:12:00.0", k_nic)) +
                                      bridge(52, "1-1",
                                             "bridge_pci=\"0000:[14-14]\" pci_busid=\"0000:10:02.0\" pci_type=\"0604 "
                                             "[8086:347a] [0000:0000] 04\" pci_link_speed=\"0\"",
                                             pci("0000:14:00.0", k_nic)));
  const std::string right = bridge(53, "0-1", "bridge_pci=\"0000:[80-8f]\"",
                                   bridge(54, "1-1",
                                          "bridge_pci=\"0000:[81-83]\" pci_busid=\"0000:80:01.0\" pci_type=\"0604 "
                                          "[8086:347a] [0000:0000] 04\" pci_link_speed=\"0\"",
                                          pci("0000:81:00.0", k_gpu) + pci("0000:82:00.0", k_nic)));
  return "<?xml version=\"1.0\" encoding=\"UTF-8\"?><!DOCTYPE topology SYSTEM \"hwloc2.dtd\"><topology version=\"2.0\">"
         "<object type=\"Machine\" os_index=\"0\" cpuset=\"0x00000003\" complete_cpuset=\"0x00000003\" "
         "allowed_cpuset=\"0x00000003\" nodeset=\"0x00000003\" complete_nodeset=\"0x00000003\" "
         "allowed_nodeset=\"0x00000003\" gp_index=\"1\">" +
         package(0, "0x00000001", left) + package(1, "0x00000002", right) + "</object></topology>";
}

TEST(machine_map, one_switch_is_nearer_than_one_package_is_nearer_than_another) {
  const machine_map m(two_packages());
  const int same_switch = m.distance("0000:12:00.0", "0000:11:00.0");
  const int same_package = m.distance("0000:14:00.0", "0000:11:00.0");
  const int other_package = m.distance("0000:82:00.0", "0000:11:00.0");
  EXPECT_EQ(same_switch, 2) << "up to the switch and down";
  EXPECT_EQ(same_package, 4) << "over the host bridge";
  EXPECT_EQ(other_package, 8) << "over the machine";
  EXPECT_EQ(m.distance("0000:82:00.0", "0000:81:00.0"), 2);
}

TEST(machine_map, nics_of_a_gpu_nearest_first) {
  const machine_map m(two_packages());
  std::vector<std::string> order;
  for (const placed_device& d : m.nearest(device_role::nic, "0000:81:00.0")) order.push_back(d.bus_id);
  EXPECT_EQ(order, (std::vector<std::string>{"0000:82:00.0", "0000:12:00.0", "0000:14:00.0"}));
  const auto of_left = m.nearest(device_role::nic, "0000:11:00.0");
  ASSERT_EQ(of_left.size(), 3u);
  EXPECT_PAIRS((of_left[0].bus_id, "0000:12:00.0"), (of_left[0].distance, 2), (of_left[1].distance, 4));
  EXPECT_EQ(m.nearest(device_role::gpu, "0000:11:00.0").size(), 1u) << "it is no neighbour of itself";
  EXPECT_TRUE(m.nearest(device_role::drive, "0000:11:00.0").empty());
}

TEST(machine_map, says_what_two_have_in_common) {
  const machine_map m(two_packages());
  EXPECT_EQ(m.common("0000:12:00.0", "0000:11:00.0"), "one PCIe bridge");
  EXPECT_EQ(m.common("0000:14:00.0", "0000:11:00.0"), "one host bridge");
  EXPECT_EQ(m.common("0000:82:00.0", "0000:11:00.0"), "one machine");
  EXPECT_EQ(m.common("0000:82:00.0", "0000:77:00.0"), "");
}

TEST(machine_map, lists_devices_with_their_node) {
  const auto all = machine_map(two_packages()).devices();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_PAIRS((all[0].bus_id, "0000:11:00.0"), (all[0].role, device_role::gpu), (all[0].numa_node, 0),
               (all[4].bus_id, "0000:82:00.0"), (all[4].role, device_role::nic), (all[4].numa_node, 1));
}

TEST(machine_map, a_machine_in_short_form_has_no_devices) {
  const machine_map m("package:2 numa:1 core:4 pu:1");
  EXPECT_TRUE(m.known());
  EXPECT_TRUE(m.devices().empty());
  EXPECT_EQ(m.distance("0000:12:00.0", ""), k_most_distant);
  EXPECT_FALSE(machine_map("package:").known());
  EXPECT_FALSE(machine_map("").known());
}

TEST(machine_map, what_is_not_there_is_most_distant) {
  const machine_map m(two_packages());
  EXPECT_EQ(m.distance("", "0000:11:00.0"), k_most_distant) << "a software device";
  EXPECT_EQ(m.distance("0000:77:00.0", "0000:11:00.0"), k_most_distant);
  EXPECT_EQ(m.distance("nonsense", "0000:11:00.0"), k_most_distant);
  EXPECT_EQ(m.distance("0000:12:00.0", "0000:77:00.0"), 0) << "an unknown GPU: no preference in a foreign machine";
  EXPECT_EQ(machine_map("no xml").distance("0000:12:00.0", "0000:11:00.0"), k_most_distant);
}

TEST(machine_map, this_machine_has_a_map) {
  const machine_map m;
  EXPECT_EQ(m.distance("ffff:ff:1f.7", ""), k_most_distant);
}

}  // namespace
}  // namespace xio::topology
