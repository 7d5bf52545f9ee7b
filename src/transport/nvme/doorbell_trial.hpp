// SPDX-License-Identifier: MIT
// Whether what kernels store to the doorbells of a drive arrives there.
#pragma once
#include "base/options.hpp"
#include "transport/nvme/io_queue.hpp"

namespace xio::nvme {

struct tried_queue {
  io_queue* queue;
  std::uint32_t* kernels;         // the submission doorbell as kernels see it
  io_queue::doorbell_words host;  // both, as the host sees them
};

// Before any kernel posts. One kernel rings up to eight queues at once (gpu::ring_by_kernel), each for a read of block
// 0 into memory that nobody else uses. Whether all have arrived; if not, the log says so, and the host has rung for the
// others, so every command has ended. Throws where XIO_NVME_DOORBELL=bar leaves no other way, and where a command does
// not end by the host either, for then the drive is of no use.
bool kernels_ring(const queue_maker& d, const std::vector<tried_queue>& all, const nvme_options& o);

}  // namespace xio::nvme
