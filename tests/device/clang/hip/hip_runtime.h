// SPDX-License-Identifier: MIT
// What XIO's device headers take from HIP's, spelled by clang's builtins. With it a clang compiles them for AMD GPUs
// where there is no HIP, or one that is older than the compiler. Only the gates of this folder use it; what it declares
// is compiled and read, and never run.
#pragma once

#define __host__ __attribute__((host))
#define __device__ __attribute__((device))
#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))

struct stub_id {
  unsigned x, y, z;
};

#define STUB_DEVICE __device__ inline __attribute__((always_inline))
// Built-in variables of HIP are properties of an object there; here every use is a call.
STUB_DEVICE stub_id stub_thread() {
  return {__builtin_amdgcn_workitem_id_x(), __builtin_amdgcn_workitem_id_y(), __builtin_amdgcn_workitem_id_z()};
}
STUB_DEVICE stub_id stub_workgroup() {
  return {__builtin_amdgcn_workgroup_id_x(), __builtin_amdgcn_workgroup_id_y(), __builtin_amdgcn_workgroup_id_z()};
}
STUB_DEVICE stub_id stub_workgroup_size() {
  return {__builtin_amdgcn_workgroup_size_x(), __builtin_amdgcn_workgroup_size_y(),
          __builtin_amdgcn_workgroup_size_z()};
}
STUB_DEVICE stub_id stub_grid() {
  const stub_id size = stub_workgroup_size();
  return {__builtin_amdgcn_grid_size_x() / size.x, __builtin_amdgcn_grid_size_y() / size.y,
          __builtin_amdgcn_grid_size_z() / size.z};
}
#define threadIdx stub_thread()
#define blockIdx stub_workgroup()
#define blockDim stub_workgroup_size()
#define gridDim stub_grid()
#define warpSize static_cast<int>(__builtin_amdgcn_wavefrontsize())

STUB_DEVICE unsigned __lane_id() { return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)); }
STUB_DEVICE int __popcll(unsigned long long bits) { return __builtin_popcountll(bits); }
STUB_DEVICE int __ffsll(long long bits) { return __builtin_ffsll(bits); }
// By comparison with 0, as HIP's: 33 is LLVM's number of "not equal" (CmpInst::ICMP_NE).
STUB_DEVICE unsigned long long __ballot(int predicate) {
  return __builtin_amdgcn_uicmp(static_cast<unsigned>(predicate), 0u, 33);
}
STUB_DEVICE void __syncthreads() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}
