// SPDX-License-Identifier: MIT
// The macros of platform.hpp, which gives their meanings, on each platform.
// Part of platform.hpp.
#if (defined(XIO_ON_HIP) || defined(XIO_ON_CUDA) || defined(XIO_ON_HOST)) && !defined(XIO_DEVICE_MACROS_HPP)
#define XIO_DEVICE_MACROS_HPP

#if defined(XIO_ON_HOST)

#define XIO_DEVICE inline
// Inlined in any case, as on a GPU: the executor tells calls of converged_lanes() apart by where they stand.
#define XIO_CONVERGENT inline __attribute__((always_inline))
#define XIO_HOST_DEVICE inline
#define XIO_OUT_OF_LINE inline
#define XIO_IN_LINE_BY_NEW inline
#define XIO_SLOW_PATH inline
#define XIO_SHARED(type, name)                 \
  static const char xio_shared_tag_##name = 0; \
  type& name = *static_cast<type*>(::xio::dev::workgroup_memory(&xio_shared_tag_##name, sizeof(type), alignof(type)))
#define XIO_LEAF XIO_OUT_OF_LINE
#define XIO_UNROLL
#define XIO_ROLLED
// The host platform checks that all threads of a group make the same call; see impl/forms.hpp.
#define XIO_UNWRAPPED(...) __VA_ARGS__
#define XIO_ENTER_thread_group(name, arguments)
#define XIO_ENTER_wave_group(name, arguments) \
  const ::xio::host_exec::group_call entered_(name, {XIO_UNWRAPPED arguments});
#define XIO_ENTER_workgroup_group(name, arguments) XIO_ENTER_wave_group(name, arguments)

#else

#define XIO_DEVICE __device__ inline __attribute__((always_inline))
#define XIO_CONVERGENT XIO_DEVICE
#define XIO_HOST_DEVICE __host__ __device__ inline
#define XIO_OUT_OF_LINE inline __device__ __attribute__((noinline))
#define XIO_SHARED(type, name) __shared__ type name
#define XIO_UNROLL _Pragma("unroll")
#define XIO_ROLLED _Pragma("unroll 1")
#define XIO_ENTER_thread_group(name, arguments)
#define XIO_ENTER_wave_group(name, arguments)
#define XIO_ENTER_workgroup_group(name, arguments)

#endif

#if defined(XIO_ON_HIP)
#include <hip/hip_runtime.h>
// LLVM's register allocator may lose lanes in large kernels whose registers do not fit, clang 15's in one of XIO's
// tests (docs/decisions/0182-lost-lanes.md). Of newer compilers none is known to be free of it: tests look at what they
// make.
#if __clang_major__ < 18
#define XIO_IN_LINE_BY_NEW XIO_OUT_OF_LINE
#else
#define XIO_IN_LINE_BY_NEW XIO_DEVICE
#endif
// It may use memory of the workgroup, which is better known to compilers in kernels than in functions.
#define XIO_SLOW_PATH XIO_DEVICE
#define XIO_LEAF inline __device__ __attribute__((noinline, not_tail_called))
#endif

#if defined(XIO_ON_CUDA)
#define XIO_IN_LINE_BY_NEW XIO_OUT_OF_LINE
// Out of line, so that what is done often stays close together: instructions are fetched in lines
// (docs/performance.md).
#define XIO_SLOW_PATH XIO_OUT_OF_LINE
#define XIO_LEAF XIO_OUT_OF_LINE
#endif

#endif

// LLVM in Triton 3.6 ends by an assertion where NVIDIA's code takes a structure by value. So in bitcode that clang
// makes for it such functions take its address, and may not change it.
#if defined(XIO_ON_CUDA) && defined(__clang__)
#define XIO_GIVEN(type) const type&
#else
#define XIO_GIVEN(type) type
#endif
