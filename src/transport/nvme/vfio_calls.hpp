// SPDX-License-Identifier: MIT
// The two system calls by which the kernel is asked for a device and for its IOMMU, so that a test can be the kernel.
#pragma once
#include <fcntl.h>
#include <sys/ioctl.h>

#include <string>

namespace xio::nvme {

class vfio_calls {
 public:
  virtual ~vfio_calls() = default;
  // As open(2), for reading and writing, and ioctl(2): below 0 and errno.
  virtual int open(const std::string& path) { return ::open(path.c_str(), O_RDWR | O_CLOEXEC); }
  virtual int control(int fd, unsigned long request, unsigned long argument) { return ::ioctl(fd, request, argument); }

  template <class T>
  int control(int fd, unsigned long request, T* argument) {
    return control(fd, request, reinterpret_cast<unsigned long>(argument));
  }
};

inline vfio_calls& kernel_calls() {
  static vfio_calls calls;
  return calls;
}

}  // namespace xio::nvme
