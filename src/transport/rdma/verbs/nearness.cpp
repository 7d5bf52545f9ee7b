// SPDX-License-Identifier: MIT
#include "transport/rdma/verbs/nearness.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif

#if HAVE_HWLOC
#include <hwloc.h>
#endif

namespace xio::rdma {

#if HAVE_HWLOC

struct machine_map::tree {
  hwloc_topology_t topology = nullptr;
  bool loaded = false;

  explicit tree(const std::string* xml) {
    if (hwloc_topology_init(&topology) != 0) return;
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    // The trailing zero counts.
    const bool taken =
        xml == nullptr || hwloc_topology_set_xmlbuffer(topology, xml->c_str(), static_cast<int>(xml->size()) + 1) == 0;
    loaded = taken && hwloc_topology_load(topology) == 0;
  }
  ~tree() {
    if (topology != nullptr) hwloc_topology_destroy(topology);
  }
  tree(const tree&) = delete;
  tree& operator=(const tree&) = delete;

  hwloc_obj_t find(const std::string& bus_id) const {
    return bus_id.empty() ? nullptr : hwloc_get_pcidev_by_busidstring(topology, bus_id.c_str());
  }
};

namespace {

int steps_to_root(hwloc_obj_t o) {
  int n = 0;
  for (; o->parent != nullptr; o = o->parent) ++n;
  return n;
}

int steps_between(hwloc_obj_t a, hwloc_obj_t b) {
  int up_a = steps_to_root(a), up_b = steps_to_root(b), steps = 0;
  for (; up_a > up_b; --up_a, ++steps) a = a->parent;
  for (; up_b > up_a; --up_b, ++steps) b = b->parent;
  for (; a != b; a = a->parent, b = b->parent) steps += 2;
  return steps;
}

int steps_from_processors(hwloc_topology_t t, hwloc_obj_t nic) {
  const hwloc_obj_t home = hwloc_get_non_io_ancestor_obj(t, nic);
  const hwloc_bitmap_t mine = hwloc_bitmap_alloc();
  if (mine == nullptr) return k_far;
  const bool bound = hwloc_topology_is_thissystem(t) != 0 && hwloc_get_cpubind(t, mine, HWLOC_CPUBIND_PROCESS) == 0;
  int steps = 0;
  if (bound && !hwloc_bitmap_iszero(mine) && hwloc_bitmap_intersects(mine, home->cpuset) == 0)
    steps = steps_between(home, hwloc_get_obj_covering_cpuset(t, mine));
  hwloc_bitmap_free(mine);
  return steps;
}

}  // namespace

machine_map::machine_map() : tree_(std::make_unique<tree>(nullptr)) {}
machine_map::machine_map(const std::string& xml) : tree_(std::make_unique<tree>(&xml)) {}

int machine_map::distance(const std::string& nic, const std::string& gpu) const {
  if (!tree_->loaded) return k_far;
  const hwloc_obj_t device = tree_->find(nic);
  if (device == nullptr) return k_far;
  const hwloc_obj_t from = tree_->find(gpu);
  return from != nullptr ? steps_between(device, from) : steps_from_processors(tree_->topology, device);
}

#else

struct machine_map::tree {};
machine_map::machine_map() = default;
machine_map::machine_map(const std::string&) {}
int machine_map::distance(const std::string&, const std::string&) const { return k_far; }

#endif

machine_map::~machine_map() = default;

}  // namespace xio::rdma
