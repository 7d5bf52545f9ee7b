// SPDX-License-Identifier: MIT
// An address space by iommufd (/dev/iommu), and devices by files of their own (/dev/vfio/devices/vfioN), without
// container and group. Linux, Documentation/userspace-api/iommufd.rst and driver-api/vfio.rst.
#pragma once
#include "transport/nvme/vfio_iommu.hpp"

namespace xio::nvme {

class vfio_iommufd : public vfio_iommu {
 public:
  // Throws when iommufd is not there. name: for sentences.
  vfio_iommufd(vfio_calls& calls, const std::string& name);

  vfio_way way() const override { return vfio_way::iommufd; }
  vfio_handles admit(const vfio_place& place) override;
  std::vector<iova_ranges::range> ranges(const vfio_place& place) override;
  void map(std::uint64_t first, std::uint64_t bytes, std::uint64_t iova) override;
  int unmap(std::uint64_t iova, std::uint64_t bytes) override;

 private:
  void bind(int device, const vfio_place& place);

  vfio_calls& calls_;
  unique_fd iommu_;
  std::uint32_t space_ = 0;  // the kernel's number for it, of this open file
};

}  // namespace xio::nvme
