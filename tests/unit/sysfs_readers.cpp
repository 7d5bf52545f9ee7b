// SPDX-License-Identifier: MIT
// What is read of a machine: its PCI functions and its sysfs.
#include "topology/pci_config.hpp"

#include <fmt/format.h>

#include "refusal.hpp"
#include "sysfs_tree.hpp"
#include "topology/pci_reader.hpp"
#include "topology/sysfs_map.hpp"

namespace xio::topology {
namespace {

using test::refusal;
using test::sysfs_tree;

// --- PCI --------------------------------------------------------------------------------------------
// PCI functions as a kernel shows them below /sys and as `lspci -xxxx` prints them. Offsets: PCI Express Base
// Specification 5.0, 7.5.1 (header), 7.5.3 (PCI Express capability), 7.6.3, 7.7.8 (ACS), 9.3.3 (SR-IOV).

struct image {
  explicit image(std::size_t bytes) : at(bytes, '\0') {}
  image& put(std::size_t offset, unsigned long value, int bytes) {
    for (int i = 0; i < bytes; ++i) at[offset + static_cast<std::size_t>(i)] = static_cast<char>(value >> 8 * i & 0xff);
    return *this;
  }
  std::string at;
};

// An endpoint of AMD's with a list of three capabilities, PCI Express the last of them, and ACS and SR-IOV.
image gpu() {
  image i(4096);
  i.put(0x00, 0x1002, 2).put(0x02, 0x740f, 2).put(0x06, 0x0010, 2).put(0x0a, 0x0302, 2);
  i.put(0x2c, 0x1849, 2).put(0x34, 0x48, 1);
  i.put(0x48, 0x5009, 2).put(0x50, 0x6401, 2).put(0x64, 0x0010, 2);
  i.put(0x66, 0x0002, 2).put(0x64 + 0x24, 0x00000180, 4).put(0x64 + 0x28, 0x0040, 2);
  i.put(0x100, 0x2a010001, 4);                        // errors, next at 0x2a0
  i.put(0x2a0, 0x3001000d, 4).put(0x2a6, 0x001d, 2);  // ACS, next at 0x300
  i.put(0x300, 0x00010010, 4).put(0x308, 0x0001, 2);  // SR-IOV, the last
  return i.put(0x310, 4, 2).put(0x314, 0x80, 2).put(0x316, 2, 2);
}

image root_port() {
  image i(256);
  i.put(0x00, 0x1022, 2).put(0x02, 0x14ab, 2).put(0x06, 0x0010, 2).put(0x0a, 0x0604, 2).put(0x0e, 0x81, 1);
  i.put(0x18, 0x00, 1).put(0x19, 0x01, 1).put(0x1a, 0x08, 1).put(0x34, 0x40, 1);
  return i.put(0x40, 0x0010, 2).put(0x42, 0x0042, 2).put(0x64, 0x3c0, 4);
}

const std::string k_folder = "/sys/bus/pci/devices/";
void add(const sysfs_tree& tree, const std::string& bus_id, const std::string& config) {
  tree.file(k_folder + bus_id + "/config", config);
}

TEST(pci_reader, reads_endpoint_and_port) {
  sysfs_tree tree;
  add(tree, "0000:01:00.0", gpu().at);
  add(tree, "0000:00:01.0", root_port().at);
  const pci_tree all = read_pci_sysfs(tree.root);
  ASSERT_EQ(all.functions().size(), 2u);
  const pci_function* f = all.find("0000:01:00.0");
  ASSERT_NE(f, nullptr);
  EXPECT_PAIRS((f->vendor, 0x1002), (f->device, 0x740f), (f->device_class, 0x0302), (f->subsystem_vendor, 0x1849));
  EXPECT_TRUE(f->readable);
  EXPECT_FALSE(f->is_bridge);
  EXPECT_FALSE(f->multifunction);
  EXPECT_PAIRS((f->kind, port_kind::endpoint), (f->express_version, 2), (f->capabilities2, 0x180u), (f->control2, 0x40),
               (f->acs_control, 0x1d), (f->virtuals.count, 4), (f->virtuals.offset, 0x80), (f->virtuals.stride, 2));

  const pci_function* port = all.find("0000:00:01.0");
  ASSERT_NE(port, nullptr);
  EXPECT_TRUE(port->is_bridge);
  EXPECT_TRUE(port->multifunction);
  EXPECT_PAIRS((port->kind, port_kind::root_port), (port->secondary, 1), (port->subordinate, 8),
               (port->capabilities2, 0x3c0u), (port->subsystem_vendor, 0), (port->acs_control, 0),
               (all.above(*f).size(), 1u));
}

// Users who are not root get the header alone.
TEST(pci_reader, header_alone_is_not_readable) {
  sysfs_tree tree;
  add(tree, "0000:01:00.0", gpu().at.substr(0, 64));
  const pci_tree all = read_pci_sysfs(tree.root);
  const pci_function& f = all.functions().at(0);
  EXPECT_FALSE(f.readable);
  EXPECT_PAIRS((f.device, 0x740f), (f.kind, port_kind::none));
}

// Vendor, device and class, with these files of the kernel's beside the configuration.
void expect_ids_beside(const sysfs_tree& tree, const std::string& bus_id, const std::array<const char*, 3>& files,
                       const std::array<int, 3>& ids) {
  const char* const names[] = {"/vendor", "/device", "/class"};
  for (std::size_t i = 0; i < 3; ++i) tree.file(k_folder + bus_id + names[i], files[i]);
  const pci_tree all = read_pci_sysfs(tree.root);
  const pci_function& f = all.functions().at(0);
  EXPECT_PAIRS((f.vendor, ids[0]), (f.device, ids[1]), (f.device_class, ids[2]));
}

// 9.3.4.1: vendor and device of a virtual function read as ones; the kernel's files have the right ones.
TEST(pci_reader, virtual_function_has_the_kernels_ids) {
  sysfs_tree tree;
  image i = gpu();
  add(tree, "0000:01:10.0", i.put(0, 0xffffffff, 4).at);
  expect_ids_beside(tree, "0000:01:10.0", {"0x15b3\n", "0x101e\n", "0x020700\n"}, {0x15b3, 0x101e, 0x0207});
}

TEST(pci_reader, files_that_hold_no_number_are_not_believed) {
  sysfs_tree tree;
  add(tree, "0000:01:00.0", gpu().at);
  expect_ids_beside(tree, "0000:01:00.0", {"0x10zz\n", "0x123456789abc\n", ""}, {0x1002, 0x740f, 0x0302});
}

TEST(pci_reader, lists_without_an_end_end) {
  EXPECT_EQ(pci_config({}).find_capability(0x10), 0u);
  const auto with = [](std::size_t offset, unsigned long value, int bytes) {
    const image i = gpu().put(offset, value, bytes);
    return pci_config({i.at.begin(), i.at.end()});
  };
  EXPECT_EQ(with(0x50, 0x4801, 2).find_capability(0x10), 0u) << "the second names the first";
  EXPECT_EQ(with(0x48, 0x4809, 2).find_capability(0x10), 0u);
  EXPECT_EQ(with(0x34, 0x04, 1).find_capability(0x10), 0u) << "a list in the header";
  EXPECT_EQ(with(0x2a0, 0x1001000e, 4).find_extended(0x10), 0u);
  EXPECT_EQ(with(0x100, 0x04010001, 4).find_extended(0x10), 0u) << "below 0x100";
  // Reading stays inside of the bytes, wherever they end and even if they make no sense.
  const image whole = gpu();
  for (std::size_t n = 0; n <= 0x320; ++n) {
    const pci_function f =
        function_of("0000:01:00.0", pci_config({whole.at.begin(), whole.at.begin() + static_cast<long>(n)}));
    EXPECT_EQ(f.readable && f.kind == port_kind::endpoint, n >= 0x64 + 0x28 + 2) << n;
  }
  for (unsigned fill = 0; fill < 256; ++fill)
    function_of("0000:01:00.0", pci_config(std::vector<std::uint8_t>(4096, static_cast<std::uint8_t>(fill))));
}

TEST(pci_reader, dump_and_sysfs_say_the_same) {
  sysfs_tree tree;
  const image i = gpu();
  add(tree, "0000:01:00.0", i.at);
  std::string dump = "0000:01:00.0 Display controller: a GPU\n";
  for (std::size_t row = 0; row < i.at.size(); row += 16) {
    dump += fmt::format("{:02x}:", row);
    for (std::size_t b = 0; b < 16; ++b) dump += fmt::format(" {:02x}", static_cast<unsigned char>(i.at[row + b]));
    dump += '\n';
  }
  tree.file("/dump", dump);
  const pci_function a = read_pci_sysfs(tree.root).functions().at(0);
  const pci_function b = read_pci_tree(tree.root + "/dump").functions().at(0);
  EXPECT_PAIRS((a.bus_id, b.bus_id), (a.vendor, b.vendor), (a.device_class, b.device_class),
               (a.capabilities2, b.capabilities2), (a.control2, b.control2), (a.acs_control, b.acs_control),
               (a.virtuals.stride, b.virtuals.stride));
}

TEST(pci_reader, strange_names_are_left_out_and_no_sys_is_said) {
  sysfs_tree tree;
  EXPECT_NE(refusal(XIO_ERR_UNSUPPORTED, [&] { read_pci_sysfs(tree.root); }).find("mount /sys"), std::string::npos);
  tree.folder(k_folder + "0000:01:00.0");  // without any file
  tree.folder(k_folder + "no-address");
  const pci_tree all = read_pci_sysfs(tree.root);
  ASSERT_EQ(all.functions().size(), 1u);
  EXPECT_EQ(all.functions().at(0).kind, port_kind::none);
}

TEST(pci_reader, requester_bit_is_set_and_nothing_else) {
  sysfs_tree tree;
  image i = gpu();
  add(tree, "0000:01:00.0", i.put(0x64 + 0x28, 0xa005, 2).at);
  enable_atomics_of("0000:01:00.0", tree.root);
  std::ifstream in(tree.root + k_folder + "0000:01:00.0/config", std::ios::binary);
  const std::string after{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(after, i.put(0x64 + 0x28, 0xa045, 2).at);

  add(tree, "0000:02:00.0", std::string(256, '\0'));
  test::expect_words(refusal(XIO_ERR_IO, [&] { enable_atomics_of("0000:02:00.0", tree.root); }), {"does not keep"});
  refusal(XIO_ERR_ARG, [&] { enable_atomics_of("0000:03:00.0", tree.root); });
  refusal(XIO_ERR_ARG, [&] { enable_atomics_of("../0000:01:00.0", tree.root); });
}

// --- sysfs ------------------------------------------------------------------------------------------
// Distances without hwloc, in the machine of topology_map.cpp: package 0 has a switch with a GPU and a NIC and a second
// NIC on a root port of its own; package 1 has a GPU and a NIC behind one switch. hwloc counts the same.

constexpr const char *k_gpu = "0x120000", *k_nic = "0x020700", *k_drive = "0x010802", *k_bridge = "0x060400";

struct sysfs_paths : testing::Test {
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
  const struct {
    const char *device, *common;
    int distance;
  } of_the_gpu[] = {{"0000:12:00.0", "one PCIe bridge", 2},  // up to the switch and down
                    {"0000:14:00.0", "one host bridge", 4},  // over it
                    {"0000:21:00.0", "one NUMA node", 6},    // over the package
                    {"0000:82:00.0", "one machine", 8}};     // over the machine
  for (const auto& is : of_the_gpu) {
    EXPECT_PAIRS((m.distance(is.device, "0000:11:00.0"), is.distance),
                 (m.common(is.device, "0000:11:00.0"), is.common));
  }
  EXPECT_PAIRS((m.distance("0000:11:00.0", "0000:11:00.0"), 0), (m.common("0000:82:00.0", "0000:77:00.0"), ""));
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
