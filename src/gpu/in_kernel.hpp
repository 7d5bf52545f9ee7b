// SPDX-License-Identifier: MIT
#pragma once

namespace xio::gpu {

// Whether this thread runs a kernel, which only the host platform's do.
bool in_kernel();

}  // namespace xio::gpu
