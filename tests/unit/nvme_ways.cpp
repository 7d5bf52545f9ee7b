// SPDX-License-Identifier: MIT
// The address space that the drives of a process share, and which of the two ways leads to it.

#include "played_vfio.hpp"
#include "refusal.hpp"
#include "sysfs_tree.hpp"
#include "transport/nvme/vfio_space.hpp"

namespace xio::nvme {
namespace {

using namespace played_vfio;
using test::refusal;
using test::sysfs_tree;

// --- One domain for a process ------------------------------------------------------------------------

std::unique_ptr<vfio_iommu> made(vfio_way way, played& k) { return make_iommu(way, k, k_name); }

struct space : testing::TestWithParam<vfio_way> {
  space() : s(made(GetParam(), k)), handles(s.admit(k_place)) {}
  unsigned long map_request() const { return GetParam() == vfio_way::type1 ? type1_map_dma : ioas_map; }
  unsigned long unmap_request() const { return GetParam() == vfio_way::type1 ? type1_unmap_dma : ioas_unmap; }
  long count(unsigned long request) const {
    const std::string end = " " + std::to_string(request);
    return std::count_if(k.asked.begin(), k.asked.end(), [&](const auto& line) { return line.ends_with(end); });
  }
  played k;
  vfio_space s;
  vfio_handles handles;
  alignas(4096) char memory[4 * 4096] = {};
};

TEST_P(space, maps_what_is_the_same_once) {
  const std::uint64_t first = s.map(memory + 100, 5000);
  EXPECT_PAIRS((first % 4096, 100u), (s.map(memory + 100, 5000), first), (count(map_request()), 1));
  EXPECT_NE(s.map(memory + 100, 200), first);
  // The longer one, by one of its two users and then by the other: the shorter one stays.
  s.unmap(memory + 100, 5000);
  EXPECT_EQ(count(unmap_request()), 0);
  s.unmap(memory + 100, 5000);
  EXPECT_EQ(count(unmap_request()), 1);
  s.unmap(memory + 100, 5000);  // once more than mapped
  EXPECT_EQ(count(unmap_request()), 1);
  EXPECT_EQ(s.map(memory + 100, 5000), first);
  EXPECT_EQ(count(map_request()), 3);
  s.unmap(memory + 100, 200);
  EXPECT_EQ(count(unmap_request()), 2);
}

TEST_P(space, gives_addresses_back_and_keeps_those_that_the_kernel_holds) {
  const std::uint64_t address = s.map(memory, 4096);
  s.unmap(memory, 4096);
  const auto map = k.replies[map_request()];
  k.refuse(map_request(), EFAULT);
  refusal(XIO_ERR_IO, [&] { s.map(memory, 4096); });
  k.replies[map_request()] = map;
  EXPECT_EQ(s.map(memory, 4096), address);
  k.refuse(unmap_request(), EIO);
  s.unmap(memory, 4096);
  EXPECT_NE(s.map(memory, 4096), address);
}

// Memory has one address for all drives of a process, so there is one way at a time.
TEST(one_space, is_shared_until_nobody_holds_it) {
  played k;
  auto first = vfio_space::get({vfio_way::type1, "", true}, k_name, k);
  EXPECT_EQ(vfio_space::get({vfio_way::iommufd, ""}, k_name, k), first);
  EXPECT_EQ(vfio_space::get({vfio_way::type1, "", true}, k_name, k), first);
  const std::string why = refusal(XIO_ERR_STATE, [&] { vfio_space::get({vfio_way::iommufd, "", true}, k_name, k); });
  EXPECT_TRUE(has(why, "other drives are open by type 1") && has(why, "asks for iommufd")) << why;
  EXPECT_EQ(k.still_open(), 1u);
  first.reset();
  EXPECT_EQ(k.still_open(), 0u);
  first = vfio_space::get({vfio_way::iommufd, "", true}, k_name, k);
  EXPECT_EQ(first->way(), vfio_way::iommufd);
}

INSTANTIATE_TEST_SUITE_P(both_ways, space, testing::Values(vfio_way::type1, vfio_way::iommufd),
                         [](const auto& p) { return p.param == vfio_way::type1 ? "type1" : "iommufd"; });

// --- Which way ---------------------------------------------------------------------------------------

struct way : testing::Test {
  way() {
    for (const char* file : {k_iommu, k_cdev, k_group}) t.file(file, "");
  }
  vfio_choice choose(const std::string& wanted, const std::string& cdev = k_cdev) {
    o.vfio_iommu = option::parse_word<option::vfio_iommu>(wanted, "a test");
    return choose_vfio_way(o, t.root, {k_name, "0000:3b:00.0", 17, cdev});
  }
  void remove(const char* path) const { std::filesystem::remove_all(t.root + path); }
  sysfs_tree t;
  options o = options::defaults();
};

TEST_F(way, auto_is_iommufd_where_it_is_whole) {
  EXPECT_PAIRS((options::defaults().vfio_iommu, option::vfio_iommu::automatic), (choose("auto").way, vfio_way::iommufd),
               (choose("auto").why, ""), (choose("auto", "").way, vfio_way::type1));
  EXPECT_TRUE(has(choose("auto", "").why, "no file in /dev/vfio/devices"));
  remove(k_iommu);
  EXPECT_PAIRS((choose("auto").way, vfio_way::type1), (choose("auto").why, "there is no /dev/iommu"));
  EXPECT_FALSE(choose("auto").forced);
}

// Memory of a PCI device is nothing that iommufd pins.
TEST_F(way, auto_is_type_1_for_queues_in_a_device) {
  o.nvme_queue_bar = "0000:0a:00.0/2";
  EXPECT_EQ(choose("auto").way, vfio_way::type1);
  EXPECT_TRUE(has(choose("auto").why, "XIO_NVME_QUEUE_BAR"));
}

TEST_F(way, auto_is_what_may_be_opened) {
  if (geteuid() == 0) GTEST_SKIP() << "root may open everything";
  std::filesystem::permissions(t.root + k_cdev, std::filesystem::perms::none);
  EXPECT_EQ(choose("auto").way, vfio_way::type1);
  EXPECT_TRUE(has(choose("auto").why, "may not open /dev/vfio/devices/vfio3"));
}

TEST_F(way, auto_is_iommufd_where_there_are_no_groups) {
  remove(k_iommu);
  remove(k_group);
  EXPECT_PAIRS((choose("auto").way, vfio_way::iommufd), (choose("auto", "").way, vfio_way::type1));
}

TEST_F(way, is_forced) {
  EXPECT_EQ(choose("type1").way, vfio_way::type1);
  remove(k_iommu);
  EXPECT_EQ(choose("iommufd").way, vfio_way::iommufd);
  EXPECT_TRUE(choose("iommufd").forced && choose("type1").forced);
}

TEST_F(way, finds_the_file_of_a_device) {
  const std::string folder = "/sys/bus/pci/devices/0000:3b:00.0/vfio-dev/";
  EXPECT_EQ(find_vfio_cdev(t.root, "0000:3b:00.0"), "");
  t.folder(folder + "vfio3");
  EXPECT_EQ(find_vfio_cdev(t.root, "0000:3b:00.0"), "");  // a kernel with groups only
  t.file(folder + "vfio3/dev", "244:3\n");
  EXPECT_EQ(find_vfio_cdev(t.root, "0000:3b:00.0"), k_cdev);
  remove((folder + "vfio3").c_str());
  for (const char* odd : {"vfio", "vfio-1", "vfio3x", "other3", "vfio99999999999"})
    t.file(folder + odd + "/dev", "1:1\n");
  EXPECT_EQ(find_vfio_cdev(t.root, "0000:3b:00.0"), "");
}

}  // namespace
}  // namespace xio::nvme
