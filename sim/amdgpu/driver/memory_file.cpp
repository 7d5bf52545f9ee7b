// SPDX-License-Identifier: MIT
#include "amdgpu/driver/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace amdgpu {
namespace {

constexpr int k_first_fd = 200;  // out of the way of programs that count on low numbers

unique_fd move_up(int fd) {
  const int high = fcntl(fd, F_DUPFD_CLOEXEC, k_first_fd);
  if (high < 0) return unique_fd(fd);
  ::close(fd);
  return unique_fd(high);
}

void* map(std::uint64_t address, std::uint64_t bytes, int protection, int flags, int fd, std::uint64_t offset) {
  const long at = syscall(SYS_mmap, address, bytes, protection, flags, fd, offset);
  return at == -1 ? nullptr : reinterpret_cast<void*>(at);
}

}  // namespace

unique_fd::~unique_fd() {
  if (fd_ >= 0) ::close(fd_);
}

unique_fd make_memory_file(const memory_kind_of_file& kind, std::uint64_t bytes) {
  char name[64];
  std::snprintf(name, sizeof name, "amdgpu:%x:%x", kind.gpu_id, kind.flags);
  const int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) return {};
  unique_fd file = move_up(fd);
  if (ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) return {};
  return file;
}

std::string name_of_file(int fd) {
  char link[64], name[128];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, name, sizeof name);
  return length <= 0 ? "" : std::string(name, static_cast<std::size_t>(length));
}

std::optional<memory_kind_of_file> kind_of_file(int fd) {
  memory_kind_of_file kind{};
  if (std::sscanf(name_of_file(fd).c_str(), "/memfd:amdgpu:%x:%x", &kind.gpu_id, &kind.flags) != 2) return {};
  return kind;
}

bool is_register_file(int fd) { return name_of_file(fd).starts_with("/memfd:registers"); }

std::uint64_t bytes_of_file(int fd) {
  struct stat s {};
  return fstat(fd, &s) == 0 ? static_cast<std::uint64_t>(s.st_size) : 0;
}

void name_for_others(int fd, std::uint32_t share[4]) {
  struct stat s {};
  fstat(fd, &s);
  share[0] = static_cast<std::uint32_t>(getpid());
  share[1] = static_cast<std::uint32_t>(fd);
  share[2] = static_cast<std::uint32_t>(s.st_ino);
  share[3] = static_cast<std::uint32_t>(s.st_ino >> 32);
}

unique_fd open_by_name(const std::uint32_t share[4]) {
  char path[64];
  std::snprintf(path, sizeof path, "/proc/%u/fd/%u", share[0], share[1]);
  const int fd = static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC));
  if (fd < 0) return {};
  unique_fd file = move_up(fd);
  struct stat s {};
  const std::uint64_t number = share[2] | std::uint64_t{share[3]} << 32;
  if (fstat(file.get(), &s) != 0 || s.st_ino != number || !kind_of_file(file.get())) {
    errno = EINVAL;
    return {};
  }
  return file;
}

void* map_at(std::uint64_t address, std::uint64_t bytes, int protection, int fd, std::uint64_t offset) {
  void* at = map(address, bytes, protection, MAP_SHARED | MAP_FIXED, fd, offset);
  // libhsakmt says the same of its own mappings: a child that is forked has no use for them.
  if (at != nullptr) madvise(at, bytes, MADV_DONTFORK);
  return at;
}

void* map_anywhere(std::uint64_t bytes, int fd) { return map(0, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0); }

}  // namespace amdgpu
