// SPDX-License-Identifier: MIT
#include "gpu/memory_file.hpp"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/error.hpp"
#include "gpu/host_pages.hpp"

namespace xio::gpu {

namespace {

// The limit holds for memory files, too, and the signal that it sends ends the program.
void check_file_limit(std::size_t bytes, const char* what, const char* cure) {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && bytes > limit.rlim_cur)
    fail(XIO_ERR_NO_MEMORY,
         "{} bytes of {}: this process may make no file of more than {} bytes; raise ulimit -f, or {}", bytes, what,
         limit.rlim_cur, cure);
}

// A line of /proc/self/maps: begin, end, rights, offset, device, inode, name (proc_pid_maps(5)).
struct map_line {
  std::uint64_t begin = 0, end = 0, offset = 0, inode = 0;
  unsigned major = 0, minor = 0;
  bool shared = false;
};

std::optional<map_line> read_line(const std::string& text) {
  map_line m;
  char rights[5] = {};
  // NOLINTNEXTLINE(cert-err34-c): the count of fields is checked
  if (std::sscanf(text.c_str(), "%lx-%lx %4s %lx %x:%x %lu", &m.begin, &m.end, rights, &m.offset, &m.major, &m.minor,
                  &m.inode) != 7)
    return std::nullopt;
  m.shared = rights[3] == 's';
  return m;
}

// The mapping of one file that holds all of [first, last): parts that follow each other in the file count as one.
std::optional<map_line> mapping_of(std::uint64_t first, std::uint64_t last) {
  std::ifstream maps("/proc/self/maps");
  std::optional<map_line> found;
  for (std::string text; std::getline(maps, text);) {
    const auto m = read_line(text);
    if (!m || m->end <= first) continue;
    if (m->begin >= last || !m->shared || m->inode == 0) return std::nullopt;
    if (!found) {
      if (m->begin > first) return std::nullopt;
      found = m;
    } else if (m->begin != found->end || m->inode != found->inode || m->major != found->major ||
               m->minor != found->minor || m->offset != found->offset + (found->end - found->begin)) {
      return std::nullopt;
    } else {
      found->end = m->end;
    }
    if (found->end >= last) return found;
  }
  return std::nullopt;
}

bool is_file_of(int fd, const map_line& m) {
  struct stat st {};
  return fstat(fd, &st) == 0 && st.st_ino == m.inode && major(st.st_dev) == m.major && minor(st.st_dev) == m.minor;
}

}  // namespace

std::optional<file_place> find_memory_file(const void* base, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uint64_t>(base);
  if (bytes == 0 || first + bytes < first) return std::nullopt;
  const auto mapped = mapping_of(first, first + bytes);
  if (!mapped) return std::nullopt;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const int number = std::atoi(entry.path().filename().c_str());
    if (!is_file_of(number, *mapped)) continue;
    // Another thread may close it: what was found is what the copy is.
    unique_fd copy(fcntl(number, F_DUPFD_CLOEXEC, 0));
    if (copy && is_file_of(copy.get(), *mapped))
      return file_place{std::move(copy), mapped->offset + (first - mapped->begin)};
  }
  return std::nullopt;
}

std::uint64_t largest_udmabuf() {
  // drivers/dma-buf/udmabuf.c: a parameter, and what it is where nobody has set it.
  std::ifstream parameter("/sys/module/udmabuf/parameters/size_limit_mb");
  std::uint64_t mib = 0;
  if (!(parameter >> mib) || mib == 0) mib = 64;
  return mib << 20;
}

unique_fd make_udmabuf(int file, std::uint64_t offset, std::uint64_t bytes, const void* at) {
  const unique_fd device(open("/dev/udmabuf", O_RDWR | O_CLOEXEC));
  if (!device)
    fail(XIO_ERR_UNSUPPORTED,
         "a dma-buf of the memory at {}: /dev/udmabuf: {}; load the kernel's udmabuf and give this user the right to "
         "open it",
         at, errno_text(errno));
  udmabuf_create wanted{};
  wanted.memfd = static_cast<__u32>(file);
  wanted.flags = UDMABUF_FLAGS_CLOEXEC;
  wanted.offset = offset;
  wanted.size = bytes;
  unique_fd made(ioctl(device.get(), UDMABUF_CREATE, &wanted));
  if (!made)
    fail(XIO_ERR_IO, "a dma-buf of {} bytes at {}: /dev/udmabuf: {}; its limits are parameters of the module udmabuf",
         bytes, at, errno_text(errno));
  return made;
}

unique_fd make_memory_file(const std::string& name, std::size_t bytes, const char* what, const char* cure) {
  check_available(bytes, what, cure);
  check_file_limit(bytes, what, cure);
  unique_fd fd(memfd_create(name.c_str(), MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) fail(XIO_ERR_IO, "a file for {} bytes of {}: {}", bytes, what, errno_text(errno));
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    fail(XIO_ERR_NO_MEMORY, "{} bytes of {}: {}; {}", bytes, what, errno_text(errno), cure);
  // The first two are also what the kernel's udmabuf asks for (drivers/dma-buf/udmabuf.c).
  if (fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail(XIO_ERR_IO, "sealing {} bytes of {}: {}", bytes, what, errno_text(errno));
  return fd;
}

}  // namespace xio::gpu
