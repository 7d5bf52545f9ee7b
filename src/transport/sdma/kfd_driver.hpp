// SPDX-License-Identifier: MIT
// What the kernel's compute driver (KFD) does for copy engine queues. ioctl_driver.cpp asks the kernel itself, and
// hsakmt_driver.cpp libhsakmt; tests put something else in their place.
#pragma once
#include "base/option_words.hpp"
#include "gpu/gpu.hpp"
#include "gpu/kfd_kernel.hpp"
#include "transport/sdma/engine_choice.hpp"

namespace xio::sdma {

struct kfd_gpu {
  std::uint32_t node;
  std::string identity;  // see topology/kfd_node.hpp
  engine_facts facts;
  struct link {
    std::uint32_t to_node;
    link_facts facts;
  };
  std::vector<link> links;
};

struct kfd_queue {
  std::uint64_t id = 0;
  std::uint64_t* doorbell = nullptr;  // both as kernels and the host may store to them
  std::uint64_t* wptr = nullptr;
};

class kfd_driver {
 public:
  virtual ~kfd_driver() = default;
  virtual const char* name() const = 0;  // of what makes the queues: "libhsakmt"
  virtual std::vector<kfd_gpu> gpus() = 0;
  // Memory for a ring: whole pages, exactly as long as asked, reachable for the host, the GPU's kernels and engines.
  virtual void* allocate_ring(std::uint32_t node, std::size_t bytes, gpu::place where) = 0;
  virtual void free_ring(void* ring, std::size_t bytes) noexcept = 0;
  virtual kfd_queue create_queue(std::uint32_t node, const engine_choice& engine, void* ring, std::size_t bytes) = 0;
  virtual void destroy_queue(std::uint64_t id) noexcept = 0;
};

// Each throws XIO_ERR_UNSUPPORTED with what is missing and its cure. root: see topology/kfd_node.hpp.
std::unique_ptr<kfd_driver> open_by_ioctls(std::unique_ptr<kfd_kernel> kernel, const std::string& root = "");
std::unique_ptr<kfd_driver> open_hsakmt();
// The first of them that can, or the one that XIO_SDMA_QUEUES_BY names.
std::unique_ptr<kfd_driver> open_kfd(option::sdma_queues_by asked);

}  // namespace xio::sdma
