// SPDX-License-Identifier: MIT
// What the kernel's compute driver says of one AMD GPU: /sys/class/kfd/kfd/topology.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace xio::topology {

constexpr const char* k_kfd_topology = "/sys/class/kfd/kfd/topology";

struct kfd_node {
  std::uint64_t hive = 0;    // of GPUs linked by xGMI; 0: of none
  bool has_cpu = false;      // one node with CPU cores: an APU
  bool cpu_by_xgmi = false;  // a link to CPUs that is not PCIe
};

// The node of the GPU at "0000:3b:00.0"; nothing if there is none or it cannot be read.
std::optional<kfd_node> find_kfd_node(const std::string& topology, const std::string& bus_id);

// The copy engines that the kernel recommends for link `link` of node `node`, a bit for each; 0: it does not say.
std::uint64_t recommended_engines(const std::string& topology, std::uint32_t node, std::uint32_t link);

}  // namespace xio::topology
