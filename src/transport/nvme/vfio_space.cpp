// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_space.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "memory/pages.hpp"

namespace xio::nvme {

std::shared_ptr<vfio_space> vfio_space::get(const vfio_choice& choice, const std::string& name, vfio_calls& calls) {
  static std::mutex lock;
  // Never destroyed: an exit handler may open a drive.
  static auto& shared = *new std::weak_ptr<vfio_space>;
  const std::lock_guard hold(lock);
  auto space = shared.lock();
  if (space == nullptr) {
    shared = space = std::make_shared<vfio_space>(make_iommu(choice.way, calls, name));
    log::info("{}: addresses by {}{}{}", name, name_of(choice.way), choice.why.empty() ? "" : ", since ", choice.why);
  } else if (choice.forced && space->way() != choice.way) {
    fail(XIO_ERR_STATE,
         "cannot open {}: the process's other drives are open by {}, and XIO_VFIO_IOMMU asks for {}; close them, or "
         "open all by the same",
         name, name_of(space->way()), name_of(choice.way));
  }
  return space;
}

vfio_handles vfio_space::admit(const vfio_place& place) {
  const std::lock_guard hold(lock_);
  vfio_handles handles = iommu_->admit(place);
  if (addresses_ == nullptr) addresses_ = std::make_unique<iova_ranges>(iommu_->ranges(place), gpu::page_size());
  return handles;
}

std::uint64_t vfio_space::map_pages(std::uint64_t first, std::uint64_t bytes) {
  const std::uint64_t iova = addresses_->take(bytes, first);
  try {
    iommu_->map(first, bytes, iova);
  } catch (...) {
    addresses_->give_back(iova);
    throw;
  }
  return iova;
}

std::uint64_t vfio_space::map(void* base, std::size_t bytes) {
  // A GPU's driver may move its memory without notice to vfio; the drive would then write to the old place.
  if (gpu::has_device_memory() && gpu::locate(base).where == gpu::residence::device)
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

void vfio_space::unmap(void* base, std::size_t bytes) {
  const std::lock_guard hold(lock_);
  const auto found = std::ranges::find_if(mappings_, [&](const mapping& m) {
    return m.base == reinterpret_cast<std::uintptr_t>(base) && m.bytes == bytes;
  });
  if (found == mappings_.end() || --found->users > 0) return;
  // Addresses that the kernel still holds are not handed out again.
  if (const int why = iommu_->unmap(found->iova, found->mapped_bytes); why != 0)
    log::warn("the IOMMU keeps {} bytes at {:#x}: {}", found->mapped_bytes, found->iova, errno_text(why));
  else
    addresses_->give_back(found->iova);
  mappings_.erase(found);
}

}  // namespace xio::nvme
