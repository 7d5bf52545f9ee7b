// SPDX-License-Identifier: MIT
// The door of every call of the C API that returns a status.
#pragma once
#include "base/error.hpp"
#include "base/process.hpp"
#include "gpu/in_kernel.hpp"

namespace xio {

// Runs the body of the call `function`, unless this process is a forked child of the one that uses XIO, or a kernel
// made the call, which would wait for other lanes of its thread. The checks come before any lock: a thread that the
// child does not have may have held it.
template <class Body>
xio_status_t entry(const char* function, Body&& body) noexcept {
  return guard([&] {
    process::refuse_forked(function);
    if (gpu::in_kernel())
      fail(XIO_ERR_STATE, "{} is a call of the host, and a kernel made it; make it before the launch or after it",
           function);
    std::forward<Body>(body)();
  });
}

template <class T>
void not_null(const T* p, const char* function, const char* parameter) {
  if (p == nullptr) fail(XIO_ERR_ARG, "{}: {} is null; give a pointer", function, parameter);
}

}  // namespace xio
