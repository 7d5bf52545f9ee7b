// SPDX-License-Identifier: MIT
// Reads a machine's PCI functions by libpci.
#pragma once
#include <string>

#include "topology/pci_tree.hpp"

namespace xio::topology {

// dump: a file of lspci -xxxx that stands for the machine; empty: this machine. Throws XIO_ERR_UNSUPPORTED if this
// build or this machine has no way to read them.
pci_tree read_pci_tree(const std::string& dump);

// Sets the AtomicOp requester enable bit of a function of this machine, and reads it back. Throws if it does not hold.
void enable_atomics_of(const std::string& bus_id);

}  // namespace xio::topology
