// SPDX-License-Identifier: MIT
#include "tools/xio-perf/reduction.hpp"

XIO_PERF_REDUCTIONS(launch_reduce_by_block, xio_reduce_wg)
