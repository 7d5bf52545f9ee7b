// SPDX-License-Identifier: MIT
#include "topology/kfd_node.hpp"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>

namespace xio::topology {

namespace {

// Lines of "name number" (linux amdkfd kfd_topology.c, node_show). A value that is no number counts as 0.
using properties = std::map<std::string, std::uint64_t>;

constexpr int k_lines_max = 256;
constexpr std::uint64_t k_nodes_max = 4096;
constexpr std::uint64_t k_link_xgmi = 11;  // HSA_IOLINK_TYPE_XGMI, libhsakmt hsakmttypes.h

properties read_properties(const std::string& file) {
  properties found;
  std::ifstream in(file);
  std::string line;
  for (int n = 0; n < k_lines_max && std::getline(in, line); ++n) {
    const auto space = line.find(' ');
    if (space == std::string::npos) continue;
    std::uint64_t value = 0;
    std::from_chars(line.data() + space + 1, line.data() + line.size(), value);
    found[line.substr(0, space)] = value;
  }
  return found;
}

std::uint64_t get(const properties& p, const char* name) {
  const auto at = p.find(name);
  return at == p.end() ? 0 : at->second;
}

std::string node_folder(const std::string& topology, std::uint64_t n) {
  return topology + "/nodes/" + std::to_string(n);
}

// location_id: bus in [15:8], device and function below (kfd_topology.c, pci_dev_id).
bool is_at(const properties& p, unsigned domain, unsigned location) {
  return get(p, "simd_count") != 0 && get(p, "domain") == domain && get(p, "location_id") == location;
}

bool is_cpu(const std::string& topology, std::uint64_t n) {
  const properties p = read_properties(node_folder(topology, n) + "/properties");
  return get(p, "cpu_cores_count") != 0 && get(p, "simd_count") == 0;
}

bool links_to_cpu_by_xgmi(const std::string& topology, std::uint64_t n) {
  for (std::uint64_t link = 0; link < k_nodes_max; ++link) {
    const properties p =
        read_properties(node_folder(topology, n) + "/io_links/" + std::to_string(link) + "/properties");
    if (p.empty()) return false;
    if (get(p, "type") == k_link_xgmi && is_cpu(topology, get(p, "node_to"))) return true;
  }
  return false;
}

}  // namespace

std::uint64_t recommended_engines(const std::string& topology, std::uint32_t node, std::uint32_t link) {
  const std::string folder = node_folder(topology, node) + "/io_links/" + std::to_string(link);
  return get(read_properties(folder + "/properties"), "recommended_sdma_engine_id_mask");
}

std::optional<kfd_node> find_kfd_node(const std::string& topology, const std::string& bus_id) {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  if (std::sscanf(bus_id.c_str(), "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4) return {};
  const unsigned location = bus << 8 | device << 3 | function;
  for (std::uint64_t n = 0; n < k_nodes_max; ++n) {
    std::error_code error;
    if (!std::filesystem::is_directory(node_folder(topology, n), error)) return {};
    const properties p = read_properties(node_folder(topology, n) + "/properties");
    if (!is_at(p, domain, location)) continue;
    return kfd_node{get(p, "hive_id"), get(p, "cpu_cores_count") != 0, links_to_cpu_by_xgmi(topology, n)};
  }
  return {};
}

}  // namespace xio::topology
