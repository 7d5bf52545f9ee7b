// SPDX-License-Identifier: MIT
// Whether NICs, and drives that are bound to the kernel module xio, reach GPU memory over PCI Express, as Linux decides
// it (drivers/pci/p2pdma.c), and whether this process may use the drives.
#pragma once
#include "topology/preflight.hpp"

namespace xio::topology {

// "nic_path"; "module_access", "peer_path" and "iommu_mode", not needed where no drive is bound to xio.
std::vector<piece> peer_path(const surroundings& s);

}  // namespace xio::topology
