// SPDX-License-Identifier: MIT
// Memory of another PCI device that queues and lists of drives lie in: a window (BAR) of it, by sysfs. Of a device with
// memory and no driver, such as one that stands in for a GPU in a virtual machine.
#pragma once
#include <cstddef>
#include <string>

#include "memory/allocator.hpp"

namespace xio::nvme {

class vfio_lender {
 public:
  // where: "0000:0a:00.0/2", function and number of the BAR. root: "" or a folder that stands for it. Throws, before
  // anything is touched, unless no driver has the function, it is no NVMe controller and the BAR is prefetchable.
  explicit vfio_lender(const std::string& where, const std::string& root = "");
  ~vfio_lender();
  vfio_lender& operator=(vfio_lender&&) = delete;

  void* lend(std::size_t bytes);  // zeroed whole pages; throws XIO_ERR_NO_MEMORY, or that it keeps nothing
  void take_back(void* base);

 private:
  std::string where_;
  unsigned char* base_ = nullptr;
  std::size_t bytes_ = 0;
  memory::allocator free_{0, 0};
};

}  // namespace xio::nvme
