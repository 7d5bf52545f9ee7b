// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_device.hpp"

#include <fcntl.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::nvme {

vfio_device::vfio_device(const vfio_place& place, const vfio_choice& choice)
    : space_(vfio_space::get(choice, place.name)),
      handles_(space_->admit(place)),
      wanted_back_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      broken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  map_registers(place.name);
  try {
    enable_dma(place.name);
  } catch (...) {
    munmap(registers_, register_bytes_);
    throw;
  }
  listen(VFIO_PCI_REQ_IRQ_INDEX, wanted_back_.get());
  listen(VFIO_PCI_ERR_IRQ_INDEX, broken_.get());
}

vfio_device::~vfio_device() { munmap(registers_, register_bytes_); }

void vfio_device::map_registers(const std::string& name) {
  vfio_region_info bar{};
  bar.argsz = sizeof bar;
  bar.index = VFIO_PCI_BAR0_REGION_INDEX;
  if (ioctl(handles_.device.get(), VFIO_DEVICE_GET_REGION_INFO, &bar) != 0)
    fail(XIO_ERR_IO, "cannot open {}: it has no BAR 0: {}", name, errno_text(errno));
  if ((bar.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0 || bar.size < wire::nvme::k_reg_doorbells + 0x1000)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: its registers cannot be mapped ({} bytes, flags {:#x})", name,
         static_cast<std::uint64_t>(bar.size), bar.flags);
  void* at = mmap(nullptr, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, handles_.device.get(),
                  static_cast<off_t>(bar.offset));
  if (at == MAP_FAILED) fail(XIO_ERR_IO, "cannot open {}: its registers: {}", name, errno_text(errno));
  registers_ = static_cast<unsigned char*>(at);
  register_bytes_ = bar.size;
}

// Lets the device decode accesses to its registers and do DMA, without INTx: completions are polled for.
void vfio_device::enable_dma(const std::string& name) {
  vfio_region_info config{};
  config.argsz = sizeof config;
  config.index = VFIO_PCI_CONFIG_REGION_INDEX;
  std::uint16_t command = 0;
  bool good = ioctl(handles_.device.get(), VFIO_DEVICE_GET_REGION_INFO, &config) == 0;
  command_at_ = static_cast<off_t>(config.offset + PCI_COMMAND);
  good = good && pread(handles_.device.get(), &command, sizeof command, command_at_) == sizeof command;
  command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE;
  good = good && pwrite(handles_.device.get(), &command, sizeof command, command_at_) == sizeof command;
  if (!good) fail(XIO_ERR_IO, "cannot open {}: its configuration space: {}", name, errno_text(errno));
}

// Linux 7.2 and newer (drivers/vfio/pci/vfio_pci_dmabuf.c); headers of distributions are older.
gpu::exported_memory export_registers(vfio_calls& calls, int device, std::uint64_t offset, std::uint64_t bytes) {
  struct {
    std::uint32_t argsz, flags, region, open_flags, zero, ranges;
    std::uint64_t offset, bytes;
  } a{sizeof a, VFIO_DEVICE_FEATURE_GET | 11, VFIO_PCI_BAR0_REGION_INDEX, O_RDWR | O_CLOEXEC, 0, 1, offset, bytes};
  if (offset % gpu::page_size() != 0 || bytes % gpu::page_size() != 0)
    return {-1, 0, "the doorbells share a page with other registers, which kernels do not get"};
  if (const int fd = calls.control(device, VFIO_DEVICE_FEATURE, &a); fd >= 0) return {fd};
  return {-1, 0, "vfio exports no registers (" + errno_text(errno) + "); Linux 7.2 is the first that does"};
}

bool vfio_device::cut_off() const {
  std::uint16_t command = 0;
  if (pread(handles_.device.get(), &command, sizeof command, command_at_) != sizeof command) return false;
  command &= static_cast<std::uint16_t>(~PCI_COMMAND_MASTER);
  return pwrite(handles_.device.get(), &command, sizeof command, command_at_) == sizeof command;
}

// Kernels and devices differ in the events that they signal; the loss of a device without events shows in its
// registers.
void vfio_device::listen(std::uint32_t index, int event) {
  alignas(vfio_irq_set) unsigned char bytes[sizeof(vfio_irq_set) + sizeof(std::int32_t)] = {};
  auto* set = reinterpret_cast<vfio_irq_set*>(bytes);
  set->argsz = sizeof bytes;
  set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  set->index = index;
  set->count = 1;
  std::memcpy(set->data, &event, sizeof(std::int32_t));
  if (event < 0 || ioctl(handles_.device.get(), VFIO_DEVICE_SET_IRQS, set) != 0)
    log::debug("vfio tells of no event {}: {}", index, errno_text(errno));
}

}  // namespace xio::nvme
