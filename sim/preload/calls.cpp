// SPDX-License-Identifier: MIT
#include "preload/calls.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>

namespace {

using preload::next;

// PATH, or what stands for it.
class place {
 public:
  explicit place(const char* path) : path_(path) {
    if (path != nullptr) there_ = preload::moved(path);
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

#define PRELOAD_OPEN(NAME)                                                                      \
  PRELOAD_SHOWN int NAME(const char* path, int flags, ...) {                                    \
    va_list more;                                                                               \
    va_start(more, flags);                                                                      \
    const mode_t mode = mode_of(flags, more);                                                   \
    va_end(more);                                                                               \
    if (const int ours = preload::open_device(path); ours != preload::k_not_ours) return ours;  \
    static const auto real = next(static_cast<int (*)(const char*, int, ...)>(nullptr), #NAME); \
    return real(place(path), flags, mode);                                                      \
  }
PRELOAD_OPEN(open)
PRELOAD_OPEN(open64)

#define PRELOAD_OPENAT(NAME)                                                                         \
  PRELOAD_SHOWN int NAME(int folder, const char* path, int flags, ...) {                             \
    va_list more;                                                                                    \
    va_start(more, flags);                                                                           \
    const mode_t mode = mode_of(flags, more);                                                        \
    va_end(more);                                                                                    \
    if (const int ours = preload::open_device(path); ours != preload::k_not_ours) return ours;       \
    static const auto real = next(static_cast<int (*)(int, const char*, int, ...)>(nullptr), #NAME); \
    return real(folder, place(path), flags, mode);                                                   \
  }
PRELOAD_OPENAT(openat)
PRELOAD_OPENAT(openat64)

#define PRELOAD_FOPEN(NAME)                                                                          \
  PRELOAD_SHOWN FILE* NAME(const char* path, const char* mode) {                                     \
    static const auto real = next(static_cast<FILE* (*)(const char*, const char*)>(nullptr), #NAME); \
    return real(place(path), mode);                                                                  \
  }
PRELOAD_FOPEN(fopen)
PRELOAD_FOPEN(fopen64)

PRELOAD_SHOWN DIR* opendir(const char* path) {
  static const auto real = next(static_cast<DIR* (*)(const char*)>(nullptr), "opendir");
  return real(place(path));
}
PRELOAD_SHOWN int access(const char* path, int mode) noexcept {
  if (preload::has_device(path)) return 0;
  static const auto real = next(static_cast<int (*)(const char*, int)>(nullptr), "access");
  return real(place(path), mode);
}
PRELOAD_SHOWN ssize_t readlink(const char* path, char* to, std::size_t bytes) noexcept {
  static const auto real = next(static_cast<ssize_t (*)(const char*, char*, std::size_t)>(nullptr), "readlink");
  return real(place(path), to, bytes);
}

static_assert(sizeof(struct stat) == sizeof(struct stat64));
#define PRELOAD_STAT(NAME, KIND)                                                                    \
  PRELOAD_SHOWN int NAME(const char* path, struct KIND* s) noexcept {                               \
    if (preload::has_device(path)) return stat_device(reinterpret_cast<struct stat*>(s));           \
    static const auto real = next(static_cast<int (*)(const char*, struct KIND*)>(nullptr), #NAME); \
    return real(place(path), s);                                                                    \
  }
PRELOAD_STAT(stat, stat)
PRELOAD_STAT(stat64, stat64)
PRELOAD_STAT(lstat, stat)
PRELOAD_STAT(lstat64, stat64)

PRELOAD_SHOWN int ioctl(int fd, unsigned long request, ...) noexcept {
  va_list more;
  va_start(more, request);
  void* argument = va_arg(more, void*);
  va_end(more);
  if (const int ours = preload::control(fd, request, argument); ours != preload::k_not_ours) return ours;
  static const auto real = next(static_cast<int (*)(int, unsigned long, ...)>(nullptr), "ioctl");
  return real(fd, request, argument);
}

#define PRELOAD_MMAP(NAME, OFFSET)                                                                                    \
  PRELOAD_SHOWN void* NAME(void* at, std::size_t bytes, int protection, int flags, int fd, OFFSET offset) noexcept {  \
    void* ours = nullptr;                                                                                             \
    if ((flags & MAP_ANONYMOUS) == 0 &&                                                                               \
        preload::map({at, bytes, protection, flags, fd, static_cast<std::uint64_t>(offset)}, &ours))                  \
      return ours;                                                                                                    \
    static const auto real = next(static_cast<void* (*)(void*, std::size_t, int, int, int, OFFSET)>(nullptr), #NAME); \
    return real(at, bytes, protection, flags, fd, offset);                                                            \
  }
PRELOAD_MMAP(mmap, off_t)
PRELOAD_MMAP(mmap64, off64_t)
