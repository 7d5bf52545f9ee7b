// SPDX-License-Identifier: MIT
// Looks after a controller of the kernel module from a thread of the host: unbound, pulled out, reset, dead. Kernels
// that wait for it then get a status at once and not by their deadline.
#pragma once
#include <functional>
#include <string>
#include <thread>

#include "base/unique_fd.hpp"

namespace xio::nvme {

class kmod_watch {
 public:
  // check: called four times a second, returns "" or what happened. lost: called once, from the thread, with that.
  kmod_watch(std::function<std::string()> check, std::function<void(const std::string& what)> lost);
  ~kmod_watch();
  kmod_watch& operator=(kmod_watch&&) = delete;

 private:
  void run();

  std::function<std::string()> check_;
  std::function<void(const std::string&)> lost_;
  unique_fd stop_;
  std::thread thread_;
};

}  // namespace xio::nvme
