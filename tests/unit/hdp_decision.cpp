// SPDX-License-Identifier: MIT
// The choice of the way by which the host data path is flushed: the table of docs/hdp.md, GPU by GPU.
#include "memory/hdp.hpp"
#include "refusal.hpp"
#include "says.hpp"

namespace {

using xio::dev::hdp_way;
using namespace xio::memory;
using xio::test::says;

// A discrete GPU in a PC of today, with all that could flush it.
hdp_facts gpu_facts(const std::string& arch, hdp_link link = hdp_link::pcie) {
  hdp_facts f;
  f.arch = arch;
  f.link = link;
  f.register_mapped = f.kernels_store = f.large_bar = f.nic = f.sdma = true;
  return f;
}

namespace option = xio::option;

option::hdp wished(std::string_view wish) { return option::parse_word<option::hdp>(wish, "XIO_HDP"); }

hdp_way automatic(const hdp_facts& f) { return decide_hdp(f, option::hdp::automatic).way; }

std::string why(const hdp_facts& f, const std::string& wish = "auto") { return decide_hdp(f, wished(wish)).reason; }

std::string refusal(const hdp_facts& f, const std::string& wish) {
  return xio::test::refusal(XIO_ERR_UNSUPPORTED, [&] { decide_hdp(f, wished(wish)); });
}

// linux amdgpu_device.c, amdgpu_device_flush_hdp; RCCL for gfx90a and newer.
TEST(hdp_decision, knows_which_gpus_hold_writes_back) {
  for (const char* arch : {"gfx900", "gfx906:sramecc+:xnack-", "gfx908", "gfx1010", "gfx1030", "gfx1036", "gfx1100",
                           "gfx1151", "gfx1200", "gfx1201", "gfx950"})
    EXPECT_EQ(automatic(gpu_facts(arch)), hdp_way::device) << arch;
  for (const char* arch : {"gfx90a", "gfx90a:sramecc+:xnack-", "gfx940", "gfx941", "gfx942:sramecc+"})
    EXPECT_EQ(automatic(gpu_facts(arch)), hdp_way::none) << arch;
  EXPECT_TRUE(says(why(gpu_facts("gfx942:sramecc+")), "gfx942 does not hold back"));
  EXPECT_TRUE(says(why(gpu_facts("gfx1030")), "gfx1030 on PCIe holds back what comes through its BAR"));
}

TEST(hdp_decision, flushes_what_it_does_not_know) {
  for (const char* arch : {"gfx1300", "gfx9", "gfx", "", "gfxzz0", "gfx123456"})
    EXPECT_EQ(automatic(gpu_facts(arch)), hdp_way::device) << arch;
}

TEST(hdp_decision, leaves_memory_alone_that_no_bar_leads_to) {
  for (const char* arch : {"gfx90a", "gfx908", "gfx950"}) {
    EXPECT_EQ(automatic(gpu_facts(arch, hdp_link::xgmi)), hdp_way::none) << arch;
    EXPECT_TRUE(says(why(gpu_facts(arch, hdp_link::xgmi)), "xGMI"));
  }
  for (const char* arch : {"gfx942", "gfx1103", "gfx902"})
    EXPECT_EQ(automatic(gpu_facts(arch, hdp_link::apu)), hdp_way::none) << arch;
  hdp_facts guest = gpu_facts("gfx1103", hdp_link::apu);
  guest.virtual_machine = true;
  EXPECT_EQ(automatic(guest), hdp_way::device);
  EXPECT_TRUE(says(why(guest), "passed through"));
  // A discrete GPU in a virtual machine is not taken for an APU.
  guest = gpu_facts("gfx90a");
  guest.virtual_machine = true;
  EXPECT_EQ(automatic(guest), hdp_way::none);
}

TEST(hdp_decision, has_nothing_to_flush_without_such_a_gpu) {
  for (const char* arch : {"host", "sm_90", "sm_100"}) {
    hdp_facts f;
    f.arch = arch;
    EXPECT_EQ(automatic(f), hdp_way::none);
    EXPECT_TRUE(says(why(f), "(" + std::string(arch) + ") has no host data path")) << why(f);
  }
}

TEST(hdp_decision, falls_back_in_order) {
  hdp_facts f = gpu_facts("gfx1100");
  EXPECT_EQ(automatic(f), hdp_way::device);
  f.kernels_store = false;
  EXPECT_EQ(automatic(f), hdp_way::sdma);
  EXPECT_TRUE(says(why(f), "not device since kernels may not store to its register")) << why(f);
  f.sdma = false;
  EXPECT_EQ(automatic(f), hdp_way::rdma_read);
  f.nic = false;
  EXPECT_EQ(automatic(f), hdp_way::host);
  f.register_mapped = false;
  EXPECT_EQ(automatic(f), hdp_way::readback);
  f.large_bar = false;
  const std::string no = refusal(f, "auto");
  EXPECT_TRUE(says(no, "XIO_HDP=none")) << no;
  EXPECT_TRUE(says(no, "not readback since the CPU does not see all")) << no;
}

// linux kfd_chardev.c: no MMIO_REMAP where PAGE_SIZE is above 4096.
TEST(hdp_decision, reads_back_where_pages_are_not_4_k) {
  for (const std::uint64_t page : {16384u, 65536u}) {
    hdp_facts f = gpu_facts("gfx906");
    f.page_bytes = page;
    f.register_mapped = f.kernels_store = false;
    EXPECT_EQ(automatic(f), hdp_way::readback);
    EXPECT_TRUE(says(why(f), "pages of " + std::to_string(page))) << why(f);
    f.large_bar = false;
    EXPECT_EQ(automatic(f), hdp_way::sdma);
    // A GPU that needs none needs none there either.
    f.arch = "gfx90a";
    EXPECT_EQ(automatic(f), hdp_way::none);
    // Should a kernel give the register after all, it is used.
    f = gpu_facts("gfx906");
    f.page_bytes = page;
    EXPECT_EQ(automatic(f), hdp_way::device);
  }
}

TEST(hdp_decision, takes_every_way_that_is_asked_for_and_can_be) {
  for (const auto& [wish, way] : {std::pair{"none", hdp_way::none},
                                  {"device", hdp_way::device},
                                  {"host", hdp_way::host},
                                  {"sdma", hdp_way::sdma},
                                  {"rdma-read", hdp_way::rdma_read},
                                  {"readback", hdp_way::readback}}) {
    EXPECT_EQ(decide_hdp(gpu_facts("gfx1030"), wished(wish)).way, way);
    EXPECT_EQ(decide_hdp(gpu_facts("gfx942"), wished(wish)).way, way) << "not needed, and asked for all the same";
    EXPECT_TRUE(says(why(gpu_facts("gfx942"), wish), std::string("XIO_HDP=") + wish + " asks for it"));
  }
}

TEST(hdp_decision, refuses_what_cannot_be) {
  hdp_facts f;
  f.arch = "gfx1030";
  f.link = hdp_link::pcie;
  EXPECT_TRUE(says(refusal(f, "device"), "the driver has not mapped its register"));
  EXPECT_TRUE(says(refusal(f, "host"), "the driver has not mapped its register"));
  EXPECT_TRUE(says(refusal(f, "readback"), "no large BAR"));
  EXPECT_TRUE(says(refusal(f, "sdma"), "no copy queue"));
  EXPECT_TRUE(says(refusal(f, "rdma-read"), "no RDMA device"));
  for (const char* wish : {"device", "host", "readback", "sdma", "rdma-read"})
    EXPECT_TRUE(says(refusal(f, wish), std::string("XIO_HDP=") + wish + " cannot be on gfx1030"));
  f.page_bytes = 65536;
  EXPECT_TRUE(says(refusal(f, "device"), "pages of 65536 bytes"));
  f.register_mapped = true;
  EXPECT_TRUE(says(refusal(f, "device"), "kernels may not store"));
  EXPECT_EQ(decide_hdp(f, option::hdp::host).way, hdp_way::host);
}

// Stand-ins for the register and the line make every branch one that can be run anywhere.
TEST(hdp_decision, forces_ways_without_such_a_gpu) {
  hdp_facts f;
  f.nic = f.sdma = true;
  for (const char* wish : {"device", "host", "readback", "sdma", "rdma-read"})
    EXPECT_STREQ(xio::memory::hdp_way_name(decide_hdp(f, wished(wish)).way), wish);
  f.nic = f.sdma = false;
  EXPECT_TRUE(says(refusal(f, "sdma"), "no copy queue"));
}

// A NIC's read pushes that NIC's writes to memory. A drive's writes come another way, so its flush is chosen apart.
TEST(hdp_decision, has_a_way_of_its_own_for_drives_behind_a_nics_read) {
  hdp_facts f = gpu_facts("gfx1100");
  EXPECT_EQ(decide_hdp(f, option::hdp::rdma_read).storage, hdp_way::device);
  f.kernels_store = false;
  EXPECT_EQ(decide_hdp(f, option::hdp::rdma_read).storage, hdp_way::host);
  f.register_mapped = false;
  EXPECT_EQ(decide_hdp(f, option::hdp::rdma_read).storage, hdp_way::readback);
  f.large_bar = false;
  EXPECT_EQ(decide_hdp(f, option::hdp::rdma_read).storage, hdp_way::rdma_read);
  for (const char* wish : {"device", "host", "sdma", "none"})
    EXPECT_EQ(decide_hdp(gpu_facts("gfx1100"), wished(wish)).storage,
              decide_hdp(gpu_facts("gfx1100"), wished(wish)).way);
}

}  // namespace
