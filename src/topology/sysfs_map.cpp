// SPDX-License-Identifier: MIT
#include "topology/sysfs_map.hpp"

#include <sched.h>

#include <charconv>
#include <sstream>

#include "base/first_line.hpp"

namespace xio::topology {
namespace {

namespace fs = std::filesystem;

// As many steps as hwloc counts between packages: up to the machine and down.
constexpr int k_other_numa_node = 2;

template <class T>
T number_in(const std::string& text, int base, T otherwise) {
  const std::size_t begin = base == 16 && text.starts_with("0x") ? 2 : 0;
  T value{};
  return std::from_chars(text.data() + begin, text.data() + text.size(), value, base).ec == std::errc{} ? value
                                                                                                        : otherwise;
}

// "0-3,8": whether this process may run on one of them (Linux Documentation/admin-guide/cputopology.rst).
bool runs_on(const std::string& list) {
  cpu_set_t mine;
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) return true;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ',');) {
    const int first = number_in(part, 10, -1);
    const auto dash = part.find('-');
    const int last = dash == std::string::npos ? first : number_in(part.substr(dash + 1), 10, first);
    for (int cpu = std::max(first, 0); cpu <= last && cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &mine)) return true;
  }
  return false;
}

std::size_t shared_steps(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

sysfs_map::sysfs_map(std::string root) : root_(std::move(root)) {}

std::string sysfs_map::folder_of(const std::string& bus_id) const { return root_ + "/sys/bus/pci/devices/" + bus_id; }

bool sysfs_map::known() const {
  std::error_code error;
  return fs::is_directory(folder_of(""), error);
}

// The kernel's link leads to ../../../devices/pci0000:10/0000:10:01.0/0000:11:00.0.
std::optional<sysfs_map::way> sysfs_map::way_to(const std::string& bus_id) const {
  std::error_code error;
  if (bus_id.empty()) return {};
  const fs::path full = fs::canonical(folder_of(bus_id), error);
  if (error) return {};
  way found;
  for (const fs::path& part : full) {
    const std::string name = part.string();
    if (name.starts_with("pci") && found.empty())
      found.push_back(name);
    else if (!found.empty())
      found.push_back(name);
  }
  if (found.size() < 2) return {};
  return found;
}

int sysfs_map::numa_node(const std::string& bus_id) const {
  return number_in(first_line(folder_of(bus_id) + "/numa_node"), 10, -1);
}

int sysfs_map::steps_from_processors(const std::string& bus_id) const {
  const std::string list = first_line(folder_of(bus_id) + "/local_cpulist");
  return list.empty() || runs_on(list) ? 0 : k_other_numa_node;
}

int sysfs_map::distance(const std::string& device, const std::string& gpu) const {
  const auto to = way_to(device);
  if (!to) return k_most_distant;
  const auto from = way_to(gpu);
  if (!from) return steps_from_processors(device);
  const std::size_t shared = shared_steps(*to, *from);
  const int steps = static_cast<int>(to->size() + from->size() - 2 * shared);
  return shared == 0 && numa_node(device) != numa_node(gpu) ? steps + k_other_numa_node : steps;
}

std::string sysfs_map::common(const std::string& a, const std::string& b) const {
  const auto one = way_to(a), other = way_to(b);
  if (!one || !other) return "";
  const std::size_t shared = shared_steps(*one, *other);
  if (shared == one->size() && shared == other->size()) return "one device";
  if (shared > 0) return shared > 1 ? "one PCIe bridge" : "one host bridge";
  return numa_node(a) >= 0 && numa_node(a) == numa_node(b) ? "one NUMA node" : "one machine";
}

// A function has one name as a network interface and one as an RDMA device.
std::vector<std::string> sysfs_map::names(const std::string& bus_id) const {
  std::vector<std::string> all;
  for (const char* kind : {"net", "infiniband", "nvme"})
    for (const fs::path& at : entries_of(folder_of(bus_id) + "/" + kind)) all.push_back(at.filename());
  std::ranges::sort(all);
  return all;
}

std::vector<placed_device> sysfs_map::devices() const {
  std::vector<placed_device> all;
  for (const fs::path& at : entries_of(folder_of(""))) {
    const std::string id = at.filename();
    pci_function f;
    // Base class, sub-class and programming interface, 8 bits each.
    f.device_class = static_cast<std::uint16_t>(number_in(first_line(folder_of(id) + "/class"), 16, 0u) >> 8);
    const device_role role = role_of(f);
    if (role == device_role::gpu || role == device_role::nic || role == device_role::drive)
      all.push_back({id, role, names(id), numa_node(id), 0});
  }
  return all;
}

}  // namespace xio::topology
