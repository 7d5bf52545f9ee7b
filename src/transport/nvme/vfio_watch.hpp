// SPDX-License-Identifier: MIT
// Looks after a running controller from a thread of the host: the kernel wants it back, a PCIe error, reset by somebody
// else, pulled out, dead. Kernels that wait for it then get a status at once and not by their deadline.
#pragma once
#include <functional>
#include <thread>

#include "transport/nvme/vfio_device.hpp"

namespace xio::nvme {

// Of a controller that runs, "" or what happened to it. NVMe base 2.0, 3.1.3.6; a function that is gone reads as ones.
std::string trouble_of(std::uint32_t csts);

class vfio_watch {
 public:
  // lost: called once, from the thread, with what happened and CSTS.
  vfio_watch(const vfio_device& device, std::function<void(const std::string& what, std::uint32_t csts)> lost);
  ~vfio_watch();
  vfio_watch& operator=(vfio_watch&&) = delete;

 private:
  void run();

  const vfio_device& device_;
  std::function<void(const std::string&, std::uint32_t)> lost_;
  unique_fd stop_;
  std::thread thread_;
};

}  // namespace xio::nvme
