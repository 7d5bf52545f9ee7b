// SPDX-License-Identifier: MIT
#include "topology/pci_tree.hpp"

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"

namespace xio::topology {
namespace {

struct address {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  unsigned routing_id() const { return bus << 8 | device << 3 | function; }
};

bool parse(const std::string& text, address& a) {
  int end = -1;
  if (std::sscanf(text.c_str(), "%8x:%2x:%2x.%1x%n", &a.domain, &a.bus, &a.device, &a.function, &end) != 4) {
    a = {};
    end = -1;
    if (std::sscanf(text.c_str(), "%2x:%2x.%1x%n", &a.bus, &a.device, &a.function, &end) != 3) return false;
  }
  return end == static_cast<int>(text.size()) && a.bus <= 0xff && a.device <= 0x1f && a.function <= 7;
}

// Bus ids in a tree were made by full_bus_id.
address address_of(const pci_function& f) {
  address a;
  parse(f.bus_id, a);
  return a;
}

}  // namespace

std::string full_bus_id(const std::string& text) {
  address a;
  if (!parse(text, a))
    fail(XIO_ERR_ARG, "'{}' is no PCI address; give [domain:]bus:device.function, such as 0000:3b:00.0", text);
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", a.domain, a.bus, a.device, a.function);
}

// Class codes: PCI Code and ID Assignment Specification 1.11, section 1.
device_role role_of(const pci_function& f) {
  const unsigned base = f.device_class >> 8;
  if (base == 0x03 || base == 0x12) return device_role::gpu;  // display, processing accelerator
  if (base == 0x02 || f.device_class == 0x0c06) return device_role::nic;
  if (f.device_class == 0x0108) return device_role::drive;
  return f.is_bridge ? device_role::bridge : device_role::other;
}

const char* role_name(device_role r) {
  switch (r) {
    case device_role::gpu: return "GPU";
    case device_role::nic: return "NIC";
    case device_role::drive: return "drive";
    case device_role::bridge: return "bridge";
    case device_role::other: break;
  }
  return "function";
}

pci_tree::pci_tree(std::vector<pci_function> functions) : functions_(std::move(functions)) {
  std::ranges::sort(functions_, [](const auto& a, const auto& b) { return a.bus_id < b.bus_id; });
}

const pci_function* pci_tree::find(const std::string& bus_id) const {
  for (const pci_function& f : functions_)
    if (f.bus_id == bus_id) return &f;
  return nullptr;
}

// The nearest bridge whose buses hold this one: a virtual function may lie on a bus that no bridge calls its secondary.
// Only bridges on a lower bus count, so that no table, however wrong, makes a circle.
const pci_function* pci_tree::parent(const pci_function& f) const {
  const address at = address_of(f);
  const pci_function* best = nullptr;
  for (const pci_function& b : functions_) {
    const address bridge = address_of(b);
    if (!b.is_bridge || bridge.domain != at.domain || bridge.bus >= at.bus || bridge.bus >= b.secondary) continue;
    if (at.bus < b.secondary || at.bus > b.subordinate) continue;
    if (best == nullptr || b.secondary > best->secondary) best = &b;
  }
  return best;
}

std::vector<const pci_function*> pci_tree::above(const pci_function& f) const {
  std::vector<const pci_function*> up;
  for (const pci_function* p = parent(f); p != nullptr; p = parent(*p)) up.push_back(p);
  return up;
}

const pci_function* pci_tree::physical_of(const pci_function& f) const {
  const address at = address_of(f);
  for (const pci_function& p : functions_) {
    const address first = address_of(p);
    if (p.virtuals.count == 0 || first.domain != at.domain) continue;
    // Routing ids count modulo 2^16 (9.2.1.2).
    const unsigned away = (at.routing_id() - first.routing_id() - p.virtuals.offset) & 0xffff;
    const unsigned stride = std::max<unsigned>(p.virtuals.stride, 1);
    if (away % stride == 0 && away / stride < p.virtuals.count) return &p;
  }
  return nullptr;
}

// Vendors of devices for guests: virtio, QEMU, VMware, Hyper-V.
bool pci_tree::in_guest() const {
  return std::ranges::any_of(functions_, [](const pci_function& f) {
    for (const unsigned id : {0x1af4, 0x1b36, 0x15ad, 0x1414})
      if (f.vendor == id || (id == 0x1af4 && f.subsystem_vendor == id)) return true;
    return false;
  });
}

}  // namespace xio::topology
