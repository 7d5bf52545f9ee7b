// SPDX-License-Identifier: MIT
// How far NICs are from the GPU or the processors of this process, by hwloc.
#pragma once
#include <memory>
#include <string>

namespace xio::rdma {

constexpr int k_far = 1000;  // no PCI function, or not known

class machine_map {
 public:
  // Of this machine; knows nothing where hwloc is missing or fails.
  machine_map();
  // Of a machine that `lstopo` described, for tests.
  explicit machine_map(const std::string& xml);
  ~machine_map();
  machine_map(const machine_map&) = delete;
  machine_map& operator=(const machine_map&) = delete;

  // Steps in the tree of bridges, packages and NUMA nodes; bus ids like "0000:3b:00.0". gpu empty: from the processors
  // that this process may run on, where all that such a processor has nearest counts as 0.
  int distance(const std::string& nic, const std::string& gpu) const;

 private:
  struct tree;
  std::unique_ptr<tree> tree_;
};

}  // namespace xio::rdma
