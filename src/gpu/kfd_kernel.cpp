// SPDX-License-Identifier: MIT
#include "gpu/kfd_kernel.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/unique_fd.hpp"

namespace xio {
namespace {

class linux_kernel final : public kfd_kernel {
 public:
  explicit linux_kernel(unique_fd kfd) : kfd_(std::move(kfd)) {}

  int control(unsigned long request, void* arguments, int drm_file) noexcept override {
    while (ioctl(drm_file < 0 ? kfd_.get() : drm_file, request, arguments) != 0)
      if (errno != EINTR && errno != EAGAIN) return errno;
    return 0;
  }

  int show(void* at, std::size_t bytes, int fd, std::uint64_t offset) noexcept override {
    void* const there = mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd < 0 ? kfd_.get() : fd,
                             static_cast<off_t>(offset));
    return there == MAP_FAILED ? errno : 0;
  }

 private:
  const unique_fd kfd_;
};

}  // namespace

std::unique_ptr<kfd_kernel> open_kfd_kernel() {
  unique_fd kfd(open("/dev/kfd", O_RDWR | O_CLOEXEC));
  if (!kfd) {
    const int err = errno;
    fail(XIO_ERR_UNSUPPORTED, "/dev/kfd cannot be opened ({}); {}", errno_text(err),
         err == ENOENT ? "load the amdgpu driver on a machine with an AMD GPU, and give containers the file"
         : err == EACCES || err == EPERM ? "join the group render, or let the container's device cgroup have it"
                                         : "dmesg may say more");
  }
  return std::make_unique<linux_kernel>(std::move(kfd));
}

}  // namespace xio
