// SPDX-License-Identifier: MIT
// The calls of the kernel that ioctl_driver.cpp makes, so that tests can put another kernel in its place.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

namespace xio::sdma {

class kfd_kernel {
 public:
  virtual ~kfd_kernel() = default;
  // On /dev/kfd. 0 or an errno.
  virtual int control(unsigned long request, void* arguments) noexcept = 0;
  // Shows the process a dma-buf, or /dev/kfd itself for fd -1, at that place of its address space. 0 or an errno.
  virtual int show(void* at, std::size_t bytes, int fd, std::uint64_t offset) noexcept = 0;
};

// Opens /dev/kfd. Throws XIO_ERR_UNSUPPORTED with the reason and its cure.
std::unique_ptr<kfd_kernel> open_kfd_kernel();

}  // namespace xio::sdma
