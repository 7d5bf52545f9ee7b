// SPDX-License-Identifier: MIT
// How the examples end when something is wrong: with a sentence and a status.
#pragma once
#include <fcntl.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

// main() returns this instead of `code`: a program whose output could not be written has failed.
inline int ended(int code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  std::fprintf(stderr, "the output could not be written: %s\n", std::strerror(errno));
  return code != 0 ? code : 1;
}

// A standard stream that is closed would become the next file that is opened, and what is printed would go into it.
inline void open_standard_streams() {
  for (int fd = 0; fd <= 2; ++fd)
    if (fcntl(fd, F_GETFD) == -1 && open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY) != fd) std::exit(1);
}

inline void check(xio_status_t s, const char* what) {
  if (s != XIO_OK) leave(1, "%s: %s: %s", what, xio_status_name(s), xio_last_error());
}
inline void check(hipError_t e, const char* what) {
  if (e != hipSuccess) leave(1, "%s: %s", what, hipGetErrorString(e));
}

// Stores a kernel's result: the first failure stays.
__device__ inline void keep(int* status, xio_status_t s) {
  if (s != XIO_OK) atomicCAS(status, static_cast<int>(XIO_OK), static_cast<int>(s));
}
