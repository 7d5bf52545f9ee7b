// SPDX-License-Identifier: MIT
#include "topology/atomics.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <optional>

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

// Sentences that say what to do where AtomicOps do not pass, with the line to type.
std::string cure_other_slot() { return "put the device into a slot whose path to the processor routes AtomicOps"; }

std::string cure_common_switch() {
  return "put both devices under one switch that routes AtomicOps, or let another engine do the atomics";
}

// Lets AtomicOps out of a port, or into the fabric at all.
std::string cure_unblock(const pci_function& port) {
  return fmt::format("as root: setpci -s {} CAP_EXP+28.w=0:{:x}", port.bus_id, k_atomic_egress_block);
}

std::string cure_requester(const pci_function& device) {
  return fmt::format("as root: xio-info --atomics {} --enable, or setpci -s {} CAP_EXP+28.w={:x}:{:x}", device.bus_id,
                     device.bus_id, k_atomic_requester, k_atomic_requester);
}

// ACS sends requests up to the root complex: where that is not wanted.
std::string cure_redirect(const std::vector<const pci_function*>& up) {
  for (const pci_function* p : up)
    if (p->kind == port_kind::downstream && (p->acs_control & k_acs_redirect) != 0)
      return fmt::format(
          "ACS sends requests up to there; if no device behind that switch has to be kept from the others, as root: "
          "setpci -s {} ECAP_ACS+6.w=0:{:x}",
          p->bus_id, k_acs_redirect);
  return cure_common_switch();
}

// A root port that completes none: in a guest QEMU decides that by what hangs off it.
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

using ports = std::vector<const pci_function*>;
// Nothing: go on.
using objection = std::optional<atomics_verdict>;

constexpr std::uint32_t k_widths = k_atomic_complete_32 | k_atomic_complete_64 | k_atomic_complete_128;
constexpr std::uint8_t k_version_2 = 2;  // of the capability: the first that has the second registers

atomics_verdict refuse(atomics_support is, const pci_function& at, std::string why, std::string cure) {
  return {is, 0, at.bus_id, std::move(why), std::move(cure)};
}

objection unreadable(const pci_function& f) {
  if (f.readable) return {};
  return refuse(atomics_support::unknown, f, "its configuration beyond 64 bytes cannot be read",
                "run as root (CAP_SYS_ADMIN)");
}

const char* port_text(const pci_function& f) {
  switch (f.kind) {
    case port_kind::root_port: return "the root port";
    case port_kind::upstream: return "the switch's upstream port";
    case port_kind::downstream: return "the switch's downstream port";
    default: return "the bridge";
  }
}

// A port that requests pass. leaving: they go out of the link of this port.
objection passing(const pci_function& port, bool leaving) {
  if (auto o = unreadable(port)) return o;
  if (port.kind == port_kind::none || port.kind == port_kind::to_pci || port.kind == port_kind::from_pci)
    return refuse(atomics_support::no, port, "a bridge to conventional PCI is on the way, which knows no AtomicOps",
                  cure_other_slot());
  if (port.express_version < k_version_2 || (port.capabilities2 & k_atomic_routing) == 0)
    return refuse(atomics_support::no, port,
                  fmt::format("{} routes no AtomicOps (DevCap2 bit 6 is 0)", port_text(port)),
                  port.kind == port_kind::root_port ? cure_common_switch() : cure_other_slot());
  if (leaving && (port.control2 & k_atomic_egress_block) != 0)
    return refuse(atomics_support::no, port,
                  fmt::format("{} blocks AtomicOps that leave by it (DevCtl2 bit 7 is 1)", port_text(port)),
                  cure_unblock(port));
  return {};
}

objection completing(const pci_function& f, const std::string& what, const std::string& cure) {
  if (auto o = unreadable(f)) return o;
  const std::uint32_t has = f.express_version < k_version_2 ? 0 : f.capabilities2 & k_widths;
  std::string lacks;
  if ((has & k_atomic_complete_32) == 0) lacks = "32-bit (DevCap2 bit 7 is 0)";
  if ((has & k_atomic_complete_64) == 0)
    lacks += std::string(lacks.empty() ? "" : " and ") + "64-bit (DevCap2 bit 8 is 0)";
  if (lacks.empty()) return {};
  auto v = refuse(atomics_support::no, f, fmt::format("{} completes no {} AtomicOps", what, lacks), cure);
  v.widths = has;
  return v;
}

// Whether f can be a requester at all, its enable bit aside.
objection requesting(const pci_tree& t, const pci_function& f) {
  if (auto o = unreadable(f)) return o;
  if (f.kind == port_kind::none)
    return refuse(atomics_support::no, f, "it has no PCI Express capability, and conventional PCI knows no AtomicOps",
                  t.in_guest() ? cure_express_machine(f) : cure_other_slot());
  if (f.express_version < k_version_2)
    return refuse(atomics_support::no, f, "its PCI Express capability is older than AtomicOps (no DevCtl2)",
                  "use another device");
  return {};
}

objection without_root_port(const pci_tree& t, const pci_function& f) {
  const ports up = t.above(f);
  if (!up.empty() && (up.back()->kind == port_kind::root_port || !up.back()->readable)) return {};
  if (t.in_guest())
    return refuse(atomics_support::no, f, "it sits on the guest's root bus, where hypervisors offer no AtomicOps",
                  cure_guest_root_port(f));
  // An endpoint hangs off a port, which may be missing in a dump.
  if (f.kind == port_kind::endpoint || f.kind == port_kind::legacy_endpoint)
    return refuse(atomics_support::unknown, f,
                  fmt::format("no port that leads to its bus, {}, is in sight", f.bus_id.substr(0, 7)),
                  "look at all functions (lspci -xxxx -D, as root); its own part: " + cure_requester(f));
  return refuse(atomics_support::unknown, f, "it is part of the root complex, and no port's registers speak for it",
                "see the processor's manual");
}

atomics_verdict by_bit(const pci_function& f, std::uint32_t widths) {
  if ((f.control2 & k_atomic_requester) != 0) return {atomics_support::yes, widths, "", "", ""};
  auto v = refuse(atomics_support::off, f, "its driver has not allowed it to send AtomicOps (DevCtl2 bit 6 is 0)",
                  cure_requester(f));
  v.widths = widths;
  return v;
}

// A virtual function sends what its physical one may (its own bit is reserved, 9.3.5.10), through the same ports.
const pci_function& speaker_for(const pci_tree& t, const pci_function& f) {
  const pci_function* physical = t.physical_of(f);
  return physical != nullptr ? *physical : f;
}

objection virtual_alone(const pci_function& f) {
  if (f.vendor != 0xffff) return {};
  return refuse(atomics_support::unknown, f, "it is a virtual function, and its physical function is not in sight",
                "ask on the host of the physical function");
}

// --- Between devices ---------------------------------------------------------------------------------

struct crossing {
  ports up, down;    // from the requester; to the completer, the nearest to it first
  bool across_root;  // turns in the root complex
};

bool redirects(const ports& up) {
  return std::ranges::any_of(up, [](const pci_function* p) {
    return p->kind == port_kind::downstream && (p->acs_control & k_acs_redirect) != 0;
  });
}

// The first switch that both hang off turns requests, unless ACS sends them on to the root complex.
crossing cross(const pci_tree& t, const pci_function& a, const pci_function& b) {
  crossing c{t.above(a), t.above(b), true};
  const auto shared = std::ranges::find_first_of(c.up, c.down);
  if (shared == c.up.end() || (*shared)->kind != port_kind::upstream) return c;
  const ports below(c.up.begin(), shared);
  if (redirects(below)) return c;
  c.down.erase(std::ranges::find(c.down, *shared), c.down.end());
  c.up = below;
  c.across_root = false;
  return c;
}

objection between_host_bridges(const crossing& c, const pci_function& a, const pci_function& b) {
  // Everything but device and function: domain and bus of the root ports.
  const auto root_bus = [](const ports& p) { return p.back()->bus_id.substr(0, p.back()->bus_id.rfind(':')); };
  if (!c.across_root || root_bus(c.up) == root_bus(c.down)) return {};
  return refuse(atomics_support::unknown, a,
                fmt::format("{} hangs off another host bridge, and no register says whether AtomicOps pass between "
                            "host bridges",
                            b.bus_id),
                cure_common_switch());
}

objection on_the_way(const crossing& c, const pci_function& a, const pci_function& b) {
  for (const pci_function* p : c.up)
    if (auto o = passing(*p, p->kind == port_kind::upstream)) {
      // Without the detour that root port would not be on the way.
      if (p->kind == port_kind::root_port && redirects(c.up)) o->cure = cure_redirect(c.up);
      return o;
    }
  for (const pci_function* p : c.down)
    if (auto o = passing(*p, p->kind != port_kind::upstream)) return o;
  return between_host_bridges(c, a, b);
}

}  // namespace

const char* support_name(atomics_support a) {
  switch (a) {
    case atomics_support::yes: return "yes";
    case atomics_support::off: return "off";
    case atomics_support::no: return "no";
    case atomics_support::unknown: break;
  }
  return "unknown";
}

std::string widths_text(std::uint32_t widths) {
  std::string out;
  if ((widths & k_atomic_complete_32) != 0) out += " 32";
  if ((widths & k_atomic_complete_64) != 0) out += " 64";
  if ((widths & k_atomic_complete_128) != 0) out += " 128";
  return out.empty() ? "none" : out.substr(1);
}

atomics_verdict atomics_to_host(const pci_tree& t, const pci_function& requester) {
  const pci_function& f = speaker_for(t, requester);
  if (auto o = virtual_alone(f)) return *o;
  if (auto o = requesting(t, f)) return *o;
  if (auto o = without_root_port(t, f)) return *o;
  ports up = t.above(f);
  const pci_function& root = *up.back();
  up.pop_back();
  for (const pci_function* p : up)
    if (auto o = passing(*p, p->kind == port_kind::upstream)) return *o;
  if (auto o = completing(root, port_text(root), cure_root_port(root, f))) return *o;
  return by_bit(f, root.capabilities2 & k_widths);
}

atomics_verdict atomics_to_peer(const pci_tree& t, const pci_function& requester, const pci_function& completer) {
  const pci_function& f = speaker_for(t, requester);
  const pci_function& g = speaker_for(t, completer);
  for (const pci_function* p : {&f, &g}) {
    if (auto o = virtual_alone(*p)) return *o;
    if (auto o = requesting(t, *p)) return *o;
    if (auto o = without_root_port(t, *p)) return *o;
  }
  if (auto o = completing(g, "the device", "let another engine do the atomics, such as a NIC")) return *o;
  if (auto o = on_the_way(cross(t, f, g), f, g)) return *o;
  return by_bit(f, g.capabilities2 & k_widths);
}

}  // namespace xio::topology
