// SPDX-License-Identifier: MIT
// hsakmt_driver.cpp over a libhsakmt of this file, which keeps the rules of the true one (libhsakmt src/openclose.c,
// src/topology.c): opening is counted; the topology's snapshot is one for the whole process and not counted, and
// without it every call that names a node returns HSAKMT_STATUS_INVALID_NODE_UNIT.

// The driver is compiled here, so that its calls find the functions below and no library.
#include "../../src/transport/sdma/hsakmt_driver.cpp"  // NOLINT
#include "../gtest.hpp"
#include "transport/sdma/kfd_engine.hpp"

namespace {

struct library {
  int opened = 0;
  bool snapshot = false;
  int releases = 0;
  std::map<void*, std::size_t> memory;
  std::map<HSA_QUEUEID, std::uint32_t> queues;  // and their node
  alignas(4096) HSAuint64 words[64] = {};
};

library g_library;

constexpr std::uint32_t k_gpu_node = 1;

HSAKMT_STATUS check_node(std::uint32_t node) {
  if (g_library.opened == 0) return HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED;
  return g_library.snapshot && node < 2 ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_INVALID_NODE_UNIT;
}

}  // namespace

extern "C" {

HSAKMT_STATUS HSAKMTAPI hsaKmtOpenKFD(void) {
  return g_library.opened++ == 0 ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_KERNEL_ALREADY_OPENED;
}
HSAKMT_STATUS HSAKMTAPI hsaKmtCloseKFD(void) {
  if (g_library.opened == 0) return HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED;
  --g_library.opened;
  return HSAKMT_STATUS_SUCCESS;
}
HSAKMT_STATUS HSAKMTAPI hsaKmtAcquireSystemProperties(HsaSystemProperties* out) {
  if (g_library.opened == 0) return HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED;
  g_library.snapshot = true;
  *out = {};
  out->NumNodes = 2;
  return HSAKMT_STATUS_SUCCESS;
}
HSAKMT_STATUS HSAKMTAPI hsaKmtReleaseSystemProperties(void) {
  g_library.snapshot = false;
  ++g_library.releases;
  return HSAKMT_STATUS_SUCCESS;
}
HSAKMT_STATUS HSAKMTAPI hsaKmtGetNodeProperties(HSAuint32 node, HsaNodeProperties* out) {
  const HSAKMT_STATUS s = check_node(node);
  if (s != HSAKMT_STATUS_SUCCESS) return s;
  *out = {};
  if (node != k_gpu_node) return s;
  out->NumFComputeCores = 64;
  out->LocationId = 0xc100;
  out->NumSdmaEngines = 2;
  out->NumSdmaQueuesPerEngine = 2;
  return s;
}
HSAKMT_STATUS HSAKMTAPI hsaKmtGetNodeIoLinkProperties(HSAuint32 node, HSAuint32, HsaIoLinkProperties*) {
  return check_node(node);
}
HSAKMT_STATUS HSAKMTAPI hsaKmtAllocMemory(HSAuint32 node, HSAuint64 bytes, HsaMemFlags, void** out) {
  const HSAKMT_STATUS s = check_node(node);
  if (s != HSAKMT_STATUS_SUCCESS) return s;
  *out = std::aligned_alloc(xio::gpu::page_size(), bytes);
  g_library.memory[*out] = bytes;
  return s;
}
HSAKMT_STATUS HSAKMTAPI hsaKmtFreeMemory(void* at, HSAuint64 bytes) {
  const auto found = g_library.memory.find(at);
  if (found == g_library.memory.end() || found->second != bytes) return HSAKMT_STATUS_INVALID_PARAMETER;
  g_library.memory.erase(found);
  std::free(at);
  return HSAKMT_STATUS_SUCCESS;
}
HSAKMT_STATUS HSAKMTAPI hsaKmtMapMemoryToGPUNodes(void*, HSAuint64, HSAuint64*, HsaMemMapFlags, HSAuint64,
                                                  HSAuint32* nodes) {
  return check_node(nodes[0]);
}
HSAKMT_STATUS HSAKMTAPI hsaKmtUnmapMemoryToGPU(void*) { return HSAKMT_STATUS_SUCCESS; }

HSAKMT_STATUS HSAKMTAPI hsaKmtCreateQueue(HSAuint32 node, HSA_QUEUE_TYPE, HSAuint32, HSA_QUEUE_PRIORITY, void* ring,
                                          HSAuint64 bytes, HsaEvent*, HsaQueueResource* out) {
  const HSAKMT_STATUS s = check_node(node);
  if (s != HSAKMT_STATUS_SUCCESS) return s;
  EXPECT_EQ(g_library.memory.at(ring), bytes);
  const HSA_QUEUEID id = g_library.queues.size() + 1;
  g_library.queues[id] = node;
  out->QueueId = id;
  out->Queue_DoorBell_aql = &g_library.words[2 * id];
  out->Queue_write_ptr_aql = &g_library.words[2 * id + 1];
  return s;
}
#if HAVE_HSAKMT_QUEUE_BY_ENGINE
HSAKMT_STATUS HSAKMTAPI hsaKmtCreateQueueExt(HSAuint32 node, HSA_QUEUE_TYPE type, HSAuint32 share,
                                             HSA_QUEUE_PRIORITY priority, HSAuint32, void* ring, HSAuint64 bytes,
                                             HsaEvent* event, HsaQueueResource* out) {
  return hsaKmtCreateQueue(node, type, share, priority, ring, bytes, event, out);
}
#endif
HSAKMT_STATUS HSAKMTAPI hsaKmtDestroyQueue(HSA_QUEUEID id) {
  return g_library.queues.erase(id) == 1 ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_INVALID_HANDLE;
}

}  // extern "C"

namespace xio::sdma {
namespace {

struct sdma_hsakmt : testing::Test {
  void SetUp() override { g_library = {}; }
  void TearDown() override {
    EXPECT_TRUE(g_library.memory.empty());
    EXPECT_TRUE(g_library.queues.empty());
  }

  static std::unique_ptr<engine> open_engine() {
    return open_kfd_engine(options::defaults(), open_hsakmt(), {"gfx942", "0000:c1:00.0"});
  }
  static std::unique_ptr<queue> make_queue(engine& e) {
    return e.create_queue({static_cast<std::uint32_t>(gpu::page_size() / 64), 0, -1, 0, false});
  }
};

TEST_F(sdma_hsakmt, what_follows_the_look_at_the_topology_is_not_refused) {
  auto driver = open_hsakmt();
  ASSERT_EQ(driver->gpus().size(), 1u);
  EXPECT_TRUE(g_library.snapshot) << "the library refuses memory and queues without it";
  void* ring = nullptr;
  ASSERT_NO_THROW(ring = driver->allocate_ring(k_gpu_node, gpu::page_size(), gpu::place::shared));
  kfd_queue q;
  ASSERT_NO_THROW(q = driver->create_queue(k_gpu_node, {}, ring, gpu::page_size()));
  EXPECT_NE(q.doorbell, nullptr);
  EXPECT_NE(q.wptr, nullptr);
  driver->destroy_queue(q.id);
  driver->free_ring(ring, gpu::page_size());
  driver.reset();
  EXPECT_FALSE(g_library.snapshot) << "nobody else uses it: it goes back";
  EXPECT_EQ(g_library.opened, 0);
}

TEST_F(sdma_hsakmt, an_engine_makes_queues) {
  auto e = open_engine();
  std::unique_ptr<queue> q;
  ASSERT_NO_THROW(q = make_queue(*e));
  EXPECT_EQ(q->view().sdma.doorbell, g_library.words + 2);
  EXPECT_EQ(g_library.queues.at(1), k_gpu_node);
}

TEST_F(sdma_hsakmt, the_end_of_one_engine_leaves_the_other_its_topology) {
  auto first = open_engine();
  auto second = open_engine();
  first.reset();
  ASSERT_TRUE(g_library.snapshot);
  std::unique_ptr<queue> q;
  EXPECT_NO_THROW(q = make_queue(*second));
  q.reset();
  second.reset();
  EXPECT_PAIRS((g_library.releases, 1), (g_library.opened, 0));
}

// HIP's runtime is one that has the library open all the time, where it is a shared library.
TEST_F(sdma_hsakmt, a_runtime_that_was_there_before_keeps_its_topology) {
  HsaSystemProperties seen{};
  ASSERT_EQ(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS);
  ASSERT_EQ(hsaKmtAcquireSystemProperties(&seen), HSAKMT_STATUS_SUCCESS);
  auto e = open_engine();
  auto q = make_queue(*e);
  q.reset();
  e.reset();
  HsaNodeProperties node{};
  EXPECT_EQ(hsaKmtGetNodeProperties(k_gpu_node, &node), HSAKMT_STATUS_SUCCESS);
  EXPECT_EQ(g_library.opened, 1);
  // And a second engine of the process finds all as the first did.
  EXPECT_NO_THROW(make_queue(*open_engine()));
}

TEST_F(sdma_hsakmt, a_gpu_that_is_not_there_leaves_nothing_open) {
  EXPECT_THROW(open_kfd_engine(options::defaults(), open_hsakmt(), {"gfx942", "0000:c2:00.0"}), error);
  EXPECT_EQ(g_library.opened, 0);
  EXPECT_FALSE(g_library.snapshot);
}

}  // namespace
}  // namespace xio::sdma
