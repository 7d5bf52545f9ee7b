// SPDX-License-Identifier: MIT
// nvme-ep: reads and writes of one storage by the device API, one workgroup for each queue.
#pragma once
#include "tools/xio-tester/recorder.hpp"
#include "xio/xio.h"

namespace xio::tester {

struct nvme_job {
  xio_ctx_t ctx;
  xio_storage_t storage;
  recorder tally;     // a lane for each thread
  u8* buffer;         // of all queues, registered
  xio_req_t* posted;  // `batch` for each queue
  u64* begun;         // when each was posted, `batch` for each queue
  u64 buffer_bytes;   // of each queue
  u64 ops;            // of each queue; 0: until told to stop
  u64 batch;          // ops of a queue that are posted before the first is waited for
  u64 base_lba;
  u64 places;  // of an op's size, from base_lba on
  u64 seed;
  u32 lbas_per_io, block_bytes, random, write, verify;
};

// threads: of each workgroup, at most `batch`.
const char* launch_nvme(const nvme_job& job, unsigned queues, unsigned threads);

}  // namespace xio::tester
