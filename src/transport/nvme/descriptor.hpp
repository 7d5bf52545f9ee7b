// SPDX-License-Identifier: MIT
#pragma once
#include <unistd.h>

#include <utility>

namespace xio::nvme {

// Closes what it holds.
class descriptor {
 public:
  explicit descriptor(int fd = -1) : fd_(fd) {}
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  descriptor& operator=(descriptor&&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace xio::nvme
