// SPDX-License-Identifier: MIT
#include "gpu/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

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

}  // namespace

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
