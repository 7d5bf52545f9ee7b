// SPDX-License-Identifier: MIT
// Reads a machine's PCI functions, as the kernel shows them below /sys or as a dump describes them.
#pragma once
#include "topology/pci_tree.hpp"

namespace xio::topology {

// dump: a file of lspci -xxxx that stands for the machine; empty: this machine. Throws XIO_ERR_UNSUPPORTED if this
// machine has no way to read them.
pci_tree read_pci_tree(const std::string& dump);

// root: in front of /sys, "" or a folder that stands for a machine.
pci_tree read_pci_sysfs(const std::string& root);

// Sets the AtomicOp requester enable bit of a function, and reads it back. Throws if it does not hold.
void enable_atomics_of(const std::string& bus_id, const std::string& root = "");

}  // namespace xio::topology
