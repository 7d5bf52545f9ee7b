// SPDX-License-Identifier: MIT
// nvme-ep: reads and writes of one storage by the device API, one workgroup for each queue.
#pragma once
#include "tools/xio-tester/batches.hpp"

namespace xio::tester {

struct nvme_job : batch_job {
  xio_storage_t storage;
  u8* buffer;        // of all queues, registered
  u64 buffer_bytes;  // of each queue
  u64 base_lba;
  u64 places;  // of an op's size, from base_lba on
  u32 lbas_per_io, block_bytes, random, write;
};

// threads: of each workgroup, at most `batch`.
const char* launch_nvme(const nvme_job& job, unsigned queues, unsigned threads);

}  // namespace xio::tester
