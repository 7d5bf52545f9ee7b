// SPDX-License-Identifier: MIT
// How far NICs and drives are from each GPU, and which a PE there would take.
#include <fstream>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "tools/xio-info/section.hpp"
#include "topology/machine_map.hpp"

namespace xio::info {
namespace {

using topology::device_role;
using topology::machine_map;
using topology::placed_device;

constexpr std::size_t k_file_most = 64u << 20;
constexpr std::size_t k_piece = 64u << 10;

std::string read_description(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::string text, piece(k_piece, '\0');
  // By read(), which returns where iterators throw: a folder opens like a file. Some devices have no end.
  while (text.size() <= k_file_most && in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    text.append(piece, 0, static_cast<std::size_t>(in.gcount()));
  }
  if (in.bad() || text.empty() || text.size() > k_file_most)
    fail(XIO_ERR_ARG, "{} cannot be read as a machine; give a file of 'lstopo --of xml'", file);
  while (!text.empty() && (text.back() == '\n' || text.back() == '\0')) text.pop_back();
  return text;
}

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& n : names) all += (all.empty() ? "" : " ") + n;
  return all;
}

std::string node_text(int node) { return node < 0 ? "no one NUMA node" : fmt::format("NUMA node {}", node); }

void add_devices(section& s, const machine_map& m, device_role kind, const std::string& gpu) {
  const auto list = m.nearest(kind, gpu);
  for (const placed_device& d : list) {
    const std::string where = gpu.empty() ? node_text(d.numa_node) : m.common(d.bus_id, gpu);
    const bool taken = d.distance == list.front().distance;
    s.rows.push_back({d.bus_id, std::uint64_t(d.distance),
                      fmt::format("steps to {}{}{}, {}{}", topology::role_name(kind), d.names.empty() ? "" : " ",
                                  joined(d.names), where, taken ? ", nearest" : "")});
  }
  const char* name = kind == device_role::nic ? "nic" : "drive";
  if (list.empty()) {
    s.rows.push_back({name, std::string("none"), ""});
    return;
  }
  std::string nearest;
  for (const placed_device& d : list)
    if (d.distance == list.front().distance) nearest += (nearest.empty() ? "" : " ") + d.bus_id;
  s.rows.push_back({name, nearest,
                    kind == device_role::nic && nearest.find(' ') != std::string::npos
                        ? "nearest; PEs of this machine take turns"
                        : "nearest"});
}

section section_from(const machine_map& m, const std::string& gpu, const std::string& title) {
  section s{gpu.empty() ? "processors" : gpu, title, {}};
  add_devices(s, m, device_role::nic, gpu);
  add_devices(s, m, device_role::drive, gpu);
  return s;
}

}  // namespace

std::vector<section> topology_sections(const std::string& file) {
  const bool other = !file.empty();
  const auto m = other ? std::make_unique<machine_map>(read_description(file)) : std::make_unique<machine_map>();
  if (!m->known()) {
    if (other)
      fail(XIO_ERR_ARG,
           "{} describes no machine that hwloc understands, or this build has no hwloc; give what 'lstopo --of xml' "
           "wrote",
           file);
    return {{"topology",
             "Topology",
             {{"known", false, "neither hwloc nor /sys/bus/pci says how this machine hangs together"}}}};
  }
  std::vector<section> all;
  for (const placed_device& d : m->devices())
    if (d.role == device_role::gpu)
      all.push_back(section_from(*m, d.bus_id,
                                 fmt::format("From GPU {} ({}{}{})", d.bus_id, joined(d.names),
                                             d.names.empty() ? "" : ", ", node_text(d.numa_node))));
  if (all.empty()) all.push_back(section_from(*m, "", "From the processors of this process (no GPU)"));
  return all;
}

}  // namespace xio::info
