// SPDX-License-Identifier: MIT
// How the HIP calls of the host platform fail.
#pragma once
#include <new>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/host/launch.hpp"
#include "xio/hip.h"

namespace xio::host_exec {

// For hipGetLastError.
hipError_t remember(hipError_t e);
// A kernel's call would wait for the kernel itself. Device compilers refuse it.
hipError_t refuse_kernel();

// Runs a call; exceptions become errors, and the sentence goes to the log.
template <class Body>
hipError_t call(Body&& body) noexcept {
  if (current != nullptr) return refuse_kernel();
  try {
    return remember(body());
  } catch (const error& e) {
    log::error("{}", e.what());
    return remember(e.status() == XIO_ERR_NO_MEMORY ? hipErrorOutOfMemory : hipErrorInvalidValue);
  } catch (const std::bad_alloc&) {
    return remember(hipErrorOutOfMemory);
  } catch (...) {
    return remember(hipErrorUnknown);
  }
}

}  // namespace xio::host_exec
