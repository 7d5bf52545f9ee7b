// SPDX-License-Identifier: MIT
#include "topology/atomics_cures.hpp"

#include <fmt/core.h>

#include "topology/atomics.hpp"

namespace xio::topology {
namespace {

constexpr std::uint16_t k_vendor_qemu = 0x1b36;
constexpr std::uint16_t k_vendor_intel = 0x8086;
constexpr std::uint16_t k_qemu_root_port = 0x000c;  // qemu docs/specs/pci-ids.rst: generic PCIe root port
constexpr std::uint16_t k_qemu_ioh3420 = 0x3420;    // qemu hw/pci-bridge/ioh3420.c

const char* k_qemu_line =
    "-device pcie-root-port,id=rp1,chassis=1,slot=1 -device vfio-pci,host=BDF,bus=rp1 (BDF: the device's address on "
    "the host)";

bool is_qemu_root_port(const pci_function& f) {
  return (f.vendor == k_vendor_qemu && f.device == k_qemu_root_port) ||
         (f.vendor == k_vendor_intel && f.device == k_qemu_ioh3420);
}

bool is_function_0(const pci_function& f) { return f.bus_id.back() == '0'; }

}  // namespace

std::string cure_other_slot() { return "put the device into a slot whose path to the processor routes AtomicOps"; }

std::string cure_common_switch() {
  return "put both devices under one switch that routes AtomicOps, or let another engine do the atomics";
}

std::string cure_unblock(const pci_function& port) {
  return fmt::format("as root: setpci -s {} CAP_EXP+28.w=0:{:x}", port.bus_id, k_atomic_egress_block);
}

std::string cure_requester(const pci_function& device) {
  return fmt::format("as root: xio-info --atomics {} --enable, or setpci -s {} CAP_EXP+28.w={:x}:{:x}", device.bus_id,
                     device.bus_id, k_atomic_requester, k_atomic_requester);
}

std::string cure_redirect(const std::vector<const pci_function*>& up) {
  for (const pci_function* p : up)
    if (p->kind == port_kind::downstream && (p->acs_control & k_acs_redirect) != 0)
      return fmt::format(
          "ACS sends requests up to there; if no device behind that switch has to be kept from the others, as root: "
          "setpci -s {} ECAP_ACS+6.w=0:{:x}",
          p->bus_id, k_acs_redirect);
  return cure_common_switch();
}

std::string cure_root_port(const pci_function& root, const pci_function& device) {
  if (!is_qemu_root_port(root))
    return "use a slot of another root port, or look for AtomicOps in the firmware's settings of this one";
  // QEMU 8.1 and later copy what the host's path can, under these conditions (hw/vfio/pci.c).
  if (device.multifunction || !is_function_0(device))
    return fmt::format(
        "QEMU gives a root port AtomicOps only for a passed-through device that is function 0 and has no other "
        "functions: pass the GPU's function 0 alone, without its audio function: {}",
        k_qemu_line);
  return fmt::format(
      "use QEMU 8.1 or later with one root port for each device, and ask on the host: xio-info --atomics; {}",
      k_qemu_line);
}

std::string cure_guest_root_port(const pci_function& device) {
  return fmt::format("put {} behind a root port of its own, as QEMU 8.1 and later do with -machine q35 {}",
                     device.bus_id, k_qemu_line);
}

std::string cure_express_machine(const pci_function& device) {
  return fmt::format("give the guest PCI Express: {} wants -machine q35 {}", device.bus_id, k_qemu_line);
}

}  // namespace xio::topology
