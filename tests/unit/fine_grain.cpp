// SPDX-License-Identifier: MIT
// Whether the runtime has fine-grained memory on a GPU, and what the kernel says of that GPU: ROCR's rule
// (amd_gpu_agent.cpp, InitRegionList), and nodes as linux amdkfd kfd_topology.c prints them.
#include "gpu/fine_grain.hpp"

#include <fmt/core.h>

#include <filesystem>

#include "gpu/device_choice.hpp"
#include "says.hpp"
#include "topology/kfd_node.hpp"

namespace {

using xio::gpu::fine_grain_facts;
using xio::gpu::fine_grain_obstacle;
using xio::test::says;
using namespace xio::topology;

fine_grain_facts radeon(const std::string& arch, const std::string& forced = "") {
  fine_grain_facts f;
  f.arch = arch;
  f.hive = 0;
  f.forced = forced;
  return f;
}

TEST(fine_grain, is_missing_on_radeon_gpus_until_the_variable_is_1) {
  for (const char* arch : {"gfx1010", "gfx1030:xnack-", "gfx1036", "gfx1100", "gfx1102", "gfx1151", "gfx1201"}) {
    const auto no = fine_grain_obstacle(radeon(arch));
    ASSERT_TRUE(no) << arch;
    EXPECT_TRUE(says(*no, "set HSA_FORCE_FINE_GRAIN_PCIE=1 in the environment of every PE")) << *no;
    EXPECT_FALSE(says(*no, "xnack")) << *no;
    EXPECT_FALSE(fine_grain_obstacle(radeon(arch, "1"))) << arch;
  }
}

TEST(fine_grain, says_that_only_1_counts) {
  for (const char* value : {"0", "true", "yes", " 1", "11"}) {
    const auto no = fine_grain_obstacle(radeon("gfx1100", value));
    ASSERT_TRUE(no) << value;
    EXPECT_TRUE(says(*no, std::string("'") + value + "' is not 1")) << *no;
  }
}

TEST(fine_grain, is_no_matter_for_apus) {
  fine_grain_facts f = radeon("gfx1103");
  f.integrated = true;
  EXPECT_FALSE(fine_grain_obstacle(f));
}

TEST(fine_grain, is_there_on_instinct_gpus_unless_the_runtime_has_none) {
  fine_grain_facts f = radeon("gfx90a:sramecc+");
  f.hive = 0x1234;
  EXPECT_FALSE(fine_grain_obstacle(f));
  f.hive = 0;
  EXPECT_FALSE(fine_grain_obstacle(f)) << "it gave some, so it has some";
  f.allocates = false;
  ASSERT_TRUE(fine_grain_obstacle(f));
  EXPECT_TRUE(says(*fine_grain_obstacle(f), "set HSA_FORCE_FINE_GRAIN_PCIE=1"));
  f.forced = "1";
  ASSERT_TRUE(fine_grain_obstacle(f));
  EXPECT_TRUE(says(*fine_grain_obstacle(f), "although HSA_FORCE_FINE_GRAIN_PCIE is 1"));
  f.hive.reset();
  f.forced = "";
  EXPECT_TRUE(fine_grain_obstacle(f));
}

TEST(fine_grain, names_no_radeon_that_is_none) {
  for (const char* arch : {"gfx908", "gfx942", "gfx1300", "gfx11", "gfx11000", ""}) {
    fine_grain_facts f;
    f.arch = arch;
    EXPECT_FALSE(fine_grain_obstacle(f)) << arch;
  }
}

// --- The kernel's nodes ------------------------------------------------------------------------------

struct kfd_nodes : ::testing::Test {
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() / ("xio_kfd_" + std::to_string(getpid()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& where, const std::string& text) {
    const auto folder = root_ / "sys/class/kfd/kfd/topology/nodes" / where;
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "properties") << text;
  }
  auto find(const std::string& bus_id) { return find_kfd_node(root_.string(), bus_id); }

  std::filesystem::path root_;
};

// 0x4308 is bus 0x43, device 1, function 0.
constexpr const char* k_cpu = "cpu_cores_count 64\nsimd_count 0\nlocation_id 0\ndomain 0\n";
constexpr const char* k_gpu = "cpu_cores_count 0\nsimd_count 440\nlocation_id 17160\ndomain 1\nhive_id 77\n";

TEST_F(kfd_nodes, finds_a_gpu_by_its_place_on_the_bus) {
  write("0", k_cpu);
  write("1", k_gpu);
  write("1/io_links/0", "type 2\nnode_from 1\nnode_to 0\n");
  const auto node = find("0001:43:01.0");
  ASSERT_TRUE(node);
  EXPECT_EQ(node->hive, 77u);
  EXPECT_FALSE(node->has_cpu);
  EXPECT_FALSE(node->cpu_by_xgmi);
  EXPECT_FALSE(find("0000:43:01.0")) << "another domain";
  EXPECT_FALSE(find("0001:43:00.0"));
}

TEST_F(kfd_nodes, tells_xgmi_to_cpus_from_xgmi_to_gpus) {
  write("0", k_cpu);
  write("1", k_gpu);
  write("2", "cpu_cores_count 0\nsimd_count 440\nlocation_id 512\n");
  write("1/io_links/0", "type 11\nnode_from 1\nnode_to 2\n");
  EXPECT_FALSE(find("0001:43:01.0")->cpu_by_xgmi);
  write("1/io_links/1", "type 11\nnode_from 1\nnode_to 0\n");
  EXPECT_TRUE(find("0001:43:01.0")->cpu_by_xgmi);
}

// Three partitions of one GPU behind another GPU; 0x4308 and 17160 is bus 0x43, device 1.
TEST_F(kfd_nodes, partitions_are_one_function_and_several_nodes) {
  std::filesystem::create_directories(root_ / "sys/bus/pci/devices/0001:43:01.0");
  write("0", k_cpu);
  write("1", "simd_count 440\nlocation_id 512\n");
  for (int part = 0; part < 3; ++part)
    write(std::to_string(2 + part),
          "simd_count 152\ndomain 1\nhive_id 77\nlocation_id " + std::to_string(17160 + part));
  EXPECT_EQ(pci_function_of(root_, "0001:43:01.2"), "0001:43:01.0");
  EXPECT_FALSE(find_named_kfd_node(root_, "0001:43:01.0")) << "HIP 5.2 names all so";
  for (int part = 1; part < 3; ++part) {
    const auto named = find_named_kfd_node(root_, "0001:43:01." + std::to_string(part));
    ASSERT_TRUE(named) << part;
    EXPECT_PAIRS((named->number, 2u + static_cast<unsigned>(part)), (named->bus_id, "0001:43:01.0"),
                 (named->identity, "0001:43:01.0#" + std::to_string(2 + part)),
                 (find(named->identity)->number, named->number), (find(named->identity)->hive, 77u));
  }
  EXPECT_EQ(find("0000:02:00.0")->identity, "0000:02:00.0") << "a whole GPU";
  EXPECT_FALSE(find_named_kfd_node(root_, "0001:43:01.3")) << "no such partition";
  EXPECT_FALSE(find("0001:43:01.0#1")) << "another GPU's node";
}

// Some kernels have the partition in bits 31:28 of location_id, which HIP does not look at.
TEST_F(kfd_nodes, partitions_that_hip_names_alike_are_found_by_the_runtimes_number) {
  std::filesystem::create_directories(root_ / "sys/bus/pci/devices/0001:43:01.0");
  write("0", k_cpu);
  for (std::uint64_t part = 0; part < 64; ++part)
    write(std::to_string(1 + part),
          "simd_count 152\ndomain 1\nlocation_id " + std::to_string(17160 | (part & 15) << 28));
  EXPECT_FALSE(find_named_kfd_node(root_, "0001:43:01.0")) << "64 have that name";
  for (int n = 0; n <= 64; ++n)
    std::ofstream(root_ / "sys/class/kfd/kfd/topology/nodes" / std::to_string(n) / "gpu_id") << (n == 0 ? 0 : 100 + n);
  EXPECT_EQ(find_runtime_kfd_node(root_, 64)->identity, "0001:43:01.0#64");
  // Nodes that a device cgroup hides are not counted by the runtimes; their numbers stay the kernel's.
  std::filesystem::remove(root_ / "sys/class/kfd/kfd/topology/nodes/1/gpu_id");
  std::filesystem::remove(root_ / "sys/class/kfd/kfd/topology/nodes/3/gpu_id");
  EXPECT_EQ(find_runtime_kfd_node(root_, 1)->identity, "0001:43:01.0#2");
  EXPECT_EQ(find_runtime_kfd_node(root_, 2)->identity, "0001:43:01.0#4");
  EXPECT_FALSE(find_runtime_kfd_node(root_, 63));
}

// Functions that do exist are no partitions: virtual ones of a guest.
TEST_F(kfd_nodes, a_virtual_function_keeps_its_name) {
  for (const char* f : {"0001:43:01.0", "0001:43:01.1"})
    std::filesystem::create_directories(root_ / "sys/bus/pci/devices" / f);
  write("0", k_cpu);
  write("1", "simd_count 440\ndomain 1\nlocation_id 17160\n");
  write("2", "simd_count 440\ndomain 1\nlocation_id 17161\n");
  EXPECT_EQ(pci_function_of(root_, "0001:43:01.1"), "0001:43:01.1");
  EXPECT_EQ(find("0001:43:01.1")->identity, "0001:43:01.1");
  EXPECT_EQ(find_named_kfd_node(root_, "0001:43:01.0")->number, 1u);
}

TEST_F(kfd_nodes, sees_an_apu) {
  write("0", "cpu_cores_count 16\nsimd_count 24\nlocation_id 1536\ndomain 0\n");
  ASSERT_TRUE(find("0000:06:00.0"));
  EXPECT_TRUE(find("0000:06:00.0")->has_cpu);
}

TEST_F(kfd_nodes, say_which_file_keeps_the_runtime_from_every_gpu) {
  namespace fs = std::filesystem;
  const fs::path topology = root_ / "sys/class/kfd/kfd/topology", system = root_ / "sys/devices/system";
  const auto missing = [&] { return missing_for_runtime(root_).value_or(""); };
  EXPECT_TRUE(says(missing(), "/dev/kfd cannot be opened (No such file or directory)")) << missing();
  fs::create_directories(root_ / "dev/dri");
  std::ofstream(root_ / "dev/kfd") << "";
  EXPECT_TRUE(says(missing(), "topology/system_properties cannot be opened")) << missing();
  write("0", k_cpu);
  std::ofstream(topology / "system_properties") << "platform_oem 0\n";
  EXPECT_TRUE(says(missing(), "there is no GPU in /sys/class/kfd/kfd/topology/nodes")) << missing();
  for (int gpu = 1; gpu <= 2; ++gpu)
    write(std::to_string(gpu), k_gpu + fmt::format("drm_render_minor {}\n", 127 + gpu));
  EXPECT_TRUE(says(missing(), "/dev/dri/renderD129 cannot be opened")) << missing();
  std::ofstream(root_ / "dev/dri/renderD128") << "";
  EXPECT_TRUE(says(missing(), "there is no /sys/devices/system/node/node0/cpu*/cache/index0")) << missing();
  write("0", std::string("caches_count 2\n") + k_cpu);
  EXPECT_EQ(missing(), "") << "the driver describes them";
  write("0", k_cpu);
  // A kernel without NUMA has the folder of all processors alone.
  fs::create_directories(system / "cpu/cpu0/cache/index0");
  EXPECT_EQ(missing(), "");
  fs::create_directories(system / "node/node0/cpu0");
  EXPECT_TRUE(says(missing(), "node0/cpu*/cache/index0")) << missing();
  fs::create_directories(system / "node/node0/cpu0/cache/index0");
  EXPECT_EQ(missing(), "");
}

TEST_F(kfd_nodes, survives_what_no_kernel_writes) {
  EXPECT_FALSE(find("0000:06:00.0")) << "no folder";
  write("0", "");
  write("1", std::string(100000, 'x') + "\nsimd_count\nsimd_count -1\nsimd_count 99999999999999999999999\n\n \n");
  write("2", "simd_count 4\nlocation_id 1536\n");
  write("2/io_links/0", "type 11\nnode_to 18446744073709551615\n");
  for (const char* id : {"", "x", "0000:06", "zz:zz:zz.z", "0000:06:00"}) EXPECT_FALSE(find(id)) << id;
  ASSERT_TRUE(find("0000:06:00.0"));
  EXPECT_FALSE(find("0000:06:00.0")->cpu_by_xgmi);
}

// Which GPU a PE takes: what hipSetDevice chose before xio_init stays.
static_assert(xio::gpu::choose_device(0, false, 5, 4) == 1);
static_assert(xio::gpu::choose_device(0, false, -1, 4) == 0);
static_assert(xio::gpu::choose_device(3, false, 1, 4) == 3);
static_assert(xio::gpu::choose_device(0, true, 1, 4) == 0);
static_assert(xio::gpu::choose_device(2, true, 1, 4) == 2);
static_assert(xio::gpu::choose_device(0, false, 1, 0) == 0);

}  // namespace
