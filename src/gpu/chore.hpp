// SPDX-License-Identifier: MIT
// Short work of the host's that a kernel may be waiting for. On the host platform a thread that runs a kernel does it
// while all lanes of its workgroup wait (fibers only); on GPUs nobody does, so it must also be done without.
#pragma once

namespace xio::gpu {

class chore {
 public:
  virtual ~chore() = default;
  virtual bool work() = 0;  // true if there was any; called by one thread at a time
};
void add_chore(chore& c);
void remove_chore(chore& c);  // on return it is not done and never will be

}  // namespace xio::gpu
