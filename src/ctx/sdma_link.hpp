// SPDX-License-Identifier: MIT
// Copy engines without a world: what xio/sdma.h connects.
#pragma once
#include "ctx/handles.hpp"
#include "gpu/gpu.hpp"
#include "transport/sdma/host_copier.hpp"
#include "xio/sdma.h"

namespace xio {

// A queue and what its kernels read.
class bare_queue {
 public:
  bare_queue(sdma::engine& e, const sdma::queue_request& request, dev::world_view* world);
  void* view() const { return view_.data(); }
  const dev::ring_view& ring() const { return ring_; }

 private:
  std::unique_ptr<sdma::queue> queue_;
  dev::ring_view ring_;
  gpu::buffer view_;
};

class sdma_link {
 public:
  explicit sdma_link(const xio_sdma_link_attr_t* attr);

  void map(void* base, std::size_t bytes);
  void unmap(void* base);
  xio_sdma_queue_t create_queue(const xio_sdma_queue_attr_t* attr);
  void destroy_queue(xio_sdma_queue_t q);
  dev::ring_view ring(xio_sdma_queue_t q) const;
  std::uint64_t start_copy(void* dst, const void* src, std::size_t bytes);
  void wait_copy(std::uint64_t ticket);

 private:
  sdma::host_copier& copier();

  options options_;
  int peer_;  // of the engine: 0 is the other device, -1 none
  gpu::buffer world_;
  // Later members use earlier ones; they go in reverse.
  std::unique_ptr<progress::machine> machine_;
  std::unique_ptr<sdma::engine> engine_;
  std::mutex lock_;  // of copier_'s making
  std::unique_ptr<sdma::host_copier> copier_;
  mutable std::mutex queues_lock_;  // one thread creates and destroys; others read their counts meanwhile
  handles<bare_queue> queues_;
};

}  // namespace xio
