// SPDX-License-Identifier: MIT
#include "topology/peer_path.hpp"

#include <fmt/core.h>

#include <cstdio>

#include "base/first_line.hpp"
#include "topology/access.hpp"

namespace xio::topology {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_none = "no drive is bound to xio";

std::string device_folder(const surroundings& s, const pci_function& f) {
  return s.root + "/sys/bus/pci/devices/" + f.bus_id;
}

std::vector<const pci_function*> drives_of_module(const surroundings& s) {
  std::vector<const pci_function*> all;
  for (const pci_function& f : s.pci.functions())
    if (role_of(f) == device_role::drive && target_of(device_folder(s, f) + "/driver") == "xio") all.push_back(&f);
  return all;
}

std::vector<const pci_function*> gpus_of(const surroundings& s) {
  std::vector<const pci_function*> all;
  for (const pci_function& f : s.pci.functions())
    if (role_of(f) == device_role::gpu) all.push_back(&f);
  return all;
}

// ---- the way between two functions ----------------------------------------------------------------------------------

// Processors on which every host bridge may pass transfers on: AMD's from Zen on (family 17h).
bool is_zen(const surroundings& s) {
  std::ifstream in(s.root + "/proc/cpuinfo");
  bool amd = false;
  for (std::string line; std::getline(in, line);) {
    unsigned family = 0;
    if (line.rfind("vendor_id", 0) == 0) amd = line.find("AuthenticAMD") != std::string::npos;
    if (std::sscanf(line.c_str(), "cpu family : %3u", &family) == 1) return amd && family >= 0x17;
  }
  return false;
}

// Others by the function 00.0 of the host bridge, or by the root port, and some only within one host bridge: the list
// pci_p2pdma_whitelist of drivers/pci/p2pdma.c in Linux' main line. Older kernels lack the rows behind 09a2.
constexpr std::uint16_t k_intel = 0x8086, k_nvidia = 0x10de, k_google = 0x1ae0, k_zhaoxin = 0x1d17, k_any = 0xffff;
struct allowed {
  std::uint16_t vendor, device;
  bool same_host_bridge;
};
constexpr allowed k_allowed[] = {
    {k_intel, 0x3c00, true},   {k_intel, 0x3c01, true},   {k_intel, 0x2f00, true},   {k_intel, 0x2f01, true},
    {k_intel, 0x2030, false},  {k_intel, 0x2031, false},  {k_intel, 0x2032, false},  {k_intel, 0x2033, false},
    {k_intel, 0x2020, false},  {k_intel, 0x09a2, false},  {k_intel, 0x0b25, false},  {k_intel, 0x0cfe, false},
    {k_intel, 0x11fb, false},  {k_intel, 0x1212, false},  {k_intel, 0x1216, false},  {k_intel, 0x4940, false},
    {k_intel, 0x4942, false},  {k_intel, 0x4944, false},  {k_intel, 0x4946, false},  {k_intel, 0x4948, false},
    {k_google, k_any, false},  {k_nvidia, 0x2f95, false}, {k_nvidia, 0x2f96, false}, {k_nvidia, 0x2f97, false},
    {k_nvidia, 0x2f98, false}, {k_zhaoxin, 0x1003, true}, {k_zhaoxin, 0x1005, true}, {k_zhaoxin, 0x1006, true},
    {k_zhaoxin, 0x1007, true}, {k_zhaoxin, 0x1008, false}};

// P2P Request Redirect, P2P Completion Redirect, P2P Egress Control (PCI Express 5.0, 7.7.8.3).
constexpr std::uint16_t k_redirects = 1u << 2 | 1u << 3 | 1u << 5;

// "0000:3b" of a function's way: its root bus.
std::string root_bus(const pci_tree& t, const pci_function& f) {
  const auto way = t.above(f);
  const std::string& first = way.empty() ? f.bus_id : way.back()->bus_id;
  return first.substr(0, first.rfind(':'));
}

bool passes_on(const surroundings& s, const pci_function& f, bool same) {
  std::vector<const pci_function*> candidates;
  if (const pci_function* bridge = s.pci.find(root_bus(s.pci, f) + ":00.0")) candidates.push_back(bridge);
  if (const auto way = s.pci.above(f); !way.empty()) candidates.push_back(way.back());
  for (const pci_function* c : candidates)
    for (const allowed& a : k_allowed)
      if (c->vendor == a.vendor && (a.device == k_any || c->device == a.device) && (same || !a.same_host_bridge))
        return true;
  return false;
}

// The lowest bridge above both; null: their ways join in the root complex.
const pci_function* common_bridge(const pci_tree& t, const pci_function& a, const pci_function& b) {
  const auto of_a = t.above(a), of_b = t.above(b);
  for (const pci_function* p : of_a)
    if (p->kind != port_kind::root_port && std::ranges::find(of_b, p) != of_b.end()) return p;
  return nullptr;
}

// The port below `top` on a's way that sends transfers up, or null.
const pci_function* redirecting(const pci_tree& t, const pci_function& a, const pci_function* top) {
  for (const pci_function* p : t.above(a)) {
    if (p == top) break;
    if ((p->acs_control & k_redirects) != 0) return p;
  }
  return nullptr;
}

// "" where Linux lets the device, a drive or a NIC, reach that GPU's memory, or why not and the cure.
struct obstacle {
  std::string what, cure;
};
obstacle between(const surroundings& s, const char* kind, const pci_function& device, const pci_function& gpu) {
  const pci_function* top = common_bridge(s.pci, device, gpu);
  const pci_function* up = nullptr;
  if (top != nullptr) {
    up = redirecting(s.pci, device, top);
    if (up == nullptr) up = redirecting(s.pci, gpu, top);
    if (up == nullptr) return {};
  }
  if (is_zen(s)) return {};
  const bool same = root_bus(s.pci, device) == root_bus(s.pci, gpu);
  if (passes_on(s, device, same) && passes_on(s, gpu, same)) return {};
  if (up != nullptr)
    return {fmt::format("{} {} and GPU {} share a switch, but ACS at {} sends transfers up to host bridges that are "
                        "not on Linux' list",
                        kind, device.bus_id, gpu.bus_id, up->bus_id),
            fmt::format("where the devices behind that switch need not be kept apart, boot with "
                        "pci=disable_acs_redir={}",
                        up->bus_id)};
  return {fmt::format("transfers between {} {} and GPU {} go through host bridges that are not on Linux' list", kind,
                      device.bus_id, gpu.bus_id),
          fmt::format("put the {} behind the same PCIe switch as the GPU, or keep its data in host memory: "
                      "XIO_HEAP_KIND=host",
                      kind)};
}

piece path(const surroundings& s, const std::vector<const pci_function*>& drives) {
  const auto gpus = gpus_of(s);
  if (gpus.empty()) return {"peer_path", piece_state::not_needed, "no GPU", ""};
  std::size_t open = 0;
  obstacle first;
  for (const pci_function* d : drives)
    for (const pci_function* g : gpus) {
      if (!d->readable || !g->readable)
        return {"peer_path", piece_state::unknown, "configuration beyond 64 bytes cannot be read", "run as root"};
      const obstacle o = between(s, "drive", *d, *g);
      if (o.what.empty())
        ++open;
      else if (first.what.empty())
        first = o;
    }
  const std::size_t all = drives.size() * gpus.size();
  if (open == all)
    return {"peer_path", piece_state::ok, "Linux lets every drive of the kernel module reach every GPU", ""};
  return {"peer_path", piece_state::missing, fmt::format("{} of {} ways are closed: {}", all - open, all, first.what),
          first.cure};
}

// amdgpu moves memory that it exports into the host's for a NIC that cannot reach it (amdgpu_dma_buf_attach), so a GPU
// wants one NIC at least that can.
piece nic_path(const surroundings& s) {
  std::vector<const pci_function*> nics;
  for (const pci_function& f : s.pci.functions()) {
    std::error_code none;
    if (fs::is_directory(device_folder(s, f) + "/infiniband", none)) nics.push_back(&f);
  }
  const auto gpus = gpus_of(s);
  if (nics.empty() || gpus.empty())
    return {"nic_path", piece_state::not_needed, nics.empty() ? "no RDMA device on PCI" : "no GPU", ""};
  for (const pci_function* g : gpus) {
    obstacle first;
    bool open = false;
    for (const pci_function* n : nics) {
      if (!n->readable || !g->readable)
        return {"nic_path", piece_state::unknown, "configuration beyond 64 bytes cannot be read", "run as root"};
      const obstacle o = between(s, "NIC", *n, *g);
      open = open || o.what.empty();
      if (first.what.empty()) first = o;
    }
    if (!open)
      return {"nic_path", piece_state::missing,
              fmt::format("no NIC reaches the memory of GPU {}: {}", g->bus_id, first.what), first.cure};
  }
  return {"nic_path", piece_state::ok, "Linux lets a NIC reach the memory of every GPU", ""};
}

// A drive behind an IOMMU that translates still reaches GPUs by the host bridge, but pays for the translation, and only
// a common switch saves it that.
piece mode(const surroundings& s, const std::vector<const pci_function*>& drives) {
  for (const pci_function* d : drives) {
    const std::string type = first_line(device_folder(s, *d) + "/iommu_group/type");
    if (type.empty() || type == "identity") continue;
    return {"iommu_mode", piece_state::missing,
            fmt::format("the IOMMU translates what drive {} transfers ({}), to GPU memory too", d->bus_id, type),
            "for the shortest way boot with iommu=pt; it then protects nothing from the drive, and pins need "
            "CAP_SYS_RAWIO"};
  }
  return {"iommu_mode", piece_state::ok, "in pass-through, or off, for the drives of the kernel module", ""};
}

}  // namespace

std::vector<piece> peer_path(const surroundings& s) {
  const auto drives = drives_of_module(s);
  if (drives.empty())
    return {nic_path(s),
            {"module_access", piece_state::not_needed, k_none, ""},
            {"peer_path", piece_state::not_needed, k_none, ""},
            {"iommu_mode", piece_state::not_needed, k_none, ""}};
  return {nic_path(s), device_access(s.root, "module_access", {"/dev/xio"}), path(s, drives), mode(s, drives)};
}

}  // namespace xio::topology
