// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_device.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/pci_regs.h>
#include <linux/vfio.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "transport/nvme/vfio_function.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::nvme {

namespace {

int open_group(const std::string& name, std::uint32_t group) {
  const std::string path = fmt::format("/dev/vfio/{}", group);
  const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (fd >= 0) return fd;
  switch (errno) {
    case EACCES:
    case EPERM:
      fail(XIO_ERR_IO, "cannot open {}: no permission for {}; chown it to this user, or run as root", name, path);
    case EBUSY:
      fail(XIO_ERR_STATE, "cannot open {}: {} is open in another process (or twice in this one); close it there", name,
           path);
    case ENOENT:
      fail(
          XIO_ERR_UNSUPPORTED,
          "cannot open {}: there is no {}; modprobe vfio-pci, pass it into the container, or, where vfio works without "
          "an IOMMU, switch the IOMMU on",
          name, path);
    default: fail(XIO_ERR_IO, "cannot open {}: {}: {}", name, path, errno_text(errno));
  }
}

void check_viable(const std::string& name, std::uint32_t group, int fd) {
  vfio_group_status status{};
  status.argsz = sizeof status;
  if (ioctl(fd, VFIO_GROUP_GET_STATUS, &status) != 0)
    fail(XIO_ERR_IO, "cannot open {}: IOMMU group {} has no status: {}", name, group, errno_text(errno));
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) != 0) return;
  const std::string others = others_in_group("", group);
  fail(XIO_ERR_STATE,
       "cannot open {}: IOMMU group {} is not viable, because others in it have kernel drivers: {}; bind them to "
       "vfio-pci too, or move the drive to another slot",
       name, group, others.empty() ? "unknown" : others);
}

}  // namespace

descriptor::~descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

vfio_device::vfio_device(const std::string& name, const std::string& bdf, std::uint32_t group)
    : space_(vfio_space::get(name)),
      group_(open_group(name, group)),
      wanted_back_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      broken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  check_viable(name, group, group_.get());
  space_->join(group_.get(), name);
  const int fd = ioctl(group_.get(), VFIO_GROUP_GET_DEVICE_FD, bdf.c_str());
  if (fd < 0) fail(XIO_ERR_IO, "cannot open {}: vfio does not give {}: {}", name, bdf, errno_text(errno));
  device_ = std::make_unique<descriptor>(fd);
  map_registers(name);
  try {
    enable_dma(name);
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
  if (ioctl(device_->get(), VFIO_DEVICE_GET_REGION_INFO, &bar) != 0)
    fail(XIO_ERR_IO, "cannot open {}: it has no BAR 0: {}", name, errno_text(errno));
  if ((bar.flags & VFIO_REGION_INFO_FLAG_MMAP) == 0 || bar.size < wire::nvme::k_reg_doorbells + 0x1000)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: its registers cannot be mapped ({} bytes, flags {:#x})", name,
         static_cast<std::uint64_t>(bar.size), bar.flags);
  void* at =
      mmap(nullptr, bar.size, PROT_READ | PROT_WRITE, MAP_SHARED, device_->get(), static_cast<off_t>(bar.offset));
  if (at == MAP_FAILED) fail(XIO_ERR_IO, "cannot open {}: its registers: {}", name, errno_text(errno));
  registers_ = static_cast<unsigned char*>(at);
  register_bytes_ = bar.size;
}

// Registers answered, DMA allowed, no INTx: completions are polled for.
void vfio_device::enable_dma(const std::string& name) {
  vfio_region_info config{};
  config.argsz = sizeof config;
  config.index = VFIO_PCI_CONFIG_REGION_INDEX;
  std::uint16_t command = 0;
  bool good = ioctl(device_->get(), VFIO_DEVICE_GET_REGION_INFO, &config) == 0;
  command_at_ = static_cast<off_t>(config.offset + PCI_COMMAND);
  good = good && pread(device_->get(), &command, sizeof command, command_at_) == sizeof command;
  command |= PCI_COMMAND_MEMORY | PCI_COMMAND_MASTER | PCI_COMMAND_INTX_DISABLE;
  good = good && pwrite(device_->get(), &command, sizeof command, command_at_) == sizeof command;
  if (!good) fail(XIO_ERR_IO, "cannot open {}: its configuration space: {}", name, errno_text(errno));
}

bool vfio_device::cut_off() const {
  std::uint16_t command = 0;
  if (pread(device_->get(), &command, sizeof command, command_at_) != sizeof command) return false;
  command &= static_cast<std::uint16_t>(~PCI_COMMAND_MASTER);
  return pwrite(device_->get(), &command, sizeof command, command_at_) == sizeof command;
}

// Kernels and devices differ in what they tell of; whoever says nothing is found out by its registers.
void vfio_device::listen(std::uint32_t index, int event) {
  alignas(vfio_irq_set) unsigned char bytes[sizeof(vfio_irq_set) + sizeof(std::int32_t)] = {};
  auto* set = reinterpret_cast<vfio_irq_set*>(bytes);
  set->argsz = sizeof bytes;
  set->flags = VFIO_IRQ_SET_DATA_EVENTFD | VFIO_IRQ_SET_ACTION_TRIGGER;
  set->index = index;
  set->count = 1;
  std::memcpy(set->data, &event, sizeof(std::int32_t));
  if (event < 0 || ioctl(device_->get(), VFIO_DEVICE_SET_IRQS, set) != 0)
    log::debug("vfio tells of no event {}: {}", index, errno_text(errno));
}

}  // namespace xio::nvme
