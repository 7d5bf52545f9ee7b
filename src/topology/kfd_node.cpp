// SPDX-License-Identifier: MIT
#include "topology/kfd_node.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <map>

#include "base/error.hpp"
#include "base/first_line.hpp"

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

std::string node_folder(const std::string& root, std::uint64_t n) {
  return root + k_kfd_topology + "/nodes/" + std::to_string(n);
}

std::string link_file(const std::string& root, std::uint64_t n, std::uint64_t link) {
  return node_folder(root, n) + "/io_links/" + std::to_string(link) + "/properties";
}

struct place {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
};

std::optional<place> parse_place(const std::string& name) {
  place p;
  if (std::sscanf(name.c_str(), "%x:%x:%x.%x", &p.domain, &p.bus, &p.device, &p.function) != 4) return {};
  return p;
}

std::string text_of(const place& p, unsigned function) {
  char text[32];
  std::snprintf(text, sizeof text, "%04x:%02x:%02x.%x", p.domain, p.bus, p.device, function);
  return text;
}

// Bits 15:8 of location_id are the bus, 7:3 the device, 2:0 the function (kfd_topology.c, pci_dev_id).
place place_of(const properties& p) {
  const std::uint64_t at = get(p, "location_id");
  return {static_cast<unsigned>(get(p, "domain")), static_cast<unsigned>(at >> 8 & 0xff),
          static_cast<unsigned>(at >> 3 & 0x1f), static_cast<unsigned>(at & 7)};
}

std::string existing_function(const std::string& root, const place& p) {
  std::error_code error;
  const auto exists = [&](unsigned function) {
    return std::filesystem::is_directory(root + "/sys/bus/pci/devices/" + text_of(p, function), error);
  };
  return text_of(p, p.function != 0 && !exists(p.function) && exists(0) ? 0 : p.function);
}

struct found_node {
  std::uint64_t number;
  properties is;
  std::string bus_id;
};

// Nodes that have compute units. One whose files cannot be read (a device cgroup) is left out.
std::vector<found_node> gpu_nodes(const std::string& root) {
  std::vector<found_node> all;
  for (std::uint64_t n = 0; n < k_nodes_max; ++n) {
    std::error_code error;
    if (!std::filesystem::is_directory(node_folder(root, n), error)) break;
    properties p = read_properties(node_folder(root, n) + "/properties");
    if (get(p, "simd_count") == 0) continue;
    std::string bus_id = existing_function(root, place_of(p));
    all.push_back({n, std::move(p), std::move(bus_id)});
  }
  return all;
}

bool is_cpu(const std::string& root, std::uint64_t n) {
  const properties p = read_properties(node_folder(root, n) + "/properties");
  return get(p, "cpu_cores_count") != 0 && get(p, "simd_count") == 0;
}

bool links_to_cpu_by_xgmi(const std::string& root, std::uint64_t n) {
  for (std::uint64_t link = 0; link < k_nodes_max; ++link) {
    const properties p = read_properties(link_file(root, n, link));
    if (p.empty()) return false;
    if (get(p, "type") == k_link_xgmi && is_cpu(root, get(p, "node_to"))) return true;
  }
  return false;
}

kfd_node described(const std::string& root, const found_node& n, const std::vector<found_node>& all) {
  const auto parts = std::ranges::count_if(all, [&](const found_node& other) { return other.bus_id == n.bus_id; });
  kfd_node out;
  out.number = static_cast<std::uint32_t>(n.number);
  out.bus_id = n.bus_id;
  out.identity = parts > 1 ? n.bus_id + "#" + std::to_string(n.number) : n.bus_id;
  out.hive = get(n.is, "hive_id");
  out.has_cpu = get(n.is, "cpu_cores_count") != 0;
  out.cpu_by_xgmi = links_to_cpu_by_xgmi(root, n.number);
  return out;
}

bool opens(const std::string& file, int flags) {
  const int fd = open(file.c_str(), flags | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

std::string render_file(const properties& p) { return "/dev/dri/renderD" + std::to_string(get(p, "drm_render_minor")); }

// May this process open the node's device? libhsakmt asks by opening it, for a device cgroup refuses nothing else.
bool may_use(const std::string& root, std::uint64_t n, const properties& p) {
  std::uint64_t gpu_id = 0;
  if (!(std::ifstream(node_folder(root, n) + "/gpu_id") >> gpu_id)) return false;
  return gpu_id == 0 || get(p, "drm_render_minor") == 0 || opens(root + render_file(p), O_RDWR);
}

// Whether sysfs describes a cache of a processor of node n. A kernel without NUMA has no nodes there.
bool shows_caches(const std::string& root, std::uint64_t n) {
  namespace fs = std::filesystem;
  const std::string node = root + "/sys/devices/system/node/node" + std::to_string(n);
  std::error_code none;
  return std::ranges::any_of(entries_of(fs::exists(node, none) ? node : root + "/sys/devices/system/cpu"),
                             [&](const fs::path& at) { return fs::exists(at / "cache" / "index0", none); });
}

std::optional<std::uint64_t> kernel_number(const std::string& root, std::uint32_t number) {
  std::uint32_t usable = 0;
  for (std::uint64_t n = 0; n < k_nodes_max; ++n) {
    std::error_code error;
    if (!std::filesystem::is_directory(node_folder(root, n), error)) return {};
    if (!may_use(root, n, read_properties(node_folder(root, n) + "/properties"))) continue;
    if (usable++ == number) return n;
  }
  return {};
}

}  // namespace

std::optional<std::string> missing_for_runtime(const std::string& root) {
  std::string unopened;
  const auto refused = [&](const std::string& file, int flags) {
    if (opens(root + file, flags)) return false;
    unopened = fmt::format("{} cannot be opened ({})", file, errno_text(errno));
    return true;
  };
  const std::string topology = k_kfd_topology;
  if (refused("/dev/kfd", O_RDWR) || refused(topology + "/system_properties", O_RDONLY)) return unopened;
  const auto gpus = gpu_nodes(root);
  if (gpus.empty()) {
    std::error_code error;
    for (std::uint64_t n = 0; n < k_nodes_max && std::filesystem::is_directory(node_folder(root, n), error); ++n)
      if (refused(topology + "/nodes/" + std::to_string(n) + "/properties", O_RDONLY))
        return unopened + ", as where a device cgroup keeps a GPU from a container: give it /dev/dri/renderD*";
    return "there is no GPU in " + topology + "/nodes; dmesg says why the driver took none";
  }
  // One that may be opened is enough.
  if (std::ranges::all_of(gpus, [&](const found_node& n) {
        return get(n.is, "drm_render_minor") != 0 && refused(render_file(n.is), O_RDWR);
      }))
    return unopened;
  for (std::uint64_t n = 0; is_cpu(root, n); ++n)
    if (get(read_properties(node_folder(root, n) + "/properties"), "caches_count") == 0 && !shows_caches(root, n))
      return fmt::format(
          "there is no /sys/devices/system/node/node{}/cpu*/cache/index0, as in some virtual machines, and libhsakmt "
          "5.2 finds no GPU without the processors' caches (6.2 does)",
          n);
  return {};
}

std::string pci_function_of(const std::string& root, const std::string& name) {
  const auto p = parse_place(name);
  return p ? existing_function(root, *p) : name;
}

std::vector<kfd_gpu_node> kfd_gpu_nodes(const std::string& root) {
  std::vector<kfd_gpu_node> out;
  const auto all = gpu_nodes(root);
  for (const found_node& n : all) {
    if (!may_use(root, n.number, n.is)) continue;
    kfd_gpu_node gpu;
    gpu.number = static_cast<std::uint32_t>(n.number);
    gpu.identity = described(root, n, all).identity;
    std::ifstream(node_folder(root, n.number) + "/gpu_id") >> gpu.gpu_id;
    gpu.engines = static_cast<std::uint32_t>(get(n.is, "num_sdma_engines"));
    gpu.xgmi_engines = static_cast<std::uint32_t>(get(n.is, "num_sdma_xgmi_engines"));
    gpu.queues_per_engine = static_cast<std::uint32_t>(get(n.is, "num_sdma_queues_per_engine"));
    for (std::uint64_t link = 0; link < k_nodes_max; ++link) {
      const properties p = read_properties(link_file(root, n.number, link));
      if (p.empty()) break;
      gpu.links.push_back({static_cast<std::uint32_t>(get(p, "node_to")), get(p, "type") == k_link_xgmi,
                           get(p, "recommended_sdma_engine_id_mask")});
    }
    out.push_back(std::move(gpu));
  }
  return out;
}

std::uint64_t recommended_engines(const std::string& root, std::uint32_t node, std::uint32_t link) {
  const auto n = kernel_number(root, node);
  if (!n) return 0;
  return get(read_properties(link_file(root, *n, link)), "recommended_sdma_engine_id_mask");
}

std::optional<kfd_node> find_kfd_node(const std::string& root, const std::string& identity) {
  const auto mark = identity.find('#');
  const auto all = gpu_nodes(root);
  for (const found_node& n : all)
    if (mark == std::string::npos ? n.bus_id == identity : identity == n.bus_id + "#" + std::to_string(n.number))
      return described(root, n, all);
  return {};
}

std::optional<kfd_node> find_named_kfd_node(const std::string& root, const std::string& name) {
  const auto p = parse_place(name);
  if (!p) return {};
  const auto all = gpu_nodes(root);
  const std::string bus_id = existing_function(root, *p);
  const found_node *of_gpu = nullptr, *of_name = nullptr;
  int n_of_gpu = 0, n_of_name = 0;
  for (const found_node& n : all) {
    if (n.bus_id != bus_id) continue;
    of_gpu = &n;
    ++n_of_gpu;
    if (place_of(n.is).function != p->function) continue;
    of_name = &n;
    ++n_of_name;
  }
  if (n_of_gpu == 1) return described(root, *of_gpu, all);
  // A function 0 may mean that this HIP shows none.
  if (p->function != 0 && n_of_name == 1) return described(root, *of_name, all);
  return {};
}

std::optional<kfd_node> find_runtime_kfd_node(const std::string& root, std::uint32_t number) {
  const auto kernel = kernel_number(root, number);
  const auto all = gpu_nodes(root);
  for (const found_node& n : all)
    if (kernel && n.number == *kernel) return described(root, n, all);
  return {};
}

}  // namespace xio::topology
