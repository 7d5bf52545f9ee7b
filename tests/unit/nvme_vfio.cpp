// SPDX-License-Identifier: MIT
// Drives by vfio, as far as no hardware is wanted: names, what sysfs must say first, addresses of the IOMMU, windows of
// other devices. tests/vm/nvme.sh has the drives.
#include <linux/vfio.h>

#include "gpu/gpu.hpp"
#include "refusal.hpp"
#include "sysfs_tree.hpp"
#include "transport/nvme/vfio_controller.hpp"
#include "transport/nvme/vfio_space.hpp"
#include "transport/nvme/vfio_type1.hpp"

namespace xio::nvme {
namespace {

using test::expect_words;
using test::refusal;
using test::sysfs_tree;

constexpr const char* k_bdf = "0000:3b:00.0";
const std::string k_name = "nvme:0000:3b:00.0/1";

// --- Names -------------------------------------------------------------------------------------------

TEST(vfio_names, taken_apart) {
  EXPECT_PAIRS((parse_vfio_name("nvme:0000:3b:00.0/1").bdf, "0000:3b:00.0"),
               (parse_vfio_name("nvme:0000:3b:00.0/1").nsid, 1u),
               (parse_vfio_name("nvme:10ab:C1:1F.7/4294967294").bdf, "10ab:c1:1f.7"),
               (parse_vfio_name("nvme:10ab:C1:1F.7/4294967294").nsid, 0xfffffffeu),
               (parse_vfio_name("nvme:3b:00.0").bdf, "0000:3b:00.0"), (parse_vfio_name("nvme:3b:00.0").nsid, 1u),
               (parse_vfio_name("nvme:0000:3b:00.0/1").bus_devfn, 0x3b00u),
               (parse_vfio_name("nvme:0000:01:1f.7").bus_devfn, 0x01ffu));
}

TEST(vfio_names, refused) {
  for (const char* name : {"nvme:", "nvme:/1", "nvme:3b", "nvme:0000:3b:20.0/1", "nvme:0000:3b:00.8/1",
                           "nvme:0000:3b:00.0/", "nvme:0000:3b:00.0/-1", "nvme:0000:3b:00.0/1x", "nvme:../../etc/1",
                           "nvme:0000:3b:00.0/0", "nvme:0000:3b:00.0/4294967295", "nvme:0000:3b:00.0/4294967296",
                           "nvme:0000:3b:00.0/99999999999999999999", "nvme:0000:3b:00.0 /1"})
    EXPECT_NE(refusal(XIO_ERR_ARG, [&] { parse_vfio_name(name); }), "") << name;
}

// --- What sysfs must say -----------------------------------------------------------------------------

struct function : testing::Test {
  function() {
    t.file("/sys/bus/pci/devices/0000:3b:00.0/class", "0x010802\n");
    driver("vfio-pci");
    t.link("/sys/bus/pci/devices/0000:3b:00.0/iommu_group", "../../../kernel/iommu_groups/17");
  }
  void driver(const std::string& name) const {
    t.link("/sys/bus/pci/devices/0000:3b:00.0/driver", "../../../../bus/pci/drivers/" + name);
  }
  std::string refused(xio_status_t status) const {
    return refusal(status, [&] { find_vfio_group(t.root, k_bdf, k_name); });
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(t.root + path); }

  sysfs_tree t;
};

TEST_F(function, ready) { EXPECT_EQ(find_vfio_group(t.root, k_bdf, k_name), 17u); }

TEST_F(function, not_there) {
  const std::string why = refusal(XIO_ERR_ARG, [&] { find_vfio_group(t.root, "0000:3c:00.0", "nvme:3c:00.0"); });
  expect_words(why, {"no PCI function 0000:3c:00.0", "lspci"});
}

TEST_F(function, no_drive) {
  for (const char* code : {"0x020000\n", "0x010801\n", "0x01080\n", "", "words"}) {
    t.file("/sys/bus/pci/devices/0000:3b:00.0/class", code);
    expect_words(refused(XIO_ERR_ARG), {"no NVMe controller", "lspci"});
  }
}

TEST_F(function, has_the_kernels_driver) {
  driver("nvme");
  expect_words(refused(XIO_ERR_STATE),
               {"bound to the driver nvme", "driverctl set-override 0000:3b:00.0 vfio-pci", "driver_override"});
}

TEST_F(function, has_no_driver) {
  remove("/sys/bus/pci/devices/0000:3b:00.0/driver");
  expect_words(refused(XIO_ERR_STATE), {"bound to no driver", "driverctl"});
}

// No word of how to take the drive from the kernel while somebody has data on it.
TEST_F(function, is_mounted) {
  driver("nvme");
  t.folder("/sys/bus/pci/devices/0000:3b:00.0/nvme/nvme0/nvme0n1");
  t.file("/sys/block/nvme0n1/dev", "259:0\n");
  t.file("/proc/self/mountinfo", "40 22 259:0 / /home rw - ext4 /dev/nvme0n1 rw\n");
  const std::string why = refused(XIO_ERR_STATE);
  expect_words(why, {"nvme0n1 is mounted on /home"});
  EXPECT_EQ(why.find("driverctl"), std::string::npos) << why;
}

TEST_F(function, has_no_iommu) {
  remove("/sys/bus/pci/devices/0000:3b:00.0/iommu_group");
  const std::string why = refused(XIO_ERR_UNSUPPORTED);
  expect_words(why, {"behind no IOMMU", "intel_iommu=on"});
  // Nor is one sent to bind a drive that vfio-pci would not take.
  driver("nvme");
  EXPECT_EQ(refused(XIO_ERR_UNSUPPORTED), why);
  remove("/sys/bus/pci/devices/0000:3b:00.0/driver");
  EXPECT_EQ(refused(XIO_ERR_UNSUPPORTED), why);
}

// vfio's mode without an IOMMU: its group is made up, and its drive would reach everything.
TEST_F(function, has_a_group_without_iommu) {
  t.file("/sys/kernel/iommu_groups/17/name", "vfio-noiommu\n");
  expect_words(refused(XIO_ERR_UNSUPPORTED), {"behind no IOMMU", "intel_iommu=on"});
  t.file("/sys/kernel/iommu_groups/17/name", "other\n");
  EXPECT_EQ(find_vfio_group(t.root, k_bdf, k_name), 17u);
}

TEST_F(function, tells_who_else_is_in_the_group) {
  const std::string group = "/sys/kernel/iommu_groups/17/devices/";
  EXPECT_EQ(others_in_group(t.root, 17), "");
  t.folder(group + "0000:3a:00.0");
  t.link(group + "0000:3a:00.0/driver", "/sys/bus/pci/drivers/pcieport");
  t.folder(group + "0000:3b:00.0");
  t.link(group + "0000:3b:00.0/driver", "/sys/bus/pci/drivers/vfio-pci");
  t.folder(group + "0000:3b:00.2");
  EXPECT_EQ(others_in_group(t.root, 17), "");
  t.link(group + "0000:3b:00.2/driver", "/sys/bus/pci/drivers/xhci_hcd");
  t.folder(group + "0000:3b:00.1");
  t.link(group + "0000:3b:00.1/driver", "/sys/bus/pci/drivers/e1000e");
  EXPECT_EQ(others_in_group(t.root, 17), "0000:3b:00.1 (e1000e), 0000:3b:00.2 (xhci_hcd)");
}

// --- Addresses ---------------------------------------------------------------------------------------

constexpr std::uint64_t k_page = 4096, k_large = 2 << 20;

TEST(iova, stays_in_its_ranges_and_apart) {
  iova_ranges r({{0, 0xfedfffff}, {0xfef00000, (std::uint64_t{1} << 39) - 1}}, k_page);
  std::set<std::uint64_t> seen;
  for (int i = 0; i < 100; ++i) {
    const std::uint64_t at = r.take(64 << 20, 0x7f0012345000);
    EXPECT_NE(at, 0u);
    EXPECT_EQ(at % k_large, 0x7f0012345000 % k_large);
    EXPECT_TRUE(at + (64 << 20) <= 0xfee00000 || at >= 0xfef00000) << std::hex << at;
    for (const std::uint64_t other : seen) EXPECT_TRUE(at >= other + (64 << 20) || other >= at + (64 << 20));
    seen.insert(at);
  }
}

TEST(iova, is_given_back_and_used_up) {
  iova_ranges r({{0, 5 * k_page - 1}}, k_page);  // page 0 is not used
  const std::uint64_t a = r.take(2 * k_page, 0), b = r.take(2 * k_page, 0);
  EXPECT_NE(a, b);
  EXPECT_NE(refusal(XIO_ERR_NO_MEMORY, [&] { r.take(k_page, 0); }), "");
  r.give_back(a);
  r.give_back(a);  // twice is once
  EXPECT_EQ(r.take(2 * k_page, 0), a);
  EXPECT_NE(refusal(XIO_ERR_NO_MEMORY, [&] { r.take(~std::uint64_t{0} - k_page + 1, k_large - k_page); }), "");
}

TEST(iova, takes_odd_ranges) {
  iova_ranges r({{3, 2}, {0x1001, 0x1fff}, {0x3000, 0x3fff}, {~std::uint64_t{0}, ~std::uint64_t{0}}}, k_page);
  EXPECT_EQ(r.take(k_page, 0), 0x3000u);
  EXPECT_NE(refusal(XIO_ERR_NO_MEMORY, [&] { r.take(k_page, 0); }), "");
}

// VFIO_IOMMU_GET_INFO, linux/vfio.h: a header, then capabilities that point to one another.
struct info {
  info() : bytes(512) {}
  template <class T>
  void put(std::size_t at, const T& value) {
    std::memcpy(&bytes[at], &value, sizeof value);
  }
  void head(std::uint32_t flags, std::uint32_t first) {
    vfio_iommu_type1_info h{};
    h.argsz = 512;
    h.flags = flags;
    h.cap_offset = first;
    put(0, h);
  }
  void ranges(std::uint32_t at, std::uint32_t next, std::uint32_t count) {
    vfio_iommu_type1_info_cap_iova_range list{};
    list.header.id = VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE;
    list.header.version = 1;
    list.header.next = next;
    list.nr_iovas = count;
    put(at, list);
  }
  std::vector<std::byte> bytes;
};

TEST(iova, is_read_from_the_kernels_reply) {
  info i;
  i.head(VFIO_IOMMU_INFO_CAPS, 64);
  i.put(64, vfio_info_cap_header{VFIO_IOMMU_TYPE1_INFO_CAP_MIGRATION, 1, 128});
  i.ranges(128, 0, 2);
  i.put(128 + sizeof(vfio_iommu_type1_info_cap_iova_range), vfio_iova_range{0x0, 0xfedfffff});
  i.put(144 + sizeof(vfio_iommu_type1_info_cap_iova_range), vfio_iova_range{0xfef00000, 0xffffffffff});
  const auto r = read_iova_ranges(i.bytes);
  ASSERT_EQ(r.size(), 2u);
  EXPECT_PAIRS((r[0].first, 0u), (r[0].last, 0xfedfffffu), (r[1].first, 0xfef00000u), (r[1].last, 0xffffffffffu));
}

TEST(iova, has_a_default_where_the_reply_says_nothing) {
  info none, loop, beyond, many;
  loop.head(VFIO_IOMMU_INFO_CAPS, 64);
  loop.put(64, vfio_info_cap_header{9, 1, 64});
  beyond.head(VFIO_IOMMU_INFO_CAPS, 508);
  many.head(VFIO_IOMMU_INFO_CAPS, 490);
  many.ranges(490, 0, 0xffffffff);
  for (const info* i : {&none, &loop, &beyond, &many}) {
    const auto r = read_iova_ranges(i->bytes);
    ASSERT_EQ(r.size(), 2u);
    EXPECT_LT(r[0].last, 0xfee00000u);
    EXPECT_GT(r[1].first, 0xfeefffffu);
  }
  EXPECT_EQ(read_iova_ranges({}).size(), 2u);
}

// --- Windows of other devices ------------------------------------------------------------------------

// A function with memory in BAR 2 and registers in BAR 0, as Linux 6.12 shows one, and nothing against it.
struct lender_tree : sysfs_tree {
  lender_tree() {
    file(at + "/class", "0x050000\n");
    file(at + "/enable", "0\n");
    config('\x02');
    file(at + "/resource",
         "0x00000000fe800000 0x00000000fe807fff 0x0000000000040200\n"
         "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
         "0x000000c000000000 0x000000c000007fff 0x000000000014220c\n"
         "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
         "0x000000000000c000 0x000000000000c0ff 0x0000000000040101\n"
         "0x0000000000000000 0x0000000000000000 0x0000000000000000\n");
    for (const char* bar : {"0", "2", "4"}) file(at + "/resource" + bar, std::string(8 * k_page, '\xee'));
  }
  void config(char command) const {
    std::string bytes(64, '\0');
    bytes[4] = command;
    file(at + "/config", bytes);
  }
  std::string bytes_of(const std::string& name) const {
    std::ifstream in(root + at + name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // Refused, with a word of it, and nothing was touched.
  void refuses(const char* bar, const char* word) const {
    const std::string enabled = bytes_of("/enable");
    const std::string why = refusal(XIO_ERR_CONFIG, [&] { vfio_lender(std::string("0000:0a:00.0/") + bar, root); });
    expect_words(why, {word});
    EXPECT_EQ(bytes_of("/enable"), enabled);
    for (const char* each : {"0", "2", "4"})
      EXPECT_EQ(bytes_of(std::string("/resource") + each), std::string(8 * k_page, '\xee')) << each;
  }
  const std::string at = "/sys/bus/pci/devices/0000:0a:00.0";
};

TEST(lender, refuses_what_somebody_has_or_is_registers) {
  const lender_tree t;
  t.refuses("0", "not prefetchable");
  t.refuses("4", "not prefetchable");
  t.refuses("1", "not prefetchable");
  t.link(t.at + "/driver", "../../../../bus/pci/drivers/nvme");
  t.refuses("2", "the driver nvme has");
  std::filesystem::remove(t.root + t.at + "/driver");
  t.file(t.at + "/class", "0x010802\n");
  t.refuses("2", "NVMe controller");
}

TEST(lender, refuses_what_cannot_be_enabled) {
  const lender_tree t;
  t.config('\0');
  expect_words(refusal(XIO_ERR_CONFIG, [&] { vfio_lender("0000:0a:00.0/2", t.root); }), {"could not be enabled"});
  EXPECT_EQ(t.bytes_of("/resource2"), std::string(8 * k_page, '\xee'));
}

TEST(lender, hands_out_pages_of_a_window) {
  const lender_tree t;
  vfio_lender l("0000:0a:00.0/2", t.root);
  auto* a = static_cast<unsigned char*>(l.lend(3 * k_page));
  auto* b = static_cast<unsigned char*>(l.lend(1));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % k_page, 0u);
  for (std::size_t i = 0; i < 3 * k_page; ++i) ASSERT_EQ(a[i], 0) << i;
  EXPECT_TRUE(b >= a + 3 * k_page || b + k_page <= a);
  EXPECT_EQ(b[k_page - 1], 0);
  EXPECT_NE(refusal(XIO_ERR_NO_MEMORY, [&] { l.lend(5 * k_page); }), "");
  EXPECT_NE(refusal(XIO_ERR_NO_MEMORY, [&] { l.lend(~std::size_t{0}); }), "");
  l.take_back(a);
  EXPECT_NE(l.lend(3 * k_page), nullptr);
}

TEST(lender, refuses_what_is_no_window) {
  const lender_tree t;
  t.file(t.at + "/resource2", "");
  for (const char* where : {"0000:0a:00.0", "0000:0a:00.0/6", "../0000:0a:00.0/2", "", "0000:0a:00.0/2",
                            "0000:0a:00.0/1", "0000:0b:00.0/2"})
    EXPECT_NE(refusal(XIO_ERR_CONFIG, [&] { vfio_lender l(where, t.root); }), "") << where;
}

// --- A running controller ----------------------------------------------------------------------------

// CSTS, NVMe base 2.0, 3.1.3.6: ready 0, fatal 1.
TEST(watch, reads_the_status) {
  EXPECT_EQ(trouble_of(0x1), "");
  EXPECT_EQ(trouble_of(0x21), "");  // paused
  EXPECT_NE(trouble_of(0x0).find("reset"), std::string::npos);
  EXPECT_NE(trouble_of(0x3).find("fatal"), std::string::npos);
  EXPECT_NE(trouble_of(0xffffffff).find("gone"), std::string::npos);
}

// --- The whole -----------------------------------------------------------------------------------------

TEST(vfio_open, refuses_what_no_machine_has) {
  progress::machine machine(1);
  const options o = options::defaults();
  const xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  const std::string why =
      refusal(XIO_ERR_ARG, [&] { open_controller("nvme:ffff:ff:1f.7/1", attr, o, machine, gpu::payload()); });
  expect_words(why, {"no PCI function ffff:ff:1f.7"});
}

TEST(vfio_open, is_hardware) {
  progress::machine machine(1);
  options o = options::defaults();
  o.backend = xio::option::backend::model;
  const xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  EXPECT_NE(refusal(XIO_ERR_UNSUPPORTED, [&] { open_controller(k_name, attr, o, machine, gpu::payload()); }), "");
}

}  // namespace
}  // namespace xio::nvme
