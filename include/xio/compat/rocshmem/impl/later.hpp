// SPDX-License-Identifier: MIT
// Names of rocSHMEM that this version does not have. A call is refused by the compiler with the reason.
#pragma once
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
#undef XIO_ROCSHMEM_LATER

}  // namespace rocshmem
