// SPDX-License-Identifier: MIT
// kfd_driver.hpp by libhsakmt. The arguments follow libhsakmt include/hsakmt/hsakmt.h, src/queues.c, src/memory.c.
#include "config.h"
#include "transport/sdma/kfd_driver.hpp"

#if HAVE_HSAKMT_HSAKMT_H
#include <hsakmt/hsakmt.h>
#else
#include <hsakmt.h>
#endif
#include <unistd.h>

#include <mutex>

#include "base/error.hpp"
#include "base/log.hpp"
#include "topology/kfd_node.hpp"

namespace xio::sdma {
namespace {

constexpr std::uint32_t k_most_nodes = 4096;
constexpr std::uint32_t k_most_links = 4096;

void check(HSAKMT_STATUS s, const char* what, std::uint32_t node) {
  if (s == HSAKMT_STATUS_SUCCESS) return;
  const bool full = s == HSAKMT_STATUS_NO_MEMORY || s == HSAKMT_STATUS_OUT_OF_RESOURCES;
  fail(full ? XIO_ERR_NO_MEMORY : XIO_ERR_IO, "{} on KFD node {}: libhsakmt returns {}{}", what, node,
       static_cast<int>(s), full ? ", nothing is free; use fewer queues" : "; dmesg may say more");
}

// location_id: bus in [15:8], device and function below (linux amdkfd kfd_topology.c).
std::string bus_id_of(const HsaNodeProperties& p) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", p.Domain, p.LocationId >> 8 & 0xff, p.LocationId >> 3 & 0x1f,
                     p.LocationId & 7);
}

// Older headers do not name the mask; the kernel's files do.
std::uint64_t recommended_engines(const HsaIoLinkProperties& link, std::uint32_t node, std::uint32_t number) {
#if HAVE_HSAKMT_RECOMMENDED_ENGINES
  static_cast<void>(node);
  static_cast<void>(number);
  return link.RecSdmaEngIdMask;
#else
  static_cast<void>(link);
  return topology::recommended_engines("", node, number);
#endif
}

// How many drivers of this process hold libhsakmt open.
struct holders {
  std::mutex lock;
  unsigned count = 0;
  bool shared = false;  // somebody else, such as the HIP runtime, had it open before the first of them
};

holders& all_holders() {
  static holders h;
  return h;
}

// libhsakmt counts its openings, and not the users of its snapshot of the topology. There is one in a
// process, and every call that names a node needs it: memory, doorbells and queues are refused once it is gone. So it
// stays until the last of our drivers closes, and for ever where the HIP runtime had the same library open.
class opened {
 public:
  opened() {
    holders& all = all_holders();
    const std::lock_guard hold(all.lock);
    const HSAKMT_STATUS s = hsaKmtOpenKFD();
    if (s == HSAKMT_STATUS_SUCCESS || s == HSAKMT_STATUS_KERNEL_ALREADY_OPENED) {
      if (all.count++ == 0) all.shared = s == HSAKMT_STATUS_KERNEL_ALREADY_OPENED;
      return;
    }
    const int err = access("/dev/kfd", R_OK | W_OK) == 0 ? 0 : errno;
    fail(XIO_ERR_UNSUPPORTED, "queues of the GPU's copy engines need /dev/kfd, and it cannot be opened ({}); {}",
         err != 0 ? errno_text(err) : fmt::format("libhsakmt returns {}", static_cast<int>(s)),
         err == ENOENT   ? "load the amdgpu driver on a machine with an AMD GPU"
         : err == EACCES ? "join the group render"
                         : "check that libhsakmt fits the kernel");
  }
  ~opened() {
    holders& all = all_holders();
    const std::lock_guard hold(all.lock);
    if (--all.count == 0 && !all.shared) hsaKmtReleaseSystemProperties();
    hsaKmtCloseKFD();
  }
  opened& operator=(opened&&) = delete;
};

class hsakmt_driver final : public kfd_driver {
 public:
  const char* name() const override { return "libhsakmt"; }

  std::vector<kfd_gpu> gpus() override {
    HsaSystemProperties system{};
    check(hsaKmtAcquireSystemProperties(&system), "reading the topology", 0);
    if (system.NumNodes > k_most_nodes)
      fail(XIO_ERR_UNSUPPORTED, "KFD says that it has {} nodes, more than any machine", system.NumNodes);
    std::vector<kfd_gpu> out;
    for (std::uint32_t node = 0; node < system.NumNodes; ++node) read_node(node, out);
    return out;
  }

  void* allocate_ring(std::uint32_t node, std::size_t bytes, gpu::place where) override {
    HsaMemFlags flags{};
    flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
    flags.ui32.HostAccess = 1;
    flags.ui32.ExecuteAccess = 1;  // the engine fetches from it
    flags.ui32.Uncached = 1;
    flags.ui32.NoNUMABind = 1;
    // Memory of the node itself; else the system's, which libhsakmt takes by node 0.
    const bool device = where == gpu::place::device;
    flags.ui32.NonPaged = device ? 1 : 0;
    void* ring = nullptr;
    check(hsaKmtAllocMemory(device ? node : 0, bytes, flags, &ring), "memory for a ring", node);
    HsaMemMapFlags how{};
    how.ui32.PageSize = HSA_PAGE_SIZE_4KB;
    how.ui32.HostAccess = 1;
    HSAuint64 other = 0;
    HSAuint32 nodes[1] = {node};
    const HSAKMT_STATUS s = hsaKmtMapMemoryToGPUNodes(ring, bytes, &other, how, 1, nodes);
    if (s != HSAKMT_STATUS_SUCCESS) hsaKmtFreeMemory(ring, bytes);
    check(s, "mapping a ring", node);
    return ring;
  }

  void free_ring(void* ring, std::size_t bytes) noexcept override {
    hsaKmtUnmapMemoryToGPU(ring);
    if (hsaKmtFreeMemory(ring, bytes) != HSAKMT_STATUS_SUCCESS)
      log::warn("SDMA: libhsakmt did not take back a ring of {} bytes", bytes);
  }

  kfd_queue create_queue(std::uint32_t node, const engine_choice& engine, void* ring, std::size_t bytes) override {
    HsaQueueResource r{};
    constexpr HSAuint32 k_all = 100;  // per cent of the engine's time
    if (engine.kind == queue_kind::by_engine) {
#if HAVE_HSAKMT_QUEUE_BY_ENGINE
      check(hsaKmtCreateQueueExt(node, HSA_QUEUE_SDMA_BY_ENG_ID, k_all, HSA_QUEUE_PRIORITY_NORMAL, engine.engine, ring,
                                 bytes, nullptr, &r),
            "a queue of a copy engine", node);
#else
      fail(XIO_ERR_UNSUPPORTED, "this build's libhsakmt cannot ask for copy engine {} by number", engine.engine);
#endif
    } else {
      const HSA_QUEUE_TYPE type = engine.kind == queue_kind::xgmi ? HSA_QUEUE_SDMA_XGMI : HSA_QUEUE_SDMA;
      check(hsaKmtCreateQueue(node, type, k_all, HSA_QUEUE_PRIORITY_NORMAL, ring, bytes, nullptr, &r),
            "a queue of a copy engine", node);
    }
    return {r.QueueId, r.Queue_DoorBell_aql, r.Queue_write_ptr_aql};
  }

  void destroy_queue(std::uint64_t id) noexcept override {
    if (hsaKmtDestroyQueue(id) != HSAKMT_STATUS_SUCCESS) log::warn("SDMA: libhsakmt did not destroy queue {}", id);
  }

 private:
  static void read_node(std::uint32_t node, std::vector<kfd_gpu>& out) {
    HsaNodeProperties p{};
    check(hsaKmtGetNodeProperties(node, &p), "reading the properties", node);
    if (p.NumFComputeCores == 0) return;  // CPUs alone
    kfd_gpu g{};
    g.node = node;
    const auto kernels = topology::find_runtime_kfd_node("", node);
    g.identity = kernels ? kernels->identity : bus_id_of(p);
    g.facts = {p.NumSdmaEngines, p.NumSdmaXgmiEngines, p.NumSdmaQueuesPerEngine, HAVE_HSAKMT_QUEUE_BY_ENGINE != 0};
    if (p.NumIOLinks > k_most_links)
      fail(XIO_ERR_UNSUPPORTED, "KFD node {} claims {} links, more than any GPU has", node, p.NumIOLinks);
    std::vector<HsaIoLinkProperties> links(p.NumIOLinks);
    if (!links.empty())
      check(hsaKmtGetNodeIoLinkProperties(node, p.NumIOLinks, links.data()), "reading the links", node);
    for (std::uint32_t i = 0; i < links.size(); ++i)
      g.links.push_back(
          {links[i].NodeTo, {links[i].IoLinkType == HSA_IOLINK_TYPE_XGMI, recommended_engines(links[i], node, i)}});
    out.push_back(g);
  }

  opened kfd_;
};

}  // namespace

std::unique_ptr<kfd_driver> open_hsakmt() { return std::make_unique<hsakmt_driver>(); }

}  // namespace xio::sdma
