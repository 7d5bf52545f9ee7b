// SPDX-License-Identifier: MIT
// A PCI function opened by vfio: its registers, and what the kernel says of it afterwards.
#pragma once
#include <sys/types.h>

#include "base/unique_fd.hpp"
#include "gpu/gpu.hpp"
#include "transport/nvme/vfio_calls.hpp"
#include "transport/nvme/vfio_space.hpp"

namespace xio::nvme {

class vfio_device {
 public:
  // Throws the reason and the cure.
  vfio_device(const vfio_place& place, const vfio_choice& choice);
  ~vfio_device();
  vfio_device& operator=(vfio_device&&) = delete;

  vfio_space& space() const { return *space_; }
  unsigned char* registers() const { return registers_; }
  std::size_t register_bytes() const { return register_bytes_; }
  int file() const { return handles_.device.get(); }
  // Ends the device's DMA at once; false if the kernel refuses. Any thread may call it.
  bool cut_off() const;
  // Become readable when the kernel wants the device back, and when it has seen a PCIe error of it. -1: it never says.
  int wanted_back() const { return wanted_back_.get(); }
  int broken() const { return broken_.get(); }

 private:
  void map_registers(const std::string& name);
  void enable_dma(const std::string& name);
  void listen(std::uint32_t index, int event);

  std::shared_ptr<vfio_space> space_;
  vfio_handles handles_;  // go before the space
  unique_fd wanted_back_, broken_;
  unsigned char* registers_ = nullptr;
  std::size_t register_bytes_ = 0;
  off_t command_at_ = 0;  // of PCI_COMMAND in its configuration space
};

// Whole pages of BAR 0 as a dma-buf, which moves and vanishes when the device is reset.
gpu::exported_memory export_registers(vfio_calls& calls, int device, std::uint64_t offset, std::uint64_t bytes);

}  // namespace xio::nvme
