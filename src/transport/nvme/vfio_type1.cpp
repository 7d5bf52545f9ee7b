// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_type1.hpp"

#include <linux/vfio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace xio::nvme {
namespace {

constexpr const char* k_container = "/dev/vfio/vfio";

void check_viable(vfio_calls& calls, const vfio_place& place, int fd) {
  vfio_group_status status{};
  status.argsz = sizeof status;
  if (calls.control(fd, VFIO_GROUP_GET_STATUS, &status) != 0)
    fail(XIO_ERR_IO, "cannot open {}: IOMMU group {} has no status: {}", place.name, place.group, errno_text(errno));
  if ((status.flags & VFIO_GROUP_FLAGS_VIABLE) == 0)
    fail_not_viable(place.name, place.group, others_in_group("", place.group));
}

}  // namespace

std::vector<iova_ranges::range> read_iova_ranges(const std::vector<std::byte>& info) {
  vfio_iommu_type1_info head{};
  std::memcpy(&head, info.data(), std::min(sizeof head, info.size()));
  std::size_t at = (head.flags & VFIO_IOMMU_INFO_CAPS) != 0 ? head.cap_offset : 0;
  // A chain that goes on in front of itself would have no end.
  for (vfio_info_cap_header cap{}; at != 0 && at + sizeof cap <= info.size(); at = cap.next > at ? cap.next : 0) {
    std::memcpy(&cap, &info[at], sizeof cap);
    if (cap.id != VFIO_IOMMU_TYPE1_INFO_CAP_IOVA_RANGE) continue;
    vfio_iommu_type1_info_cap_iova_range list{};
    if (at + sizeof list > info.size()) break;
    std::memcpy(&list, &info[at], sizeof list);
    const std::size_t room = (info.size() - at - sizeof list) / sizeof(vfio_iova_range);
    std::vector<iova_ranges::range> ranges;
    for (std::size_t i = 0; i < std::min<std::size_t>(list.nr_iovas, room); ++i) {
      vfio_iova_range one{};
      std::memcpy(&one, &info[at + sizeof list + i * sizeof one], sizeof one);
      if (one.start <= one.end) ranges.push_back({one.start, one.end});
    }
    if (!ranges.empty()) return ranges;
  }
  // Below and above the window of interrupt messages (Intel SDM 3A, 11.11.1), in 39 bits, the least that VT-d has.
  return {{0x1000, 0xfedfffff}, {0xfef00000, (std::uint64_t{1} << 39) - 1}};
}

vfio_type1::vfio_type1(vfio_calls& calls, const std::string& name)
    : calls_(calls), container_(calls.open(k_container)) {
  if (container_.get() < 0)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: {}: {}; modprobe vfio-pci, and in a container pass {} into it", name,
         k_container, errno_text(errno), k_container);
  if (calls_.control(container_.get(), VFIO_GET_API_VERSION, 0UL) != VFIO_API_VERSION)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: the kernel has another version of vfio", name);
  if (calls_.control(container_.get(), VFIO_CHECK_EXTENSION, static_cast<unsigned long>(VFIO_TYPE1v2_IOMMU)) != 1)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: the kernel has no IOMMU of type 1; modprobe vfio_iommu_type1", name);
}

vfio_handles vfio_type1::admit(const vfio_place& place) {
  const std::string path = fmt::format("/dev/vfio/{}", place.group);
  unique_fd group(open_device_file(calls_, place.name, path,
                                   "modprobe vfio-pci, pass it into the container, or, where vfio works without "
                                   "an IOMMU, switch the IOMMU on"));
  check_viable(calls_, place, group.get());
  join(group.get(), place.name);
  const int device = calls_.control(group.get(), VFIO_GROUP_GET_DEVICE_FD, place.bdf.c_str());
  if (device < 0)
    fail(XIO_ERR_IO, "cannot open {}: vfio does not give {}: {}", place.name, place.bdf, errno_text(errno));
  return {std::move(group), unique_fd(device)};
}

void vfio_type1::join(int group, const std::string& name) {
  const int container = container_.get();
  if (calls_.control(group, VFIO_GROUP_SET_CONTAINER, &container) != 0)
    fail(XIO_ERR_IO, "cannot open {}: its IOMMU group cannot join the process's other drives: {}; open it alone", name,
         errno_text(errno));
  // Asked of every group: the domain goes with the last one, which may leave while this one comes.
  if (calls_.control(container, VFIO_SET_IOMMU, static_cast<unsigned long>(VFIO_TYPE1v2_IOMMU)) != 0) {
    const int why = errno;
    if (why == EINVAL && set_) return;  // it is there still
    fail(why == EPERM ? XIO_ERR_UNSUPPORTED : XIO_ERR_IO, "cannot open {}: the IOMMU cannot be set up: {}{}", name,
         errno_text(why),
         why == EPERM ? "; the platform does not remap interrupts (switch that on in the firmware)" : "");
  }
  set_ = true;
}

std::vector<iova_ranges::range> vfio_type1::ranges(const vfio_place& place) {
  std::vector<std::byte> info(sizeof(vfio_iommu_type1_info));
  for (int round = 0; round < 2; ++round) {
    auto* head = reinterpret_cast<vfio_iommu_type1_info*>(info.data());
    head->argsz = static_cast<std::uint32_t>(info.size());
    if (calls_.control(container_.get(), VFIO_IOMMU_GET_INFO, head) != 0)
      fail(XIO_ERR_IO, "cannot open {}: the kernel does not tell of its IOMMU: {}", place.name, errno_text(errno));
    if (head->argsz <= info.size()) break;
    info.assign(std::min<std::size_t>(head->argsz, 1 << 16), std::byte{});
  }
  return read_iova_ranges(info);
}

void vfio_type1::map(std::uint64_t first, std::uint64_t bytes, std::uint64_t iova) {
  vfio_iommu_type1_dma_map m{};
  m.argsz = sizeof m;
  m.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  m.vaddr = first;
  m.iova = iova;
  m.size = bytes;
  if (calls_.control(container_.get(), VFIO_IOMMU_MAP_DMA, &m) == 0) return;
  const int why = errno;
  fail(why == ENOMEM || why == ENOSPC ? XIO_ERR_NO_MEMORY : XIO_ERR_IO,
       "{} bytes at {:#x} cannot be pinned for a drive: {}{}", bytes, first, errno_text(why),
       why == ENOMEM   ? "; raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)"
       : why == ENOSPC ? "; raise vfio_iommu_type1.dma_entry_limit, or register fewer and larger buffers"
                       : "; take memory that this process may write");
}

int vfio_type1::unmap(std::uint64_t iova, std::uint64_t bytes) {
  vfio_iommu_type1_dma_unmap m{};
  m.argsz = sizeof m;
  m.iova = iova;
  m.size = bytes;
  return calls_.control(container_.get(), VFIO_IOMMU_UNMAP_DMA, &m) == 0 ? 0 : errno;
}

}  // namespace xio::nvme
