// SPDX-License-Identifier: MIT
// The one device global of XIO's headers: the default context of a program of rocSHMEM. Device code is not linked
// across files, so every file that includes this has a copy, and rocshmem_init fills in all of them.
#pragma once
#include <vector>

#include "xio/compat/rocshmem/impl/types.hpp"
#include "xio/hip.h"
#include "xio/xio_device.hpp"

namespace rocshmem {
// Numbers of two bytes for collectives: IEEE binary16, and the upper half of a float. Pointers to a program's own types
// of these bits (__half, __hip_bfloat16) are cast.
using rocshmem_half_t = xio_half_t;
using rocshmem_bfloat16_t = xio_bfloat16_t;
}  // namespace rocshmem

namespace rocshmem::impl {

struct device_state {
  xio_ctx_t ctx;
  std::uint32_t* first_error;  // an xio_status_t, in memory of the device; 0: none
  const xio_team_t* teams;     // by handle, in memory of the device
  std::uint32_t team_count;
};

#if defined(XIO_ON_HOST)
inline device_state in_kernels{};
#else
static __device__ device_state in_kernels;
#endif

using fill = hipError_t (*)(const device_state&);
inline std::vector<fill>& files() {
  static std::vector<fill> all;
  return all;
}
#if defined(XIO_ON_CUDA)
static hipError_t fill_this_file(const device_state& s) { return cudaMemcpyToSymbol(in_kernels, &s, sizeof s); }
#elif defined(XIO_ON_HIP)
static hipError_t fill_this_file(const device_state& s) {
  return hipMemcpyToSymbol(HIP_SYMBOL(in_kernels), &s, sizeof s, 0, hipMemcpyHostToDevice);
}
#else
static hipError_t fill_this_file(const device_state& s) {
  in_kernels = s;
  return hipSuccess;
}
#endif
namespace {
[[maybe_unused]] const bool this_file_is_listed = (files().push_back(fill_this_file), true);
}

// --- In kernels --------------------------------------------------------------------------------------

// A context as XIO has it. Contexts differ in their queues alone: the heaps are those of the default context.
XIO_DEVICE xio_ctx_t resolve(rocshmem_ctx_t ctx) {
  xio_ctx_t out = in_kernels.ctx;
  if (ctx.ctx_opaque == ROCSHMEM_CTX_INVALID.ctx_opaque) out.view = nullptr;
  if (ctx.ctx_opaque != 0 && out.view != nullptr) out.view = reinterpret_cast<void*>(ctx.ctx_opaque);
  return out;
}
XIO_DEVICE xio_ctx_t resolve() { return in_kernels.ctx; }

// The empty team for a handle of none.
XIO_DEVICE xio_team_t team_of(rocshmem_team_t team) {
  return team.index < in_kernels.team_count ? in_kernels.teams[team.index] : xio_team_t{};
}
// A context of a team counts its members; -1 is no PE.
XIO_DEVICE int world_pe(rocshmem_ctx_t ctx, int pe) {
  if (ctx.team_opaque <= ROCSHMEM_TEAM_WORLD.index) return pe;
  return xio_team_world_pe(team_of(rocshmem_team_t{static_cast<std::uint32_t>(ctx.team_opaque)}), pe);
}
// A negative count makes the call one that this member refuses, at all members.
XIO_DEVICE std::size_t size_of(int count, std::size_t unit) {
  return count < 0 ? unit : static_cast<std::size_t>(count) * unit;
}
template <class T>
XIO_DEVICE T* unless_negative(int count, T* to) {
  return count < 0 ? nullptr : to;
}

// Keeps the first status that is not XIO_OK.
XIO_DEVICE void keep(xio_status_t status) {
  if (status == XIO_OK || status == XIO_PENDING || in_kernels.first_error == nullptr) return;
  std::uint32_t none = 0;
  xio::dev::compare_exchange<xio::dev::scope::system, xio::dev::order::relaxed>(
      in_kernels.first_error, none, static_cast<std::uint32_t>(static_cast<int>(status)));
}
// A request says by itself only that its op was refused; what an engine reports comes with quiet.
XIO_DEVICE void keep_request(xio_req_t request) {
  if (xio::dev::is_failed_request(request)) keep(xio::dev::failed_request_status(request));
}

// Whether this code runs in a kernel: known to the compiler on GPUs, and at run time on the host platform. Functions
// of both sides return `device` or `host` by it.
#if defined(XIO_ON_HOST)
inline bool in_kernel() { return xio::host_exec::current != nullptr; }
#define XIO_ROCSHMEM_BOTH inline
#define XIO_ROCSHMEM_SIDE(device, host) return ::rocshmem::impl::in_kernel() ? (device) : (host)
#elif defined(__HIP_DEVICE_COMPILE__) || defined(__CUDA_ARCH__)
#define XIO_ROCSHMEM_BOTH __host__ __device__ inline
#define XIO_ROCSHMEM_SIDE(device, host) return device
#else
#define XIO_ROCSHMEM_BOTH __host__ __device__ inline
#define XIO_ROCSHMEM_SIDE(device, host) return host
#endif

}  // namespace rocshmem::impl
