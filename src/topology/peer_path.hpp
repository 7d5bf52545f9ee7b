// SPDX-License-Identifier: MIT
// Whether drives that are bound to the kernel module xio reach GPU memory over PCI Express, as Linux decides it
// (drivers/pci/p2pdma.c), and whether this process may use them.
#pragma once
#include "topology/preflight.hpp"

namespace xio::topology {

// "module_access", "peer_path" and "iommu_mode"; not needed where no drive is bound to xio.
std::vector<piece> peer_path(const surroundings& s);

}  // namespace xio::topology
