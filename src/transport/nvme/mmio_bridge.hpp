// SPDX-License-Identifier: MIT
// Registers of a drive written through a PCI MMIO bridge: a ring of commands in memory that a device of the virtual
// machine monitor reads and carries out.
#pragma once
#include "transport/nvme/doorbell_keeper.hpp"
#include "transport/nvme/doorbells.hpp"

namespace xio::nvme {

// path: what to map, or empty for the software bridge over a software drive. Throws what is wrong with either.
std::unique_ptr<register_writer> open_bridge(const std::string& path, progress::machine& m, const doorbell_reach& can,
                                             const std::string& name);

}  // namespace xio::nvme
