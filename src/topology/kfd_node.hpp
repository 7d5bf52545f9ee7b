// SPDX-License-Identifier: MIT
// What the kernel's compute driver says of one AMD GPU: /sys/class/kfd/kfd/topology.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace xio::topology {

constexpr const char* k_kfd_topology = "/sys/class/kfd/kfd/topology";

struct kfd_node {
  std::uint32_t number = 0;  // of the kernel's, equal in every container
  std::string bus_id;        // of the PCI function
  std::string identity;      // among this machine's GPUs, see below
  std::uint64_t hive = 0;    // of GPUs linked by xGMI; 0: of none
  bool has_cpu = false;      // one node with CPU cores: an APU
  bool cpu_by_xgmi = false;  // a link to CPUs that is not PCIe
};

// A GPU in partitions (CPX, NPS4) is one PCI function and several nodes. The kernel adds the partition's number to the
// function's place, in its lowest bits or, in some versions, above bit 27 (linux amdkfd kfd_topology.c,
// kfd_topology_add_device); HIP shows the lowest bits as the function (clr rocdevice.cpp). So partitions are named
// 0000:3b:00.1 .., which PCI does not have, or all alike. The identity is "0000:3b:00.0" for a whole GPU, and
// "0000:3b:00.0#5" for the partition that is node 5.

// root stands before /sys and /dev below: "", or a folder that stands for a machine.

// "0000:3b:00.0" of an identity, or of a name that HIP gave: the function that PCI has.
std::string pci_function_of(const std::string& root, const std::string& name);

// The same without looking: what stands before "#".
inline std::string pci_part(const std::string& identity) { return identity.substr(0, identity.find('#')); }

// By identity; a bus id alone finds the first node of its GPU. Nothing if there is none or it cannot be read.
std::optional<kfd_node> find_kfd_node(const std::string& root, const std::string& identity);

// The only node that HIP's name fits; nothing if none does, or if several partitions may have that name: HIP 5.2 shows
// function 0 for all.
std::optional<kfd_node> find_named_kfd_node(const std::string& root, const std::string& name);

// The runtimes count only those nodes that this process may use, from 0 (libhsakmt topology.c).
std::optional<kfd_node> find_runtime_kfd_node(const std::string& root, std::uint32_t number);

// A GPU and its copy engines, as the makers of queues need them; names as in sysfs.
struct kfd_gpu_node {
  std::uint32_t number = 0;  // of the kernel's
  std::string identity;
  std::uint32_t gpu_id = 0;  // of the compute driver's calls
  std::uint32_t engines = 0, xgmi_engines = 0, queues_per_engine = 0;
  struct link {
    std::uint32_t to_node;
    bool xgmi;
    std::uint64_t recommended;  // engines for it, a bit for each; 0: the kernel does not say
  };
  std::vector<link> links;
};
// Those that this process may use.
std::vector<kfd_gpu_node> kfd_gpu_nodes(const std::string& root);

// The copy engines that the kernel recommends for link `link` of the runtimes' node `node`, a bit for each; 0: it does
// not say.
std::uint64_t recommended_engines(const std::string& root, std::uint32_t node, std::uint32_t link);

// Why libhsakmt, and so HIP, finds no GPU: the first file that it wants and that is not there or not open to this
// process, as a sentence. Nothing if all of them are.
std::optional<std::string> missing_for_runtime(const std::string& root);

}  // namespace xio::topology
