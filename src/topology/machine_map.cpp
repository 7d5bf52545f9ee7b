// SPDX-License-Identifier: MIT
#include "topology/machine_map.hpp"
#include "config.h"

#include <fmt/core.h>

#include <algorithm>

#if HAVE_HWLOC
#include <hwloc.h>
#else
#include "topology/sysfs_map.hpp"
#endif

namespace xio::topology {

#if HAVE_HWLOC

struct machine_map::tree {
  hwloc_topology_t topology = nullptr;
  bool loaded = false;

  explicit tree(const std::string* description) {
    if (hwloc_topology_init(&topology) != 0) return;
    hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
    loaded = (description == nullptr || take(*description)) && hwloc_topology_load(topology) == 0;
  }
  bool take(const std::string& text) const {
    if (text.empty() || text.front() != '<') return hwloc_topology_set_synthetic(topology, text.c_str()) == 0;
    // The trailing zero counts.
    return hwloc_topology_set_xmlbuffer(topology, text.c_str(), static_cast<int>(text.size()) + 1) == 0;
  }
  ~tree() {
    if (topology != nullptr) hwloc_topology_destroy(topology);
  }
  tree& operator=(tree&&) = delete;

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
  if (mine == nullptr) return k_most_distant;
  const bool bound = hwloc_topology_is_thissystem(t) != 0 && hwloc_get_cpubind(t, mine, HWLOC_CPUBIND_PROCESS) == 0;
  int steps = 0;
  if (bound && !hwloc_bitmap_iszero(mine) && hwloc_bitmap_intersects(mine, home->cpuset) == 0)
    steps = steps_between(home, hwloc_get_obj_covering_cpuset(t, mine));
  hwloc_bitmap_free(mine);
  return steps;
}

std::string bus_id_of(hwloc_obj_t o) {
  const auto& p = o->attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", p.domain, p.bus, p.dev, p.func);
}

device_role role_of(hwloc_obj_t o) {
  pci_function f;
  f.device_class = o->attr->pcidev.class_id;
  return role_of(f);
}

int numa_node_of(hwloc_topology_t t, hwloc_obj_t o) {
  const hwloc_obj_t home = hwloc_get_non_io_ancestor_obj(t, o);
  return home->nodeset != nullptr && hwloc_bitmap_weight(home->nodeset) == 1 ? hwloc_bitmap_first(home->nodeset) : -1;
}

// An engine has one name as a network interface and one as an RDMA device.
std::vector<std::string> names_below(hwloc_obj_t o) {
  std::vector<std::string> names;
  for (hwloc_obj_t c = o->io_first_child; c != nullptr; c = c->next_sibling)
    if (c->type == HWLOC_OBJ_OS_DEVICE && c->name != nullptr) names.emplace_back(c->name);
  std::ranges::sort(names);
  return names;
}

hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b) {
  int up_a = steps_to_root(a), up_b = steps_to_root(b);
  for (; up_a > up_b; --up_a) a = a->parent;
  for (; up_b > up_a; --up_b) b = b->parent;
  for (; a != b; a = a->parent) b = b->parent;
  return a;
}

const char* place_name(hwloc_obj_t o) {
  switch (o->type) {
    case HWLOC_OBJ_PCI_DEVICE: return "one device";
    case HWLOC_OBJ_BRIDGE:
      return o->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI ? "one PCIe bridge" : "one host bridge";
    case HWLOC_OBJ_PACKAGE: return "one package";
    case HWLOC_OBJ_MACHINE: return "one machine";
    default: return "one part of a package";
  }
}

}  // namespace

machine_map::machine_map() : tree_(std::make_unique<tree>(nullptr)) {}
machine_map::machine_map(const std::string& description) : tree_(std::make_unique<tree>(&description)) {}

bool machine_map::known() const { return tree_->loaded; }

int machine_map::distance(const std::string& device, const std::string& gpu) const {
  if (!tree_->loaded) return k_most_distant;
  const hwloc_obj_t to = tree_->find(device);
  if (to == nullptr) return k_most_distant;
  const hwloc_obj_t from = tree_->find(gpu);
  return from != nullptr ? steps_between(to, from) : steps_from_processors(tree_->topology, to);
}

std::string machine_map::common(const std::string& a, const std::string& b) const {
  if (!tree_->loaded) return "";
  const hwloc_obj_t one = tree_->find(a), other = tree_->find(b);
  return one == nullptr || other == nullptr ? "" : place_name(common_ancestor(one, other));
}

std::vector<placed_device> machine_map::devices() const {
  std::vector<placed_device> all;
  hwloc_obj_t o = nullptr;
  while (tree_->loaded && (o = hwloc_get_next_pcidev(tree_->topology, o)) != nullptr) {
    const device_role r = role_of(o);
    if (r == device_role::gpu || r == device_role::nic || r == device_role::drive)
      all.push_back({bus_id_of(o), r, names_below(o), numa_node_of(tree_->topology, o), 0});
  }
  std::ranges::sort(all, [](const auto& a, const auto& b) { return a.bus_id < b.bus_id; });
  return all;
}

#else

struct machine_map::tree : sysfs_map {};
machine_map::machine_map() : tree_(std::make_unique<tree>()) {}
// Descriptions are hwloc's.
machine_map::machine_map(const std::string&) {}
bool machine_map::known() const { return tree_ != nullptr && tree_->known(); }
int machine_map::distance(const std::string& device, const std::string& gpu) const {
  return tree_ != nullptr ? tree_->distance(device, gpu) : k_most_distant;
}
std::string machine_map::common(const std::string& a, const std::string& b) const {
  return tree_ != nullptr ? tree_->common(a, b) : "";
}
std::vector<placed_device> machine_map::devices() const {
  return tree_ != nullptr ? tree_->devices() : std::vector<placed_device>{};
}

#endif

std::vector<placed_device> machine_map::nearest(device_role kind, const std::string& gpu) const {
  std::vector<placed_device> some;
  for (placed_device& d : devices()) {
    if (d.role != kind || d.bus_id == gpu) continue;
    d.distance = distance(d.bus_id, gpu);
    some.push_back(std::move(d));
  }
  std::ranges::stable_sort(some, [](const auto& a, const auto& b) { return a.distance < b.distance; });
  return some;
}

machine_map::~machine_map() = default;

}  // namespace xio::topology
