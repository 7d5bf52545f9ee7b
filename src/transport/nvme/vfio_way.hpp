// SPDX-License-Identifier: MIT
// Which of the two ways drives behind vfio are opened by: XIO_VFIO_IOMMU, and what the machine has.
#pragma once
#include <memory>

#include "base/options.hpp"
#include "transport/nvme/vfio_iommu.hpp"

namespace xio::nvme {

struct vfio_choice {
  vfio_way way;
  std::string why;      // not iommufd; "" if it is, or was asked for
  bool forced = false;  // by the option
};
// root: "" or a folder that stands for it.
vfio_choice choose_vfio_way(const nvme_options& o, const std::string& root, const vfio_place& place);

// An empty address space. Throws the reason and the cure; name: for sentences.
std::unique_ptr<vfio_iommu> make_iommu(vfio_way way, vfio_calls& calls, const std::string& name);

}  // namespace xio::nvme
