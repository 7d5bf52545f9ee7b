// SPDX-License-Identifier: MIT
// The HIP names, so that one source builds on all three platforms: the real ones with hipcc, thin mappings with nvcc
// and with a plain C++ compiler, where kernels run on CPU threads. Programs that include it are C++.
//
// Of HIP it brings kernels and their built-ins, launches, memory, copies, streams, graphs, events and the device, and
// on the host arithmetic and vector types. Launches are written hipLaunchKernelGGL(kernel, grid, block, shared_bytes,
// stream, args...), and the step of docs/porting.md writes <<<>>> so. xio/hip_groups.h has cooperative groups.
#pragma once

#if defined(__HIPCC__) || defined(__HIP__) || defined(XIO_PLATFORM_HIP)
#include <hip/hip_runtime.h>
#elif defined(__CUDACC__) || defined(XIO_PLATFORM_CUDA)
#include "xio/hip_cuda.h"
#else
#include "xio/hip_host.h"
#include "xio/hip_host_more.h"
#endif
