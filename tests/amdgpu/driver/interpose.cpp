// SPDX-License-Identifier: MIT
// The calls that a preloaded library handles in place of the C library: those that open the driver's files or describe
// them, and those on descriptors of it. In a process that is in no session (settings.hpp) all of them go on to the C
// library.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "amdgpu/driver/descriptors.hpp"
#include "amdgpu/driver/kfd_ioctls.hpp"
#include "amdgpu/driver/process.hpp"
#include "amdgpu/driver/settings.hpp"
#include "amdgpu/driver/topology.hpp"

#define AMDGPU_SHOWN extern "C" __attribute__((visibility("default")))

namespace {

using amdgpu::device_file;

template <class Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

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

// -2: none of ours.
int open_ours(const char* path) {
  const device_file kind = device_at(path);
  if (kind == device_file::none) return -2;
  amdgpu::process* p = amdgpu::process::current();
  if (p == nullptr) {
    errno = ENODEV;
    return -1;
  }
  return amdgpu::open_device_file(kind);
}

// PATH, or what stands for it in the session's folder.
class moved {
 public:
  explicit moved(const char* path) : path_(path) {
    if (path != nullptr && (std::strncmp(path, "/sys/", 5) == 0 || std::strncmp(path, "/proc/m", 7) == 0))
      there_ = amdgpu::redirected(amdgpu::session_folder(), path);
  }
  operator const char*() const { return there_.empty() ? path_ : there_.c_str(); }

 private:
  const char* path_;
  std::string there_;
};

mode_t mode_of(int flags, va_list more) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; }

int stat_device(struct stat* s) {
  *s = {};
  s->st_mode = S_IFCHR | 0666;
  return 0;
}

}  // namespace

#define AMDGPU_OPEN(NAME)                                                                       \
  AMDGPU_SHOWN int NAME(const char* path, int flags, ...) {                                     \
    va_list more;                                                                               \
    va_start(more, flags);                                                                      \
    const mode_t mode = mode_of(flags, more);                                                   \
    va_end(more);                                                                               \
    if (const int ours = open_ours(path); ours != -2) return ours;                              \
    static const auto real = next(static_cast<int (*)(const char*, int, ...)>(nullptr), #NAME); \
    return real(moved(path), flags, mode);                                                      \
  }
AMDGPU_OPEN(open)
AMDGPU_OPEN(open64)

#define AMDGPU_OPENAT(NAME)                                                                          \
  AMDGPU_SHOWN int NAME(int folder, const char* path, int flags, ...) {                              \
    va_list more;                                                                                    \
    va_start(more, flags);                                                                           \
    const mode_t mode = mode_of(flags, more);                                                        \
    va_end(more);                                                                                    \
    if (const int ours = open_ours(path); ours != -2) return ours;                                   \
    static const auto real = next(static_cast<int (*)(int, const char*, int, ...)>(nullptr), #NAME); \
    return real(folder, moved(path), flags, mode);                                                   \
  }
AMDGPU_OPENAT(openat)
AMDGPU_OPENAT(openat64)

AMDGPU_SHOWN FILE* fopen(const char* path, const char* mode) {
  static const auto real = next(static_cast<FILE* (*)(const char*, const char*)>(nullptr), "fopen");
  return real(moved(path), mode);
}
AMDGPU_SHOWN FILE* fopen64(const char* path, const char* mode) {
  static const auto real = next(static_cast<FILE* (*)(const char*, const char*)>(nullptr), "fopen64");
  return real(moved(path), mode);
}
AMDGPU_SHOWN DIR* opendir(const char* path) {
  static const auto real = next(static_cast<DIR* (*)(const char*)>(nullptr), "opendir");
  return real(moved(path));
}
AMDGPU_SHOWN int access(const char* path, int mode) {
  if (device_at(path) != device_file::none) return 0;
  static const auto real = next(static_cast<int (*)(const char*, int)>(nullptr), "access");
  return real(moved(path), mode);
}

#define AMDGPU_STAT(NAME, KIND)                                                                      \
  AMDGPU_SHOWN int NAME(const char* path, struct KIND* s) {                                          \
    if (device_at(path) != device_file::none) return stat_device(reinterpret_cast<struct stat*>(s)); \
    static const auto real = next(static_cast<int (*)(const char*, struct KIND*)>(nullptr), #NAME);  \
    return real(moved(path), s);                                                                     \
  }
static_assert(sizeof(struct stat) == sizeof(struct stat64));
AMDGPU_STAT(stat, stat)
AMDGPU_STAT(stat64, stat64)
AMDGPU_STAT(lstat, stat)
AMDGPU_STAT(lstat64, stat64)

AMDGPU_SHOWN int ioctl(int fd, unsigned long request, ...) {
  va_list more;
  va_start(more, request);
  void* argument = va_arg(more, void*);
  va_end(more);
  const device_file kind = amdgpu::device_file_of(fd);
  if (kind == device_file::none) {
    static const auto real = next(static_cast<int (*)(int, unsigned long, ...)>(nullptr), "ioctl");
    return real(fd, request, argument);
  }
  amdgpu::process* p = amdgpu::process::current();
  const int failed = p == nullptr || kind == device_file::render
                         ? ENOTTY
                         : amdgpu::kfd_ioctl(*p, static_cast<std::uint32_t>(request), argument);
  if (failed == 0) return 0;
  errno = failed;
  return -1;
}

namespace {

void* map_ours(void* at, std::size_t bytes, int protection, int flags, off_t offset) {
  amdgpu::process* p = amdgpu::process::current();
  void* there =
      p == nullptr ? nullptr : p->memory.mmap(at, bytes, protection, flags, static_cast<std::uint64_t>(offset));
  return there == nullptr ? MAP_FAILED : there;
}

}  // namespace

#define AMDGPU_MMAP(NAME, OFFSET)                                                                                     \
  AMDGPU_SHOWN void* NAME(void* at, std::size_t bytes, int protection, int flags, int fd, OFFSET offset) {            \
    if ((flags & MAP_ANONYMOUS) == 0 && amdgpu::device_file_of(fd) != device_file::none)                              \
      return map_ours(at, bytes, protection, flags, offset);                                                          \
    static const auto real = next(static_cast<void* (*)(void*, std::size_t, int, int, int, OFFSET)>(nullptr), #NAME); \
    return real(at, bytes, protection, flags, fd, offset);                                                            \
  }
AMDGPU_MMAP(mmap, off_t)
AMDGPU_MMAP(mmap64, off64_t)

AMDGPU_SHOWN int munmap(void* at, std::size_t bytes) noexcept {
  if (amdgpu::process* p = amdgpu::process::made()) p->memory.lose(reinterpret_cast<std::uint64_t>(at), bytes);
  static const auto real = next(static_cast<int (*)(void*, std::size_t)>(nullptr), "munmap");
  return real(at, bytes);
}

// For tests/kmod: a dma-buf of this process's memory on a GPU, as EXPORT_DMABUF of the driver; the caller's, or -1.
AMDGPU_SHOWN int xio_amdgpu_export(const void* base, std::uint64_t bytes, std::uint64_t* offset) {
  amdgpu::process* p = amdgpu::process::made();
  const int file = p == nullptr ? -1 : p->memory.file_at(reinterpret_cast<std::uint64_t>(base), bytes, offset);
  return file < 0 ? -1 : fcntl(file, F_DUPFD_CLOEXEC, 3);
}
