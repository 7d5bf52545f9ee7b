// SPDX-License-Identifier: MIT
// What a thread that runs a kernel does while the lanes of its workgroup wait.
#pragma once

namespace xio::host_exec {

// Every chore of gpu/chore.hpp once, unless another thread is at them. True if there was any work.
bool do_chores();

}  // namespace xio::host_exec
