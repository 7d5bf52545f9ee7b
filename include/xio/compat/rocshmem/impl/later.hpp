// SPDX-License-Identifier: MIT
// Names of rocSHMEM that this version does not have. A call is refused by the compiler with the reason.
#pragma once
#include "xio/compat/rocshmem/impl/each_type.hpp"
#include "xio/compat/rocshmem/impl/state.hpp"

namespace rocshmem {

#define XIO_ROCSHMEM_LATER(name, why)                                                              \
  template <class... Arguments>                                                                    \
  XIO_ROCSHMEM_BOTH int name(Arguments&&...) {                                                     \
    static_assert(sizeof...(Arguments) > 1000, #name " comes in a later version of XIO: it " why); \
    return 0;                                                                                      \
  }
#define XIO_ROCSHMEM_ON_STREAM(name) \
  XIO_ROCSHMEM_LATER(name, "works on a stream; a small kernel on that stream does it today")
XIO_ROCSHMEM_ON_STREAM(rocshmem_barrier_all_on_stream)
XIO_ROCSHMEM_ON_STREAM(rocshmem_sync_all_on_stream)
XIO_ROCSHMEM_ON_STREAM(rocshmem_quiet_on_stream)
XIO_ROCSHMEM_ON_STREAM(rocshmem_putmem_on_stream)
XIO_ROCSHMEM_ON_STREAM(rocshmem_getmem_on_stream)
XIO_ROCSHMEM_ON_STREAM(rocshmem_putmem_signal_on_stream)
XIO_ROCSHMEM_ON_STREAM(rocshmem_signal_wait_until_on_stream)
XIO_ROCSHMEM_ON_STREAM(rocshmem_alltoallmem_on_stream)
XIO_ROCSHMEM_ON_STREAM(rocshmem_broadcastmem_on_stream)
#undef XIO_ROCSHMEM_ON_STREAM

// --- Collectives of the host -------------------------------------------------------------------------

#define XIO_ROCSHMEM_OF_HOST(name) \
  XIO_ROCSHMEM_LATER(name, "is a collective of the host; a kernel of one workgroup does it today")
#define XIO_ROCSHMEM_REDUCE_OF_HOST(TYPE, OP)               \
  XIO_ROCSHMEM_OF_HOST(rocshmem_ctx_##TYPE##_##OP##_reduce) \
  XIO_ROCSHMEM_OF_HOST(rocshmem_##TYPE##_##OP##_reduce)
#define XIO_ROCSHMEM_COLLECTIVES_OF_HOST(TYPE, T)       \
  XIO_ROCSHMEM_OF_HOST(rocshmem_ctx_##TYPE##_broadcast) \
  XIO_ROCSHMEM_OF_HOST(rocshmem_##TYPE##_broadcast)     \
  XIO_ROCSHMEM_REDUCE_OF_HOST(TYPE, sum)                \
  XIO_ROCSHMEM_REDUCE_OF_HOST(TYPE, prod)               \
  XIO_ROCSHMEM_REDUCE_OF_HOST(TYPE, min)                \
  XIO_ROCSHMEM_REDUCE_OF_HOST(TYPE, max)                \
  XIO_ROCSHMEM_REDUCE_OF_HOST(TYPE, and)                \
  XIO_ROCSHMEM_REDUCE_OF_HOST(TYPE, or)                 \
  XIO_ROCSHMEM_REDUCE_OF_HOST(TYPE, xor)
XIO_ROCSHMEM_EACH_TYPE(XIO_ROCSHMEM_COLLECTIVES_OF_HOST)
#undef XIO_ROCSHMEM_COLLECTIVES_OF_HOST
#undef XIO_ROCSHMEM_REDUCE_OF_HOST
#undef XIO_ROCSHMEM_OF_HOST
#undef XIO_ROCSHMEM_LATER

// --- Copies and atomics of the host ------------------------------------------------------------------

// Beside the device's functions of the same names, which clang lets host code overload; nvcc does not.
#if defined(XIO_ON_HIP)
#define XIO_ROCSHMEM_HOST_LATER(name)                                                                          \
  template <class... Arguments>                                                                                \
  __host__ inline int name(Arguments&&...) {                                                                   \
    static_assert(sizeof...(Arguments) > 1000,                                                                 \
                  #name " of the host comes in a later version of XIO; a kernel of one thread does it today"); \
    return 0;                                                                                                  \
  }
#define XIO_ROCSHMEM_HOST_BOTH(name)       \
  XIO_ROCSHMEM_HOST_LATER(rocshmem_##name) \
  XIO_ROCSHMEM_HOST_LATER(rocshmem_ctx_##name)
#define XIO_ROCSHMEM_HOST_COPIES(TYPE, T)         \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_put)              \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_put_nbi)          \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_get)              \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_get_nbi)          \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_p)                \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_g)                \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_atomic_set)       \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_atomic_swap)      \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_atomic_fetch)     \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_atomic_add)       \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_atomic_fetch_add) \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_atomic_inc)       \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_atomic_fetch_inc) \
  XIO_ROCSHMEM_HOST_BOTH(TYPE##_atomic_compare_swap)
XIO_ROCSHMEM_EACH_TYPE(XIO_ROCSHMEM_HOST_COPIES)
XIO_ROCSHMEM_HOST_BOTH(putmem)
XIO_ROCSHMEM_HOST_BOTH(putmem_nbi)
XIO_ROCSHMEM_HOST_BOTH(getmem)
XIO_ROCSHMEM_HOST_BOTH(getmem_nbi)
#undef XIO_ROCSHMEM_HOST_COPIES
#undef XIO_ROCSHMEM_HOST_BOTH
#undef XIO_ROCSHMEM_HOST_LATER
#endif
#undef XIO_ROCSHMEM_EACH_TYPE

}  // namespace rocshmem
