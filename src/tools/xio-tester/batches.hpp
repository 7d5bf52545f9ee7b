// SPDX-License-Identifier: MIT
// Ops that workgroups post in batches and wait for: those of nvme-ep, and of rdma-ep without a second PE.
#pragma once
#include "tools/xio-tester/recorder.hpp"
#include "xio/xio.h"

namespace xio::tester {

struct batch_job {
  xio_ctx_t ctx;
  recorder tally;     // a lane for each thread
  xio_req_t* posted;  // `batch` for each workgroup
  u64* begun;         // when each was posted, likewise
  u64 ops;            // of each workgroup; 0: until told to stop
  u64 batch;          // ops of a workgroup that are posted before the first is waited for
  u64 seed;
  u32 verify;
};

}  // namespace xio::tester
