// SPDX-License-Identifier: MIT
// What to do where AtomicOps do not pass: sentences with the line to type.
#pragma once
#include "topology/pci_tree.hpp"

namespace xio::topology {

std::string cure_other_slot();
std::string cure_common_switch();
// Lets AtomicOps out of a port, or into the fabric at all.
std::string cure_unblock(const pci_function& port);
std::string cure_requester(const pci_function& device);
// ACS sends requests up to the root complex: where that is not wanted.
std::string cure_redirect(const std::vector<const pci_function*>& up);
// A root port that completes none: in a guest QEMU decides that by what hangs off it.
std::string cure_root_port(const pci_function& root, const pci_function& device);
std::string cure_guest_root_port(const pci_function& device);
std::string cure_express_machine(const pci_function& device);

}  // namespace xio::topology
