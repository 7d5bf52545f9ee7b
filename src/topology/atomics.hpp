// SPDX-License-Identifier: MIT
// PCIe AtomicOps (PCI Express Base Specification 5.0, section 6.15): may a device change host memory, or another
// device's memory, by fetch-add, swap and compare-swap? Pure: judges what configuration registers say.
#pragma once
#include "topology/pci_tree.hpp"

namespace xio::topology {

// Device Capabilities 2 and Device Control 2.
constexpr std::uint32_t k_atomic_routing = 1u << 6;
constexpr std::uint32_t k_atomic_complete_32 = 1u << 7;
constexpr std::uint32_t k_atomic_complete_64 = 1u << 8;
constexpr std::uint32_t k_atomic_complete_128 = 1u << 9;  // compare-swap
constexpr std::uint16_t k_atomic_requester = 1u << 6;
constexpr std::uint16_t k_atomic_egress_block = 1u << 7;
// ACS Control: requests between devices go up to the root complex and not across.
constexpr std::uint16_t k_acs_redirect = 1u << 2;

enum class atomics_support : std::uint8_t {
  yes,
  off,     // the way is free, but the requester's enable bit is not set
  no,      // a port or a device on the way does not
  unknown  // registers do not say, or cannot be read
};
const char* support_name(atomics_support a);

struct atomics_verdict {
  atomics_support is = atomics_support::unknown;
  std::uint32_t widths = 0;  // bits k_atomic_complete_ of the function that completes them
  std::string at;            // the function that fails, "" if none
  std::string why;           // what is wrong there: register and bit; "" for yes
  std::string cure;          // what to do about it
};

// From a device to host memory: 32 and 64 bits wide, which compute drivers ask for.
atomics_verdict atomics_to_host(const pci_tree& t, const pci_function& requester);
// From a device to memory behind another one's BAR.
atomics_verdict atomics_to_peer(const pci_tree& t, const pci_function& requester, const pci_function& completer);

// "32 64", or "none".
std::string widths_text(std::uint32_t widths);

}  // namespace xio::topology
