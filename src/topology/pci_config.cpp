// SPDX-License-Identifier: MIT
#include "topology/pci_config.hpp"

#include <set>

namespace xio::topology {
namespace {

// 7.5.1.1 to 7.5.1.3: registers of every function, of endpoints and of bridges.
constexpr std::size_t k_vendor = 0x00, k_device = 0x02, k_status = 0x06, k_class = 0x0a, k_header_type = 0x0e;
constexpr std::size_t k_subsystem_vendor = 0x2c, k_capabilities = 0x34;
constexpr std::size_t k_secondary_bus = 0x19, k_subordinate_bus = 0x1a;
constexpr std::size_t k_header_end = 0x40;
constexpr std::uint16_t k_has_capabilities = 1u << 4;
constexpr std::uint8_t k_endpoint_header = 0, k_bridge_header = 1;

// 7.5.3: in the PCI Express capability. 7.7.8 and 9.3.3: in those of ACS and SR-IOV.
constexpr std::size_t k_express_flags = 0x02, k_device_capabilities2 = 0x24;
constexpr std::uint16_t k_acs = 0x0d, k_sriov = 0x10;
constexpr std::size_t k_acs_control = 0x06;
constexpr std::uint16_t k_error_reporting = 0x01;
constexpr std::size_t k_uncorrectable = 0x04;
constexpr std::uint32_t k_atomic_egress_blocked = 1u << 24;
constexpr std::size_t k_sriov_control = 0x08, k_sriov_count = 0x10, k_sriov_offset = 0x14, k_sriov_stride = 0x16;
constexpr std::uint16_t k_sriov_enabled = 1;

constexpr std::size_t k_extended_begin = 0x100;  // 7.6.2

// 0 for what is not there.
std::uint16_t word_or_0(const pci_config& c, std::size_t at) { return c.word(at) == 0xffff ? 0 : c.word(at); }

void read_extended(const pci_config& c, pci_function& f) {
  if (const std::size_t acs = c.find_extended(k_acs); acs != 0) f.acs_control = word_or_0(c, acs + k_acs_control);
  if (const std::size_t aer = c.find_extended(k_error_reporting); aer != 0 && c.has(aer + k_uncorrectable + 3))
    f.aborted_atomics = (c.dword(aer + k_uncorrectable) & k_atomic_egress_blocked) != 0;
  const std::size_t sriov = c.find_extended(k_sriov);
  if (sriov == 0 || (word_or_0(c, sriov + k_sriov_control) & k_sriov_enabled) == 0) return;
  f.virtuals = {word_or_0(c, sriov + k_sriov_count), word_or_0(c, sriov + k_sriov_offset),
                word_or_0(c, sriov + k_sriov_stride)};
}

void read_express(const pci_config& c, pci_function& f) {
  const std::size_t at = c.find_capability(k_express_capability);
  if (at == 0) return;
  const std::uint16_t flags = c.word(at + k_express_flags);
  if (flags == 0) return;
  f.kind = static_cast<port_kind>(flags >> 4 & 0xf);
  f.express_version = flags & 0xf;
  f.capabilities2 = c.dword(at + k_device_capabilities2);
  f.control2 = c.word(at + k_device_control2);
  if (f.capabilities2 == 0xffffffff || !c.has(at + k_device_control2 + 1)) f.readable = false;  // the bytes end before
  read_extended(c, f);
}

}  // namespace

std::uint16_t pci_config::word(std::size_t at) const {
  return static_cast<std::uint16_t>(byte(at) | byte(at + 1) << 8);
}

std::uint32_t pci_config::dword(std::size_t at) const {
  return word(at) | static_cast<std::uint32_t>(word(at + 2)) << 16;
}

// 7.5.1.1.11: a list by one-byte offsets. Devices may lie: a list that comes back to itself ends there.
std::size_t pci_config::find_capability(std::uint8_t id) const {
  if (!has(k_status + 1) || (word(k_status) & k_has_capabilities) == 0) return 0;
  std::set<std::size_t> seen;
  for (std::size_t at = byte(k_capabilities) & 0xfc; at >= k_header_end && has(at + 1) && seen.insert(at).second;
       at = byte(at + 1) & 0xfc) {
    if (byte(at) == id) return at;
    if (byte(at) == 0xff) return 0;
  }
  return 0;
}

// 7.6.3: identifier in bits 15:0, the next one's offset in bits 31:20.
std::size_t pci_config::find_extended(std::uint16_t id) const {
  std::set<std::size_t> seen;
  for (std::size_t at = k_extended_begin; at >= k_extended_begin && has(at + 3) && seen.insert(at).second;
       at = dword(at) >> 20 & 0xffc) {
    const std::uint32_t header = dword(at);
    if (header == 0 || header == 0xffffffff) return 0;
    if ((header & 0xffff) == id) return at;
  }
  return 0;
}

pci_function function_of(const std::string& bus_id, const pci_config& c) {
  pci_function f;
  f.bus_id = bus_id;
  f.vendor = c.word(k_vendor);
  f.device = c.word(k_device);
  f.device_class = c.word(k_class);
  const std::uint8_t header = c.byte(k_header_type);
  f.multifunction = (header & 0x80) != 0;
  f.is_bridge = (header & 0x7f) == k_bridge_header;
  if ((header & 0x7f) == k_endpoint_header) f.subsystem_vendor = c.word(k_subsystem_vendor);
  if (f.is_bridge) {
    f.secondary = c.byte(k_secondary_bus);
    f.subordinate = c.byte(k_subordinate_bus);
  }
  f.readable = (c.word(k_status) & k_has_capabilities) == 0 || c.has(k_header_end);
  read_express(c, f);
  return f;
}

}  // namespace xio::topology
