// SPDX-License-Identifier: MIT
// A file as a block device, for root on Linux with the loop driver.
#pragma once
#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

#include <string>

#include "base/unique_fd.hpp"

namespace xio::test {

// Gone when nobody has it open any more.
class loop_device {
 public:
  explicit loop_device(const std::string& file) {
    const unique_fd control(open("/dev/loop-control", O_RDWR | O_CLOEXEC));
    const unique_fd backing(open(file.c_str(), O_RDWR | O_CLOEXEC));
    if (!control || !backing) return;
    // Another process may take the free one first.
    for (int i = 0; i < 8 && path_.empty(); ++i) attach(ioctl(control.get(), LOOP_CTL_GET_FREE), backing.get());
  }
  const std::string& path() const { return path_; }  // empty: there is none to be had

 private:
  void attach(int number, int backing) {
    if (number < 0) return;
    const std::string path = "/dev/loop" + std::to_string(number);
    device_.reset(open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!device_ || ioctl(device_.get(), LOOP_SET_FD, backing) != 0) return;
    loop_info64 info{};
    info.lo_flags = LO_FLAGS_AUTOCLEAR;
    if (ioctl(device_.get(), LOOP_SET_STATUS64, &info) == 0)
      path_ = path;
    else
      ioctl(device_.get(), LOOP_CLR_FD);
  }

  unique_fd device_;
  std::string path_;
};

}  // namespace xio::test
