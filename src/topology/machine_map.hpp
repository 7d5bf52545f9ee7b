// SPDX-License-Identifier: MIT
// Where GPUs, NICs and drives hang in this machine, and how far apart they are: by hwloc, or by sysfs_map.hpp in builds
// without it.
#pragma once
#include <memory>

#include "topology/pci_tree.hpp"

namespace xio::topology {

constexpr int k_most_distant = 1000;  // no PCI function, or not known

struct placed_device {
  std::string bus_id;  // "0000:3b:00.0"
  device_role role = device_role::other;
  std::vector<std::string> names;  // the system's: "mlx5_0", "nvme0n1"
  int numa_node = -1;              // the nearest; -1: several are equally near
  int distance = 0;                // see nearest()
};

class machine_map {
 public:
  // Of this machine.
  machine_map();
  // Of a machine that `lstopo` described as XML, or of one in hwloc's short form ("numa:2 core:4"), which has no
  // devices.
  explicit machine_map(const std::string& description);
  ~machine_map();
  machine_map& operator=(machine_map&&) = delete;

  bool known() const;
  // Steps in the tree of bridges, packages and NUMA nodes; bus ids like "0000:3b:00.0". gpu empty: from the processors
  // that this process may run on, where all that such a processor has nearest counts as 0.
  int distance(const std::string& device, const std::string& gpu) const;
  // Names what the two have in common: "one PCIe bridge", "one package", "one machine". Empty if either is not known.
  std::string common(const std::string& a, const std::string& b) const;
  // GPUs, NICs and drives in the order of their bus ids; distance is 0.
  std::vector<placed_device> devices() const;
  // Those of a kind, nearest to the GPU first.
  std::vector<placed_device> nearest(device_role kind, const std::string& gpu) const;

 private:
  struct tree;
  std::unique_ptr<tree> tree_;
};

}  // namespace xio::topology
