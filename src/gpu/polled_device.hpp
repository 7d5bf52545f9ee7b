// SPDX-License-Identifier: MIT
// A device whose queues lanes poll themselves, without a thread of the host's between. While one is there, the host
// platform's waiting lanes leave out the PAUSE instruction where the processor is QEMU's translator: each PAUSE leaves
// the translated code and wants the lock under which QEMU's devices work, so who waits for one would hold it up.
// Without such a device PAUSE stays, for what is waited for then is another thread of the guest, and the processor that
// spins keeps the others' from running. On GPUs nothing changes.
#pragma once

namespace xio::gpu {

class polled_device {
 public:
  polled_device();
  ~polled_device();
  polled_device& operator=(polled_device&&) = delete;
};

}  // namespace xio::gpu
