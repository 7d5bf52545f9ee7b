// SPDX-License-Identifier: MIT
#include "ctx/peer_atomics.hpp"

#include <sstream>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "topology/atomics.hpp"
#include "topology/kfd_node.hpp"
#include "topology/pci_reader.hpp"

namespace xio {
namespace {

using topology::atomics_support;
using topology::pci_function;
using topology::pci_tree;

// XIO_PCIE_GPUS: the GPU of the n-th PE of this machine is the n-th of the list.
std::vector<std::string> stand_ins(const std::string& list, const topology::placement& place) {
  std::istringstream in(list);
  std::vector<std::string> ids;
  for (std::string id; std::getline(in, id, ',');)
    if (guard([&] { ids.push_back(topology::full_bus_id(id)); }) != XIO_OK)
      fail(XIO_ERR_CONFIG, "XIO_PCIE_GPUS: {}", last_error());
  std::vector<std::string> gpus;
  std::size_t here = 0;
  for (const bool together : place.together) gpus.push_back(!together || ids.empty() ? "" : ids[here++ % ids.size()]);
  return gpus;
}

// Links between GPUs that are not PCIe carry atomics.
bool one_hive(const std::string& a, const std::string& b) {
  const auto one = topology::find_kfd_node("", a);
  const auto other = topology::find_kfd_node("", b);
  return one && other && one->hive != 0 && one->hive == other->hive;
}

const pci_function& function_at(const pci_tree& t, const std::string& bus_id) {
  if (const pci_function* f = t.find(bus_id)) return *f;
  fail(XIO_ERR_CONFIG, "the GPU {} is not among the PCI functions that can be seen; mount /sys", bus_id);
}

std::string obstacle_between(const pci_tree& t, const std::string& mine, const std::string& other) {
  const auto v = topology::atomics_to_peer(t, function_at(t, mine), function_at(t, other));
  if (v.is == atomics_support::yes) return "";
  if (v.is == atomics_support::unknown) {
    log::warn("it is not known whether atomics of GPU {} reach GPU {} over PCIe (at {} {}); see xio-info --atomics",
              mine, other, v.at, v.why);
    return "";
  }
  return fmt::format("atomics of GPU {} do not reach GPU {}: at {} {}; {}", mine, other, v.at, v.why, v.cure);
}

std::string obstacle_here(const options& o, const std::vector<std::string>& gpus, const topology::placement& place,
                          std::size_t me) {
  const bool described = !o.pcie_dump.empty();
  // Other vendors' drivers offer peers' memory only over links that they vouch for.
  if (!described && !gpu::hdp().amd) return "";
  const std::vector<std::string> at = described ? stand_ins(o.pcie_gpus, place) : gpus;
  std::optional<pci_tree> tree;
  for (const std::string& other : at) {
    if (at[me].empty() || other.empty() || topology::pci_part(other) == topology::pci_part(at[me]) ||
        (!described && one_hive(at[me], other)))
      continue;
    if (!tree && guard([&] { tree = topology::read_pci_tree(o.pcie_dump); }) != XIO_OK) {
      if (described) fail(XIO_ERR_CONFIG, "XIO_PCIE_DUMP: {}", last_error());
      log::warn("it is not known whether atomics pass between GPUs of this machine: {}", last_error());
      return "";
    }
    const std::string mine = topology::pci_part(at[me]), theirs = topology::pci_part(other);
    if (std::string why = obstacle_between(*tree, mine, theirs); !why.empty()) return why;
  }
  return "";
}

}  // namespace

std::string find_direct_obstacle(agreement& all, bootstrap::channel& channel, const options& o,
                                 const std::vector<std::string>& gpus, const topology::placement& place,
                                 const std::string& known) {
  std::string mine = known;
  all.each(call::init, [&] {
    if (mine.empty()) mine = obstacle_here(o, gpus, place, static_cast<std::size_t>(channel.rank()));
  });
  const auto found = bootstrap::allgather_value(channel, static_cast<std::uint8_t>(!mine.empty()));
  const bool asked = o.peer_access == option::peer_access::off;
  if (!mine.empty() && !asked) log::warn("{}; until then copies, atomics and signals of this world go by RDMA", mine);
  for (std::size_t pe = 0; pe < found.size() && mine.empty(); ++pe)
    if (found[pe] != 0) mine = fmt::format("PE {} found an obstacle, which its log names", pe);
  return mine;
}

void avoid_direct(ctx_settings& settings, const std::string& obstacle) {
  if (settings.route == XIO_ROUTE_DIRECT || settings.route == XIO_ROUTE_SDMA)
    fail(XIO_ERR_UNSUPPORTED,
         "route {} wants heaps that kernels of all PEs read and change: {}; or set XIO_ROUTE=auto or rdma",
         settings.route == XIO_ROUTE_DIRECT ? "direct" : "sdma", obstacle);
  settings.route = XIO_ROUTE_RDMA;
}

}  // namespace xio
