// SPDX-License-Identifier: MIT
#include "tools/xio-perf/reduction.hpp"

XIO_PERF_REDUCTIONS(launch_scatter_by_wave, xio_reduce_scatter_wave)
