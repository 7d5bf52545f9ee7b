// SPDX-License-Identifier: MIT
// How the examples end when something is wrong: with a sentence and a status.
#pragma once
#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include "xio/hip.h"
#include "xio/xio.h"
#include "xio/xio_device.hpp"

// Status 2: called wrongly. Status 1: something failed.
[[noreturn]] inline void leave(int code, const char* format, ...) __attribute__((format(printf, 2, 3)));
[[noreturn]] inline void leave(int code, const char* format, ...) {
  va_list list;
  va_start(list, format);
  std::vfprintf(stderr, format, list);
  va_end(list);
  std::fputc('\n', stderr);
  std::exit(code);
}

inline void check(xio_status_t s, const char* what) {
  if (s != XIO_OK) leave(1, "%s: %s: %s", what, xio_status_name(s), xio_last_error());
}
inline void check(hipError_t e, const char* what) {
  if (e != hipSuccess) leave(1, "%s: %s", what, hipGetErrorString(e));
}

// A kernel's answer: the first failure stays.
__device__ inline void keep(int* status, xio_status_t s) {
  if (s != XIO_OK) atomicCAS(status, static_cast<int>(XIO_OK), static_cast<int>(s));
}
