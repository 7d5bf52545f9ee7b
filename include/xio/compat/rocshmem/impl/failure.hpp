// SPDX-License-Identifier: MIT
// What cannot be returned from a call of the host, because there it returns nothing, ends the program with a sentence.
#pragma once
#include <cstdio>
#include <cstdlib>

#include "xio/hip.h"
#include "xio/xio.h"

namespace rocshmem::impl {

[[noreturn]] inline void end_with(const char* call, const char* why) {
  std::fprintf(stderr, "%s: %s\n", call, why);
  std::exit(1);
}
inline void must(xio_status_t status, const char* call) {
  if (status != XIO_OK) end_with(call, xio_last_error());
}
inline void must(hipError_t error, const char* call) {
  if (error != hipSuccess) end_with(call, hipGetErrorString(error));
}

}  // namespace rocshmem::impl
