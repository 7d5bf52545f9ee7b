// SPDX-License-Identifier: MIT
// Looks after a drive that runs, from a thread of the host: the kernel wants it back, a PCIe error, reset by somebody
// else, unbound, pulled out, dead. Kernels that wait for it then get a status at once and not by their deadline.
#pragma once
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.hpp"

namespace xio::nvme {

class drive_watch {
 public:
  // check: called once a period, and when there is something to read at one of `hints`; returns "" or what happened.
  // lost: called once, from the same thread, with that.
  drive_watch(std::chrono::milliseconds period, std::vector<int> hints, std::function<std::string()> check,
              std::function<void(const std::string& what)> lost);
  ~drive_watch();
  drive_watch& operator=(drive_watch&&) = delete;

 private:
  void run();

  const std::chrono::milliseconds period_;
  const std::vector<int> hints_;
  std::function<std::string()> check_;
  std::function<void(const std::string&)> lost_;
  unique_fd stop_;
  std::thread thread_;
};

}  // namespace xio::nvme
