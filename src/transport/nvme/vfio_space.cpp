// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_space.hpp"

#include <fcntl.h>
#include <linux/vfio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "memory/pages.hpp"

namespace xio::nvme {

namespace {

constexpr std::uint64_t k_large_page = 2 << 20;
constexpr const char* k_container = "/dev/vfio/vfio";

}  // namespace

// --- Addresses ---------------------------------------------------------------------------------------

iova_ranges::iova_ranges(const std::vector<range>& ranges, std::uint64_t page) : page_(page) {
  for (const range& r : ranges) {
    const auto begin = memory::align_up(std::max(r.first, page), page);
    // The last page of all is left out: its end has no number.
    const std::uint64_t end = memory::align_down(r.last == ~std::uint64_t{0} ? r.last : r.last + 1, page);
    if (begin && *begin < end) parts_.push_back(part{*begin, end, memory::allocator(*begin, end)});
  }
}

std::uint64_t iova_ranges::take(std::uint64_t bytes, std::uint64_t address) {
  const bool large = bytes >= k_large_page;
  const std::uint64_t alignment = large ? k_large_page : page_;
  const std::uint64_t place = large ? address & (k_large_page - 1) & ~(page_ - 1) : 0;
  for (part& p : parts_) {
    if (bytes > ~std::uint64_t{0} - place) break;
    const auto block = p.free.allocate(place + bytes, alignment);
    if (!block) continue;
    taken_.emplace_back(*block + place, *block);
    return *block + place;
  }
  fail(XIO_ERR_NO_MEMORY, "the IOMMU has no {} bytes of addresses left; register less memory", bytes);
}

void iova_ranges::give_back(std::uint64_t iova) {
  const auto it = std::find_if(taken_.begin(), taken_.end(), [&](const auto& t) { return t.first == iova; });
  if (it == taken_.end()) return;
  for (part& p : parts_)
    if (it->second >= p.begin && it->second < p.end) p.free.release(it->second);
  taken_.erase(it);
}

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

// --- The domain --------------------------------------------------------------------------------------

std::shared_ptr<vfio_space> vfio_space::get(const std::string& name) {
  static std::mutex lock;
  static std::weak_ptr<vfio_space> shared;
  const std::lock_guard hold(lock);
  auto space = shared.lock();
  if (space == nullptr) shared = space = std::shared_ptr<vfio_space>(new vfio_space(name));
  return space;
}

vfio_space::vfio_space(const std::string& name) : container_(::open(k_container, O_RDWR | O_CLOEXEC)) {
  if (container_ < 0)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: {}: {}; modprobe vfio-pci, and in a container pass {} into it", name,
         k_container, errno_text(errno), k_container);
  const char* lacks = ioctl(container_, VFIO_GET_API_VERSION) != VFIO_API_VERSION ? "another version of vfio"
                      : ioctl(container_, VFIO_CHECK_EXTENSION, VFIO_TYPE1v2_IOMMU) != 1
                          ? "no IOMMU of type 1; modprobe vfio_iommu_type1"
                          : nullptr;
  if (lacks == nullptr) return;
  ::close(container_);
  fail(XIO_ERR_UNSUPPORTED, "cannot open {}: the kernel has {}", name, lacks);
}

vfio_space::~vfio_space() { ::close(container_); }

void vfio_space::join(int group, const std::string& name) {
  const std::lock_guard hold(lock_);
  if (ioctl(group, VFIO_GROUP_SET_CONTAINER, &container_) != 0)
    fail(XIO_ERR_IO, "cannot open {}: its IOMMU group cannot join the process's other drives: {}; open it alone", name,
         errno_text(errno));
  if (addresses_ != nullptr) return;
  if (ioctl(container_, VFIO_SET_IOMMU, VFIO_TYPE1v2_IOMMU) != 0) {
    const int why = errno;
    fail(why == EPERM ? XIO_ERR_UNSUPPORTED : XIO_ERR_IO, "cannot open {}: the IOMMU cannot be set up: {}{}", name,
         errno_text(why),
         why == EPERM ? "; the platform does not remap interrupts (switch that on in the firmware)" : "");
  }
  std::vector<std::byte> info(sizeof(vfio_iommu_type1_info));
  for (int round = 0; round < 2; ++round) {
    auto* head = reinterpret_cast<vfio_iommu_type1_info*>(info.data());
    head->argsz = static_cast<std::uint32_t>(info.size());
    if (ioctl(container_, VFIO_IOMMU_GET_INFO, head) != 0)
      fail(XIO_ERR_IO, "cannot open {}: the kernel does not tell of its IOMMU: {}", name, errno_text(errno));
    if (head->argsz <= info.size()) break;
    info.assign(std::min<std::size_t>(head->argsz, 1 << 16), std::byte{});
  }
  addresses_ = std::make_unique<iova_ranges>(read_iova_ranges(info), gpu::page_size());
}

std::uint64_t vfio_space::map_pages(std::uint64_t first, std::uint64_t bytes) {
  const std::uint64_t iova = addresses_->take(bytes, first);
  vfio_iommu_type1_dma_map m{};
  m.argsz = sizeof m;
  m.flags = VFIO_DMA_MAP_FLAG_READ | VFIO_DMA_MAP_FLAG_WRITE;
  m.vaddr = first;
  m.iova = iova;
  m.size = bytes;
  if (ioctl(container_, VFIO_IOMMU_MAP_DMA, &m) == 0) return iova;
  const int why = errno;
  addresses_->give_back(iova);
  fail(why == ENOMEM || why == ENOSPC ? XIO_ERR_NO_MEMORY : XIO_ERR_IO,
       "{} bytes at {:#x} cannot be pinned for a drive: {}{}", bytes, first, errno_text(why),
       why == ENOMEM   ? "; raise the limit of locked memory (ulimit -l, LimitMEMLOCK=)"
       : why == ENOSPC ? "; raise vfio_iommu_type1.dma_entry_limit, or register fewer and larger buffers"
                       : "; take memory that this process may write");
}

std::uint64_t vfio_space::map(void* base, std::size_t bytes) {
  // What lies in GPU memory may be moved by its driver: type 1 is not told, and the drive would write elsewhere.
  if (gpu::has_device_memory() && gpu::locate(base).where == gpu::side::device)
    fail(
        XIO_ERR_UNSUPPORTED,
        "the {} bytes at {} are memory of the GPU, which vfio cannot pin for a drive; use host memory: XIO_MEMORY_MODE "
        "without 8, and registered buffers of a host kind",
        bytes, base);
  const auto address = reinterpret_cast<std::uintptr_t>(base);
  const auto span = memory::pages_of(address, bytes, gpu::page_size());
  if (!span || span->bytes == 0) fail(XIO_ERR_ARG, "{} bytes at {} cannot be mapped for a drive", bytes, base);
  const std::lock_guard hold(lock_);
  if (addresses_ == nullptr) fail(XIO_ERR_STATE, "no drive has joined the IOMMU's domain; this is a bug of XIO");
  for (mapping& m : mappings_) {
    if (m.base != address || m.bytes != bytes) continue;
    ++m.users;
    return m.iova + span->offset;
  }
  const std::uint64_t iova = map_pages(span->first, span->bytes);
  mappings_.push_back(mapping{address, bytes, iova, span->bytes, 1});
  return iova + span->offset;
}

void vfio_space::unmap(void* base) {
  const std::lock_guard hold(lock_);
  auto found = mappings_.end();
  for (auto it = mappings_.begin(); it != mappings_.end(); ++it)
    if (it->base == reinterpret_cast<std::uintptr_t>(base) && (found == mappings_.end() || it->bytes < found->bytes))
      found = it;
  if (found == mappings_.end() || --found->users > 0) return;
  vfio_iommu_type1_dma_unmap m{};
  m.argsz = sizeof m;
  m.iova = found->iova;
  m.size = found->mapped_bytes;
  // Addresses that the kernel still holds are not handed out again.
  if (ioctl(container_, VFIO_IOMMU_UNMAP_DMA, &m) != 0)
    log::warn("the IOMMU keeps {} bytes at {:#x}: {}", m.size, m.iova, errno_text(errno));
  else
    addresses_->give_back(found->iova);
  mappings_.erase(found);
}

}  // namespace xio::nvme
