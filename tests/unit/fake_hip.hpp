// SPDX-License-Identifier: MIT
// A HIP runtime and an HSA runtime of a test's own: what they refuse, and what they were asked. GPU memory is memfds.
#pragma once
#include <hip/hip_runtime_api.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace xio::test::fake_hip {

struct allocation {
  std::size_t bytes;
  bool on_host;
  unsigned flags;
  int fd;
  bool mapped;  // by the program, over a handle of its own
};

struct fake {
  std::string arch = "gfx942:sramecc+:xnack-";
  int version = 70051831;
  std::set<unsigned> refuses;  // flags of device memory
  bool ipc_refuses_uncached = false, ipc_refuses_all = false;
  hipError_t import_fails_with = hipSuccess;
  int exports = 0;
  bool register_refuses = false, lock_refuses = false;
  std::size_t host_memory_moves_by = 0;  // registered pages, for the GPU
  std::vector<std::string> pages;        // calls that map and unmap pages of registers
  bool dmabufs = true;
  int kernels = 0;                     // that clear memory
  int retained = 0;                    // handles
  std::atomic<bool> capturing{false};  // some stream, in global mode
  std::atomic<bool> disturbed{false};  // and a call has ended that
  bool streams_refuse = false;         // to be waited for meanwhile, and events, as HIP 5.7's
  std::atomic<int> looks{0};           // at events, of which every second one finds it done
  std::map<void*, allocation> live;    // under `lock`: XIO frees in a thread of its own
  std::vector<allocation> taken;       // all that ever was, but for 4096 and 8 bytes of the start and of waiting
  std::mutex lock;
};
extern fake g;

// Of the calling thread.
extern thread_local hipStreamCaptureMode t_mode;

// Frees what begins at p, as the runtime does.
hipError_t give_back(void* p);

// The allocation that begins at p.
allocation allocation_at(void* p);

}  // namespace xio::test::fake_hip
