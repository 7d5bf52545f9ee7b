// SPDX-License-Identifier: MIT
// An address space by vfio's containers and groups. Linux, Documentation/driver-api/vfio.rst; type 1.
#pragma once
#include <cstddef>

#include "transport/nvme/vfio_iommu.hpp"

namespace xio::nvme {

// Decodes the reply of VFIO_IOMMU_GET_INFO; returns the ranges of every x86 IOMMU where the kernel gives none.
std::vector<iova_ranges::range> read_iova_ranges(const std::vector<std::byte>& info);

class vfio_type1 : public vfio_iommu {
 public:
  // Throws when vfio is not there. name: for sentences.
  vfio_type1(vfio_calls& calls, const std::string& name);

  vfio_way way() const override { return vfio_way::type1; }
  vfio_handles admit(const vfio_place& place) override;
  std::vector<iova_ranges::range> ranges(const vfio_place& place) override;
  void map(std::uint64_t first, std::uint64_t bytes, std::uint64_t iova) override;
  int unmap(std::uint64_t iova, std::uint64_t bytes) override;

 private:
  void join(int group, const std::string& name);

  vfio_calls& calls_;
  unique_fd container_;
  bool set_ = false;  // once, by some group
};

}  // namespace xio::nvme
