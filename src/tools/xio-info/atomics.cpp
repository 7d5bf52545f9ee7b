// SPDX-License-Identifier: MIT
// PCIe AtomicOps: the ports on each device's way, and what they let pass.
#include "topology/atomics.hpp"
#include "base/error.hpp"
#include "tools/xio-info/section.hpp"
#include "topology/pci_reader.hpp"

namespace xio::info {
namespace {

using topology::atomics_support;
using topology::atomics_verdict;
using topology::device_role;
using topology::pci_function;
using topology::pci_tree;
using topology::port_kind;

const char* kind_name(const pci_function& f) {
  switch (f.kind) {
    case port_kind::endpoint: return "endpoint";
    case port_kind::legacy_endpoint: return "legacy endpoint";
    case port_kind::root_port: return "root port";
    case port_kind::upstream: return "switch, upstream port";
    case port_kind::downstream: return "switch, downstream port";
    case port_kind::to_pci: return "bridge to PCI";
    case port_kind::from_pci: return "bridge from PCI";
    case port_kind::integrated: return "endpoint in the root complex";
    case port_kind::collector: return "event collector";
    case port_kind::none: break;
  }
  return f.readable ? "conventional PCI" : "not readable";
}

std::string port_text(const pci_function& p) {
  if (!p.readable) return "not readable";
  std::string text = fmt::format("{} {:04x}:{:04x}: routes {}, completes {}", kind_name(p), p.vendor, p.device,
                                 (p.capabilities2 & topology::k_atomic_routing) != 0 ? "yes" : "no",
                                 topology::widths_text(p.capabilities2));
  if ((p.control2 & topology::k_atomic_egress_block) != 0) text += ", blocks what leaves";
  if (p.aborted_atomics) text += ", has aborted one (AER bit 24)";
  if ((p.acs_control & topology::k_acs_redirect) != 0) text += ", ACS redirects requests to the root complex";
  return text;
}

void add_verdict(section& s, const std::string& name, const atomics_verdict& v) {
  const bool whole = v.is == atomics_support::yes || v.is == atomics_support::off;
  s.rows.push_back({name, std::string(topology::support_name(v.is)),
                    whole ? "completes " + topology::widths_text(v.widths) : std::string()});
  if (v.is == atomics_support::yes) return;
  s.rows.push_back({name + "_at", v.at, ""});
  s.rows.push_back({name + "_why", v.why, ""});
  s.rows.push_back({name + "_cure", v.cure, ""});
}

section section_of(const pci_tree& t, const pci_function& f) {
  section s{f.bus_id,
            fmt::format("{} {} ({:04x}:{:04x}, {})", topology::role_name(topology::role_of(f)), f.bus_id, f.vendor,
                        f.device, kind_name(f)),
            {}};
  const pci_function* physical = t.physical_of(f);
  if (physical != nullptr) s.rows.push_back({"virtual_function_of", physical->bus_id, "its enable bit counts"});
  for (const pci_function* p : t.above(f)) s.rows.push_back({p->bus_id, port_text(*p), ""});
  const pci_function& speaker = physical != nullptr ? *physical : f;
  if (speaker.readable) {
    s.rows.push_back({"requester_enabled", (speaker.control2 & topology::k_atomic_requester) != 0, "DevCtl2 bit 6"});
    const auto is_on = [&](unsigned bit) { return (speaker.control2 >> bit & 1) != 0 ? "yes" : "no"; };
    s.rows.push_back({"ordered_by_id", fmt::format("requests {}, completions {}", is_on(8), is_on(9)),
                      "DevCtl2 bits 8, 9: those of different requesters may overtake each other"});
    s.rows.push_back({"completes", topology::widths_text(f.capabilities2), "what others ask of it"});
  }
  add_verdict(s, "to_host", topology::atomics_to_host(t, f));
  for (const pci_function& g : t.functions())
    if (topology::role_of(g) == device_role::gpu && &g != &f)
      add_verdict(s, "to_" + g.bus_id, topology::atomics_to_peer(t, f, g));
  return s;
}

const pci_function& named(const pci_tree& t, const std::string& bus_id) {
  const std::string full = topology::full_bus_id(bus_id);
  if (const pci_function* f = t.find(full)) return *f;
  std::string known;
  for (const pci_function& f : t.functions())
    if (!f.is_bridge) known += (known.empty() ? "" : ", ") + f.bus_id;
  fail(XIO_ERR_ARG, "there is no PCI function {}; there are: {}", full, known.empty() ? "none" : known);
}

}  // namespace

std::vector<section> atomics_sections(const std::string& dump, const std::string& bus_id) {
  const pci_tree t = topology::read_pci_tree(dump);
  if (!bus_id.empty()) return {section_of(t, named(t, bus_id))};
  std::vector<section> all;
  for (const pci_function& f : t.functions()) {
    const device_role r = topology::role_of(f);
    if (r == device_role::gpu || r == device_role::nic) all.push_back(section_of(t, f));
  }
  if (all.empty()) all.push_back({"pcie", "PCIe AtomicOps", {{"devices", std::uint64_t{0}, "no GPU and no NIC"}}});
  return all;
}

std::string enable_atomics(const std::string& bus_id) {
  const pci_tree t = topology::read_pci_tree("");
  const pci_function& f = named(t, bus_id);
  const atomics_verdict v = topology::atomics_to_host(t, f);
  if (v.is == atomics_support::yes) return fmt::format("{} may send AtomicOps already\n", f.bus_id);
  if (v.is != atomics_support::off)
    fail(XIO_ERR_UNSUPPORTED, "nothing was changed, AtomicOps of {} would not arrive: at {} {}; {}", f.bus_id, v.at,
         v.why, v.cure);
  topology::enable_atomics_of(v.at);
  return fmt::format("{} may send AtomicOps now, until it is reset\n", v.at);
}

}  // namespace xio::info
