// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_calls.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

namespace xio::nvme {

int vfio_calls::open(const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); }

int vfio_calls::control(int fd, unsigned long request, unsigned long argument) {
  return ::ioctl(fd, request, argument);
}

vfio_calls& kernel_calls() {
  static vfio_calls calls;
  return calls;
}

}  // namespace xio::nvme
