// SPDX-License-Identifier: MIT
// The addresses that drives behind vfio see: one IOMMU domain for all of a process, so that memory has the same address
// for each of its drives.
#pragma once
#include <mutex>

#include "transport/nvme/vfio_way.hpp"

namespace xio::nvme {

class vfio_space {
 public:
  // The one that some controller holds, or a new one. Throws when there is none to be had, or it is of another way than
  // the one that the options ask for.
  static std::shared_ptr<vfio_space> get(const vfio_choice& choice, const std::string& name,
                                         vfio_calls& calls = kernel_calls());
  explicit vfio_space(std::unique_ptr<vfio_iommu> iommu) : iommu_(std::move(iommu)) {}
  vfio_space& operator=(vfio_space&&) = delete;

  vfio_way way() const { return iommu_->way(); }
  // Opens a device, and lets it reach what is mapped.
  vfio_handles admit(const vfio_place& place);
  // Returns the address of base for every device that was admitted. Another controller may map the same range again.
  std::uint64_t map(void* base, std::size_t bytes);
  // Takes back one map() of that range. Another world may have mapped another one that begins there.
  void unmap(void* base, std::size_t bytes);

 private:
  struct mapping {
    std::uintptr_t base;
    std::size_t bytes;
    std::uint64_t iova;  // of the page that base is in
    std::uint64_t mapped_bytes;
    unsigned users;
  };
  std::uint64_t map_pages(std::uint64_t first, std::uint64_t bytes);

  std::unique_ptr<vfio_iommu> iommu_;
  std::mutex lock_;
  std::unique_ptr<iova_ranges> addresses_;  // from the first device on
  std::vector<mapping> mappings_;
};

}  // namespace xio::nvme
