// SPDX-License-Identifier: MIT
// The driver's part of preload/calls.hpp: its files, descriptors of them, and the description of GPUs and host below
// /sys and /proc. Calls by which HIP and ROCr ask about the machine below are handled here, too.
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "amdgpu/driver/descriptors.hpp"
#include "amdgpu/driver/kfd_ioctls.hpp"
#include "amdgpu/driver/process.hpp"
#include "amdgpu/driver/topology.hpp"
#include "preload/calls.hpp"

namespace {

using amdgpu::device_file;

device_file device_at(const char* path) {
  if (path == nullptr || std::strncmp(path, "/dev/", 5) != 0 || amdgpu::session_folder() == nullptr)
    return device_file::none;
  if (std::strcmp(path, "/dev/kfd") == 0) return device_file::kfd;
  constexpr const char* k_render = "/dev/dri/renderD";
  if (std::strncmp(path, k_render, std::strlen(k_render)) != 0) return device_file::none;
  const long minor = std::strtol(path + std::strlen(k_render), nullptr, 10);
  amdgpu::process* p = amdgpu::process::current();
  const bool is_ours = p != nullptr && minor >= 128 && minor < 128 + static_cast<long>(p->chosen.nodes());
  return is_ours ? device_file::render : device_file::none;
}

bool is_of_kernel(const char* path) {
  for (const char* begin : {"/sys/", "/proc/", "/dev/"})
    if (std::strncmp(path, begin, std::strlen(begin)) == 0) return true;
  return false;
}

}  // namespace

namespace preload {

int open_device(const char* path) {
  const device_file kind = device_at(path);
  if (kind == device_file::none) return k_not_ours;
  if (amdgpu::process::current() == nullptr) {
    errno = ENODEV;
    return -1;
  }
  return amdgpu::open_device_file(kind);
}

bool has_device(const char* path) { return device_at(path) != device_file::none; }

std::string moved(const char* path) {
  const char* folder = amdgpu::session_folder();
  if (folder == nullptr || !is_of_kernel(path)) return "";
  std::string there = amdgpu::redirected(folder, path);
  // tests/amdgpu/check has a list of those that may be.
  if (const char* log = std::getenv("XIO_AMDGPU_LOG"); there.empty() && log != nullptr && *log == '3')
    std::fprintf(stderr, "software AMD GPU: the machine's own %s\n", path);
  return there;
}

int control(int fd, unsigned long request, void* argument) {
  const device_file kind = amdgpu::device_file_of(fd);
  if (kind == device_file::none) return k_not_ours;
  amdgpu::process* p = amdgpu::process::current();
  const auto number = static_cast<std::uint32_t>(request);
  const int failed = p == nullptr                  ? ENOTTY
                     : kind == device_file::render ? amdgpu::gem_ioctl(*p, fd, number, argument)
                                                   : amdgpu::kfd_ioctl(*p, number, argument);
  if (failed == 0) return 0;
  errno = failed;
  return -1;
}

bool map(const mapping& m, void** result) {
  if (amdgpu::device_file_of(m.fd) == device_file::none) return false;
  amdgpu::process* p = amdgpu::process::current();
  void* there = p == nullptr ? nullptr : p->memory.mmap(m.at, m.bytes, m.protection, m.flags, m.offset);
  *result = there == nullptr ? MAP_FAILED : there;
  return true;
}

}  // namespace preload

PRELOAD_SHOWN int munmap(void* at, std::size_t bytes) noexcept {
  if (amdgpu::process* p = amdgpu::process::made()) p->memory.lose(reinterpret_cast<std::uint64_t>(at), bytes);
  static const auto real = preload::next(static_cast<int (*)(void*, std::size_t)>(nullptr), "munmap");
  return real(at, bytes);
}

// HIP gives out no more memory of the host's than there is by this.
PRELOAD_SHOWN int sysinfo(struct sysinfo* s) noexcept {
  static const auto real = preload::next(static_cast<int (*)(struct sysinfo*)>(nullptr), "sysinfo");
  const int result = real(s);
  if (result == 0 && amdgpu::session_folder() != nullptr) {
    s->mem_unit = std::max(s->mem_unit, 1u);
    s->totalram = amdgpu::k_host_bytes / s->mem_unit;
  }
  return result;
}

// ROCr lets its threads run on all processors that it counts, and ends the process where this one may use others only.
// To name all of them is to ask for nothing.
PRELOAD_SHOWN int pthread_attr_setaffinity_np(pthread_attr_t* a, std::size_t bytes, const cpu_set_t* set) noexcept {
  if (amdgpu::session_folder() != nullptr && CPU_COUNT_S(bytes, set) >= get_nprocs_conf()) return 0;
  static const auto real = preload::next(static_cast<int (*)(pthread_attr_t*, std::size_t, const cpu_set_t*)>(nullptr),
                                         "pthread_attr_setaffinity_np");
  return real(a, bytes, set);
}

// For tests/kmod: a dma-buf of this process's memory on a GPU, as EXPORT_DMABUF of the driver; the caller's, or -1.
PRELOAD_SHOWN int xio_amdgpu_export(const void* base, std::uint64_t bytes, std::uint64_t* offset) {
  amdgpu::process* p = amdgpu::process::made();
  const int file = p == nullptr ? -1 : p->memory.file_at(reinterpret_cast<std::uint64_t>(base), bytes, offset);
  return file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 3);
}
