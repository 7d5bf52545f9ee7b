// SPDX-License-Identifier: MIT
// A machine's PCI functions as plain descriptions, and how they hang together; so that judging them is pure.
// Section numbers are those of the PCI Express Base Specification 5.0.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace xio::topology {

// Device/Port Type, bits 7:4 of the PCI Express Capabilities Register (7.5.3.2).
enum class port_kind : std::uint8_t {
  endpoint = 0,
  legacy_endpoint = 1,
  root_port = 4,
  upstream = 5,
  downstream = 6,
  to_pci = 7,
  from_pci = 8,
  integrated = 9,  // in the root complex
  collector = 10,
  none = 16  // no PCI Express capability
};

enum class device_role : std::uint8_t { other, gpu, nic, drive, bridge };

// The virtual functions that SR-IOV's capability describes (9.3.3).
struct virtual_functions {
  std::uint16_t count = 0;  // enabled; 0: none
  std::uint16_t offset = 0, stride = 0;
};

struct pci_function {
  std::string bus_id;  // "0000:3b:00.0"
  std::uint16_t vendor = 0, device = 0, subsystem_vendor = 0;
  std::uint16_t device_class = 0;  // base class << 8 | sub-class
  bool readable = true;            // configuration space beyond the first 64 bytes
  bool multifunction = false, is_bridge = false;
  std::uint8_t secondary = 0, subordinate = 0;  // of a bridge: the buses behind it
  port_kind kind = port_kind::none;
  std::uint8_t express_version = 0;
  std::uint32_t capabilities2 = 0;  // 7.5.3.15
  std::uint16_t control2 = 0;       // 7.5.3.16
  std::uint16_t acs_control = 0;    // 7.7.8.3; 0 without the capability
  bool aborted_atomics = false;     // AtomicOp Egress Blocked Status of Advanced Error Reporting, 7.8.4.2
  virtual_functions virtuals;
};

// Throws XIO_ERR_ARG for a text that is not "[domain:]bus:device.function"; returns the long form in small letters.
std::string full_bus_id(const std::string& text);

device_role role_of(const pci_function& f);
const char* role_name(device_role r);  // "GPU", "NIC", "drive", "bridge", "function"

class pci_tree {
 public:
  pci_tree() = default;
  explicit pci_tree(std::vector<pci_function> functions);

  const std::vector<pci_function>& functions() const { return functions_; }
  const pci_function* find(const std::string& bus_id) const;  // null: none
  // The bridges above, the nearest first; the last is the root port, if there is one.
  std::vector<const pci_function*> above(const pci_function& f) const;
  // The function that f is a virtual one of; null if it is a physical one.
  const pci_function* physical_of(const pci_function& f) const;
  // Devices that only hypervisors make are there.
  bool in_guest() const;

 private:
  const pci_function* parent(const pci_function& f) const;
  std::vector<pci_function> functions_;
};

}  // namespace xio::topology
