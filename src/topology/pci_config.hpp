// SPDX-License-Identifier: MIT
// The configuration space of one PCI function, as bytes, and what of it XIO wants to know.
// Section numbers are those of the PCI Express Base Specification 5.0.
#pragma once
#include "topology/pci_tree.hpp"

namespace xio::topology {

constexpr std::size_t k_config_bytes = 4096;

// From offset 0 as far as it can be read, which users other than root can up to 64. Bytes beyond read as ones, as
// registers do that no device has.
class pci_config {
 public:
  explicit pci_config(std::vector<std::uint8_t> bytes) : bytes_(std::move(bytes)) {}

  bool has(std::size_t at) const { return at < bytes_.size(); }
  std::uint8_t byte(std::size_t at) const { return has(at) ? bytes_[at] : 0xff; }
  std::uint16_t word(std::size_t at) const;
  std::uint32_t dword(std::size_t at) const;

  // Offsets; 0: it has none, or the list cannot be read that far.
  std::size_t find_capability(std::uint8_t id) const;
  std::size_t find_extended(std::uint16_t id) const;

 private:
  std::vector<std::uint8_t> bytes_;
};

constexpr std::uint8_t k_express_capability = 0x10;
constexpr std::size_t k_device_control2 = 0x28;  // in it: 7.5.3.16

// Vendor, device and class are the registers'.
pci_function function_of(const std::string& bus_id, const pci_config& c);

}  // namespace xio::topology
