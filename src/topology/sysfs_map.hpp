// SPDX-License-Identifier: MIT
// Where devices hang by the paths below /sys/devices, for builds without hwloc: machine_map.hpp in small.
#pragma once
#include <optional>

#include "topology/machine_map.hpp"

namespace xio::topology {

class sysfs_map {
 public:
  // root: in front of /sys, "" or a folder that stands for a machine.
  explicit sysfs_map(std::string root = "");

  bool known() const;
  int distance(const std::string& device, const std::string& gpu) const;
  std::string common(const std::string& a, const std::string& b) const;
  std::vector<placed_device> devices() const;

 private:
  // The host bridge, the bridges below it and the function itself.
  using way = std::vector<std::string>;
  std::optional<way> way_to(const std::string& bus_id) const;
  int numa_node(const std::string& bus_id) const;
  int steps_from_processors(const std::string& bus_id) const;
  std::vector<std::string> names(const std::string& bus_id) const;
  std::string folder_of(const std::string& bus_id) const;

  const std::string root_;
};

}  // namespace xio::topology
