// SPDX-License-Identifier: MIT
// Cooperative groups, so that one source builds on all three platforms: the real ones with hipcc and nvcc, and on the
// host the workgroup alone. A group of a grid, and tiles of a wave, are not there: a grid's workgroups do not all run
// at once.
#pragma once

#if defined(__HIPCC__) || defined(__HIP__) || defined(XIO_PLATFORM_HIP)
#include <hip/hip_cooperative_groups.h>
#elif defined(__CUDACC__) || defined(XIO_PLATFORM_CUDA)
#include <cooperative_groups.h>
#else
#include "xio/hip_host.h"

namespace cooperative_groups {

class thread_block {
 public:
  static void sync() { __syncthreads(); }
  static unsigned thread_rank() { return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x; }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
  static bool is_valid() { return true; }
  static dim3 thread_index() { return {threadIdx.x, threadIdx.y, threadIdx.z}; }
  static dim3 group_index() { return {blockIdx.x, blockIdx.y, blockIdx.z}; }
  static dim3 group_dim() { return {blockDim.x, blockDim.y, blockDim.z}; }
};

inline thread_block this_thread_block() { return {}; }
inline void sync(const thread_block& group) { group.sync(); }

}  // namespace cooperative_groups
#endif
