// SPDX-License-Identifier: MIT
#include "kmod/buffers.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <map>
#include <mutex>

#include "amdgpu/driver/kfd_uapi.hpp"

namespace kmod_sim {
namespace {

constexpr std::uint64_t k_page = 4096;
constexpr std::uint64_t k_most_of_udmabuf = 64 << 20;  // its parameter size_limit_mb, as it is by default

std::mutex lock;
// By the number of the file that stands for the dma-buf. Never destroyed: exit handlers close drives.
std::map<ino_t, buffer>& udmabufs() {
  static auto& all = *new std::map<ino_t, buffer>;
  return all;
}

int duplicate(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 200); }

int find_udmabuf(const struct stat& s, buffer& out) {
  const std::lock_guard hold(lock);
  const auto found = udmabufs().find(s.st_ino);
  if (found == udmabufs().end()) return EINVAL;
  out.file = xio::unique_fd(duplicate(found->second.file.get()));
  out.offset = found->second.offset;
  out.bytes = found->second.bytes;
  return out.file ? 0 : EMFILE;
}

}  // namespace

int find_buffer(int fd, buffer& out) {
  struct stat s {};
  if (fd < 0 || fstat(fd, &s) != 0) return EBADF;
  char link[64], name[128];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, name, sizeof name - 1);
  if (length <= 0) return EBADF;
  name[length] = 0;
  unsigned gpu = 0, flags = 0;
  if (std::sscanf(name, "/memfd:amdgpu:%x:%x", &gpu, &flags) != 2) return find_udmabuf(s, out);
  out.file = xio::unique_fd(duplicate(fd));
  out.offset = 0;
  out.bytes = static_cast<std::uint64_t>(s.st_size);
  out.of_gpu = (flags & amdgpu::uapi::in_vram) != 0;
  return out.file ? 0 : EMFILE;
}

int make_udmabuf(const udmabuf_create& wish) {
  const int seals = fcntl(static_cast<int>(wish.memfd), F_GET_SEALS);
  struct stat s {};
  const bool sealed = seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && (seals & F_SEAL_WRITE) == 0;
  if (!sealed || wish.offset % k_page != 0 || wish.size % k_page != 0 || wish.size == 0 ||
      wish.size > k_most_of_udmabuf || fstat(static_cast<int>(wish.memfd), &s) != 0 ||
      wish.offset + wish.size > static_cast<std::uint64_t>(s.st_size)) {
    errno = seals < 0 ? EBADFD : EINVAL;
    return -1;
  }
  const int fd = memfd_create("dmabuf", MFD_CLOEXEC);
  xio::unique_fd file(duplicate(static_cast<int>(wish.memfd)));
  if (fd < 0 || !file || fstat(fd, &s) != 0) return -1;
  const std::lock_guard hold(lock);
  udmabufs().insert_or_assign(s.st_ino, buffer{std::move(file), wish.offset, wish.size, false});
  return fd;
}

}  // namespace kmod_sim
