// SPDX-License-Identifier: MIT
// The calls that a preloaded library handles in place of the C library: those that open /dev/xio and /dev/udmabuf,
// those on descriptors of them, and those that look for the drive below /sys. In a process that is in no session
// (settings.hpp) all of them go on to the C library, or to the software GPU's driver where that is preloaded, too.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include "kmod/buffers.hpp"
#include "kmod/module.hpp"
#include "kmod/settings.hpp"

#define KMOD_SHOWN extern "C" __attribute__((visibility("default")))

namespace {

using kmod_sim::kernel_module;

template <class Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

enum class device { none, module, udmabuf };

std::mutex lock;
// By the number of the file that stands for an open. Made on first use, as libraries map memory before this one is set
// up, and never destroyed.
std::map<ino_t, device>& opens() {
  static auto& all = *new std::map<ino_t, device>;
  return all;
}

ino_t number_of(int fd) {
  struct stat s {};
  return fd >= 0 && fstat(fd, &s) == 0 ? s.st_ino : 0;
}

device device_of(int fd, ino_t* number) {
  if (kmod_sim::session() == nullptr) return device::none;
  const std::lock_guard hold(lock);
  if (opens().empty()) return device::none;
  const int before = errno;
  *number = number_of(fd);
  errno = before;
  const auto found = opens().find(*number);
  return found == opens().end() ? device::none : found->second;
}

// -2: none of ours.
int open_ours(const char* path) {
  if (path == nullptr || kmod_sim::session() == nullptr) return -2;
  const bool module = std::strcmp(path, "/dev/xio") == 0;
  if (!module && std::strcmp(path, "/dev/udmabuf") != 0) return -2;
  const std::string& state = kmod_sim::session()->module;
  if (module && (state == "absent" || state == "denied")) {
    errno = state == "absent" ? ENOENT : EACCES;
    return -1;
  }
  const int fd = memfd_create(module ? "xio-module" : "xio-udmabuf", MFD_CLOEXEC);
  if (fd < 0) return -1;
  const std::lock_guard hold(lock);
  opens()[number_of(fd)] = module ? device::module : device::udmabuf;
  return fd;
}

// PATH, or what stands for it in the session's folder.
class moved {
 public:
  explicit moved(const char* path) : path_(path) {
    static const std::string from = std::string("/sys/bus/pci/devices/") + kmod_sim::k_bdf;
    if (path == nullptr || kmod_sim::session() == nullptr || std::strncmp(path, from.c_str(), from.size()) != 0) return;
    const char end = path[from.size()];
    if (end == 0 || end == '/') there_ = kmod_sim::session()->folder + "/sys" + (path + from.size());
  }
  operator const char*() const { return there_.empty() ? path_ : there_.c_str(); }

 private:
  const char* path_;
  std::string there_;
};

mode_t mode_of(int flags, va_list more) { return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(more, mode_t) : 0; }

}  // namespace

#define KMOD_OPEN(NAME)                                                                         \
  KMOD_SHOWN int NAME(const char* path, int flags, ...) {                                       \
    va_list more;                                                                               \
    va_start(more, flags);                                                                      \
    const mode_t mode = mode_of(flags, more);                                                   \
    va_end(more);                                                                               \
    if (const int ours = open_ours(path); ours != -2) return ours;                              \
    static const auto real = next(static_cast<int (*)(const char*, int, ...)>(nullptr), #NAME); \
    return real(moved(path), flags, mode);                                                      \
  }
KMOD_OPEN(open)
KMOD_OPEN(open64)

#define KMOD_FOPEN(NAME)                                                                             \
  KMOD_SHOWN FILE* NAME(const char* path, const char* mode) {                                        \
    static const auto real = next(static_cast<FILE* (*)(const char*, const char*)>(nullptr), #NAME); \
    return real(moved(path), mode);                                                                  \
  }
KMOD_FOPEN(fopen)
KMOD_FOPEN(fopen64)

KMOD_SHOWN DIR* opendir(const char* path) {
  static const auto real = next(static_cast<DIR* (*)(const char*)>(nullptr), "opendir");
  return real(moved(path));
}
KMOD_SHOWN int access(const char* path, int mode) noexcept {
  static const auto real = next(static_cast<int (*)(const char*, int)>(nullptr), "access");
  return real(moved(path), mode);
}
KMOD_SHOWN ssize_t readlink(const char* path, char* to, std::size_t bytes) noexcept {
  static const auto real = next(static_cast<ssize_t (*)(const char*, char*, std::size_t)>(nullptr), "readlink");
  return real(moved(path), to, bytes);
}

#define KMOD_STAT(NAME, KIND)                                                                       \
  KMOD_SHOWN int NAME(const char* path, struct KIND* s) noexcept {                                  \
    static const auto real = next(static_cast<int (*)(const char*, struct KIND*)>(nullptr), #NAME); \
    return real(moved(path), s);                                                                    \
  }
KMOD_STAT(stat, stat)
KMOD_STAT(stat64, stat64)
KMOD_STAT(lstat, stat)
KMOD_STAT(lstat64, stat64)

KMOD_SHOWN int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list more;
  va_start(more, request);
  void* argument = va_arg(more, void*);
  va_end(more);
  ino_t number = 0;
  const device kind = device_of(fd, &number);
  if (kind == device::none) {
    static const auto real = next(static_cast<int (*)(int, unsigned long, ...)>(nullptr), "ioctl");
    return real(fd, request, argument);
  }
  if (kind == device::udmabuf && request == UDMABUF_CREATE)
    return kmod_sim::make_udmabuf(*static_cast<const udmabuf_create*>(argument));
  const int failed = kind == device::module ? kernel_module::current()->call(number, request, argument) : ENOTTY;
  if (failed == 0) return 0;
  errno = failed;
  return -1;
}

#define KMOD_MMAP(NAME, OFFSET)                                                                                       \
  KMOD_SHOWN void* NAME(void* at, std::size_t bytes, int protection, int flags, int fd, OFFSET offset) noexcept {     \
    ino_t number = 0;                                                                                                 \
    if ((flags & MAP_ANONYMOUS) == 0 && device_of(fd, &number) == device::module)                                     \
      return kernel_module::current()->map(number, at, bytes, protection, flags, static_cast<std::uint64_t>(offset)); \
    static const auto real = next(static_cast<void* (*)(void*, std::size_t, int, int, int, OFFSET)>(nullptr), #NAME); \
    return real(at, bytes, protection, flags, fd, offset);                                                            \
  }
KMOD_MMAP(mmap, off_t)
KMOD_MMAP(mmap64, off64_t)

// An open ends with its descriptor; nothing here copies those of /dev/xio.
KMOD_SHOWN int close(int fd) {
  ino_t number = 0;
  if (device_of(fd, &number) != device::none) {
    if (kernel_module* m = kernel_module::current(); m != nullptr) m->close(number);
    const std::lock_guard hold(lock);
    opens().erase(number);
  }
  static const auto real = next(static_cast<int (*)(int)>(nullptr), "close");
  return real(fd);
}
