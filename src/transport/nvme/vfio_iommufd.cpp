// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_iommufd.hpp"

#include <cerrno>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "transport/nvme/iommufd_abi.hpp"

namespace xio::nvme {

namespace abi = iommufd;

namespace {

constexpr const char* k_iommu = "/dev/iommu";
// Of a machine there are a handful; the kernel's word for more than these is not taken.
constexpr std::uint32_t k_most_ranges = 4096;

}  // namespace

vfio_iommufd::vfio_iommufd(vfio_calls& calls, const std::string& name)
    : calls_(calls),
      iommu_(open_device_file(calls, name, k_iommu,
                              "modprobe iommufd, pass it into the container, or set XIO_VFIO_IOMMU=type1")) {
  abi::ioas_alloc a{};
  a.size = sizeof a;
  if (calls_.control(iommu_.get(), abi::k_ioas_alloc, &a) != 0)
    fail(XIO_ERR_IO, "cannot open {}: {} gives no address space: {}", name, k_iommu, errno_text(errno));
  space_ = a.out_ioas_id;
}

vfio_handles vfio_iommufd::admit(const vfio_place& place) {
  if (place.cdev.empty())
    fail(XIO_ERR_UNSUPPORTED,
         "cannot open {}: {} has no file in /dev/vfio/devices, because the kernel was made without "
         "CONFIG_VFIO_DEVICE_CDEV; set XIO_VFIO_IOMMU=type1",
         place.name, place.bdf);
  unique_fd device(
      open_device_file(calls_, place.name, place.cdev, "pass it into the container, or set XIO_VFIO_IOMMU=type1"));
  bind(device.get(), place);
  // Undone, as the binding is, when the device is closed.
  abi::device_attach a{};
  a.argsz = sizeof a;
  a.pt_id = space_;
  if (calls_.control(device.get(), abi::k_device_attach, &a) != 0)
    fail(XIO_ERR_IO, "cannot open {}: it cannot join the process's other drives: {}; open it alone", place.name,
         errno_text(errno));
  return {unique_fd(), std::move(device)};
}

// The errors are those of Linux 6.12: drivers/vfio/device_cdev.c, vfio_main.c (vfio_df_open) and
// drivers/iommu/iommufd/device.c (iommufd_device_bind).
void vfio_iommufd::bind(int device, const vfio_place& place) {
  abi::device_bind b{};
  b.argsz = sizeof b;
  b.iommufd = iommu_.get();
  if (calls_.control(device, abi::k_device_bind, &b) == 0) return;
  const int why = errno;
  if (why == EPERM) {
    // The group has another owner: the kernel's own drivers, or another process. Or interrupts are not isolated.
    if (const std::string others = others_in_group("", place.group); !others.empty())
      fail_not_viable(place.name, place.group, others);
    fail(XIO_ERR_STATE,
         "cannot open {}: the kernel does not hand {} over: {}; close what another process has open of IOMMU group {}, "
         "or, if none has, switch interrupt remapping on in the firmware",
         place.name, place.cdev, errno_text(why), place.group);
  }
  // EBUSY: by its group. EINVAL: by this very file, or the IOMMU cannot keep the caches coherent.
  if (why == EBUSY || why == EINVAL)
    fail(XIO_ERR_STATE, "cannot open {}: {} is open in another process (or twice in this one){}; close it there",
         place.name, place.cdev, why == EBUSY ? " by its group" : ", or its IOMMU does not keep caches coherent");
  fail(XIO_ERR_IO, "cannot open {}: {} cannot be bound to {}: {}", place.name, place.cdev, k_iommu, errno_text(why));
}

std::vector<iova_ranges::range> vfio_iommufd::ranges(const vfio_place& place) {
  std::vector<abi::iova_range> list(16);
  abi::ioas_iova_ranges r{};
  int status = -1;
  for (int round = 0; round < 2 && status != 0; ++round) {
    r = {};
    r.size = sizeof r;
    r.ioas_id = space_;
    r.num_iovas = static_cast<std::uint32_t>(list.size());
    r.allowed_iovas = reinterpret_cast<std::uint64_t>(list.data());
    status = calls_.control(iommu_.get(), abi::k_ioas_iova_ranges, &r);
    if (status == 0 || errno != EMSGSIZE || r.num_iovas > k_most_ranges) break;
    list.resize(r.num_iovas);
  }
  if (status != 0 || r.num_iovas > list.size())
    fail(XIO_ERR_IO, "cannot open {}: the kernel does not tell which addresses its IOMMU takes: {}", place.name,
         status != 0 ? errno_text(errno) : "more than there is room for");
  if (r.out_iova_alignment > gpu::page_size())
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: the pages of its IOMMU have {} bytes, and those of this machine {}",
         place.name, r.out_iova_alignment, gpu::page_size());
  std::vector<iova_ranges::range> out;
  for (std::uint32_t i = 0; i < r.num_iovas; ++i)
    if (list[i].start <= list[i].last) out.push_back({list[i].start, list[i].last});
  return out;
}

void vfio_iommufd::map(std::uint64_t first, std::uint64_t bytes, std::uint64_t iova) {
  abi::ioas_map m{};
  m.size = sizeof m;
  m.flags = abi::k_map_fixed_iova | abi::k_map_writeable | abi::k_map_readable;
  m.ioas_id = space_;
  m.user_va = first;
  m.length = bytes;
  m.iova = iova;
  if (calls_.control(iommu_.get(), abi::k_ioas_map, &m) == 0) return;
  const int why = errno;
  // The registers and memory of PCI devices are nothing that iommufd pins.
  fail(why == ENOMEM ? XIO_ERR_NO_MEMORY : XIO_ERR_IO, "{} bytes at {:#x} cannot be pinned for a drive: {}{}", bytes,
       first, errno_text(why),
       why == ENOMEM ? "; raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)"
                     : "; take memory that this process may write, and for the memory of a PCI device set "
                       "XIO_VFIO_IOMMU=type1");
}

int vfio_iommufd::unmap(std::uint64_t iova, std::uint64_t bytes) {
  abi::ioas_unmap m{};
  m.size = sizeof m;
  m.ioas_id = space_;
  m.iova = iova;
  m.length = bytes;
  return calls_.control(iommu_.get(), abi::k_ioas_unmap, &m) == 0 ? 0 : errno;
}

}  // namespace xio::nvme
