// SPDX-License-Identifier: MIT
// What a thread does between two looks at something.
#pragma once

namespace xio::host_exec {

void relax();

}  // namespace xio::host_exec
