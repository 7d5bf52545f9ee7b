// SPDX-License-Identifier: MIT
// OS threads that run workgroups. They are kept between launches; a job never shares its thread with another, so
// that a kernel which spins takes its core's time slices and nothing more.
#pragma once
#include <functional>
#include <memory>

namespace xio::host_exec {

// Runs task(0..count-1), each on a thread of its own, then last() once; returns at once. Throws XIO_ERR_NO_MEMORY,
// and runs nothing, when there would be more than k_max_threads threads or the system refuses one.
void run_on_threads(unsigned count, std::function<void(unsigned)> task, std::function<void()> last);

}  // namespace xio::host_exec
