// SPDX-License-Identifier: MIT
// The calls of the kernel that ioctl_driver.cpp and foreign_registers.cpp make, so that tests can put another kernel in
// its place.
#pragma once
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.hpp"

namespace xio {

class kfd_kernel {
 public:
  virtual ~kfd_kernel() = default;
  // On /dev/kfd, or on a DRM file. 0 or an errno.
  virtual int control(unsigned long request, void* arguments, int drm_file = -1) noexcept = 0;
  // Shows the process a dma-buf, or /dev/kfd itself for fd -1, at that place of its address space. 0 or an errno.
  virtual int show(void* at, std::size_t bytes, int fd, std::uint64_t offset) noexcept = 0;
};

// Address space that nobody else gets: the GPU sees an object where the host does.
class address_range {
 public:
  explicit address_range(std::size_t bytes) : bytes_(bytes) {
    at_ = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at_ == MAP_FAILED)
      fail(XIO_ERR_NO_MEMORY, "{} bytes of address space for a GPU: {}", bytes_, errno_text(errno));
  }
  ~address_range() {
    if (!kept_) munmap(at_, bytes_);
  }
  address_range& operator=(address_range&&) = delete;
  // Takes the pages away from the process, and keeps the range.
  void hide() noexcept { mmap(at_, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0); }
  // For ever: the GPU may still see an object there.
  void keep() noexcept { kept_ = true; }
  void* at() const { return at_; }
  std::size_t bytes() const { return bytes_; }

 private:
  void* at_;
  const std::size_t bytes_;
  bool kept_ = false;
};

// Opens /dev/kfd. Throws XIO_ERR_UNSUPPORTED with the reason and its cure.
std::unique_ptr<kfd_kernel> open_kfd_kernel();

}  // namespace xio
