// SPDX-License-Identifier: MIT
// Calls that a preloaded library handles in place of the C library. calls.cpp has the C library's functions under their
// own names and asks these, which every such library defines once. Calls that none of these handles go on to the next
// function of the same name, and in a process that is in no session of the library all of them do.
#pragma once
#include <dlfcn.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>

#define PRELOAD_SHOWN extern "C" __attribute__((visibility("default")))

namespace preload {

// The function that this library stands in front of.
template <class Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

constexpr int k_not_ours = -2;

// A descriptor, -1 and errno, or k_not_ours.
int open_device(const char* path);
// Whether stat() and access() find a device there that is none of the system's.
bool has_device(const char* path);
// The path to use in place of one of the system; "" where that stays.
std::string moved(const char* path);
// As ioctl(2): 0, -1 and errno, or k_not_ours.
int control(int fd, unsigned long request, void* argument);

struct mapping {
  void* at;
  std::size_t bytes;
  int protection, flags, fd;
  std::uint64_t offset;
};
// False: none of ours. Else `result` is what mmap(2) returns.
bool map(const mapping& m, void** result);

}  // namespace preload
