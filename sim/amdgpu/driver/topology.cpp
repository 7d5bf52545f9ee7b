// SPDX-License-Identifier: MIT
// Names and meanings of the fields: linux drivers/gpu/drm/amd/amdkfd/kfd_topology.c, include/uapi/linux/kfd_sysfs.h and
// libhsakmt src/topology.c, which reads them.
#include "amdgpu/driver/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <vector>

#include "amdgpu/isa/launch.hpp"

namespace amdgpu {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_pci_devices = "/sys/bus/pci/devices";
constexpr unsigned k_link_pcie = 2, k_link_xgmi = 11;
constexpr unsigned k_heap_system = 0, k_heap_public = 1, k_heap_private = 2;
constexpr unsigned k_shader_engines = 8;
// Kinds of caches, bits: of data, of instructions, of a processor, of a compute unit.
constexpr unsigned k_data = 1, k_instructions = 2, k_processor = 4, k_compute_unit = 8;
// No APIC has this id, so that libhsakmt takes no name of a processor out of /proc/cpuinfo.
constexpr std::uint32_t k_processor_ids = 0x7fff0000;
constexpr std::uint32_t k_simd_ids = 0x80001000u;
// Capability: bits 13:12 the doorbell's kind (2: 64 bits, counts packets), 7 watch points, 26 ECC in SRAM.
constexpr std::uint32_t k_capability = 2u << 12 | 1u << 7 | 1u << 26;
// MI250X; MI300X, whose kernel driver has no name of its own for it (kfd_device.c); and Navi 31, whose compute units
// have two SIMDs for waves of 32 lanes, and whose memory has no ECC. libdrm's families are AMDGPU_FAMILY_AI, of which
// every gfx9 is, and AMDGPU_FAMILY_GC_11_0_0 (linux include/uapi/drm/amdgpu_drm.h).
struct model {
  unsigned target_version, device_id;
  const char* name;
  unsigned lanes, simds, waves;
  std::uint32_t capability, family;
};
constexpr model model_of(target t) {
  if (t == target::gfx942) return {90402, 0x74a1, "ip discovery", 64, 4, 8, k_capability, 141};
  if (t == target::gfx1100) return {110000, 0x744c, "ip discovery", 32, 2, 16, k_capability & ~(1u << 26), 145};
  return {90010, 0x7408, "aldebaran", 64, 4, 8, k_capability, 141};
}
// Radeons have no xGMI.
bool has_xgmi(const settings& s) { return target_of(s.target) != target::gfx1100; }

void write(const fs::path& path, const std::string& text) {
  // Most files need one new folder. To ask for each folder of the path, as create_directories does, costs far more.
  std::error_code missing;
  if (fs::create_directory(path.parent_path(), missing); missing) fs::create_directories(path.parent_path());
  std::ofstream out(path);
  out << text;
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path.string());
}

void write_link(const fs::path& node, unsigned number, unsigned from, unsigned to, unsigned type) {
  write(node / "io_links" / std::to_string(number) / "properties",
        fmt::format("type {}\nversion_major 0\nversion_minor 0\nnode_from {}\nnode_to {}\nweight {}\nmin_latency 0\n"
                    "max_latency 0\nmin_bandwidth 312\nmax_bandwidth 16000\nrecommended_transfer_size 0\nflags 1\n",
                    type, from, to, type == k_link_xgmi ? 15 : 20));
}

struct cache {
  std::uint32_t unit;  // the first that has it
  unsigned level, kib, kind;
};
void write_caches(const fs::path& node, const std::vector<cache>& caches, unsigned line_bytes) {
  for (std::size_t i = 0; i < caches.size(); ++i)
    write(node / "caches" / std::to_string(i) / "properties",
          fmt::format("processor_id_low {}\nlevel {}\nsize {}\ncache_line_size {}\ncache_lines_per_tag 1\n"
                      "association 16\nlatency 0\ntype {}\nsibling_map 1\n",
                      caches[i].unit, caches[i].level, caches[i].kib, line_bytes, caches[i].kind));
}

// Where a node of processors names no caches, as linux's do not, libhsakmt reads the machine's own.
void write_host(const settings& s, const fs::path& node) {
  std::vector<cache> caches{{k_processor_ids, 3, 16384, k_data | k_instructions | k_processor}};
  for (unsigned p = k_processor_ids; p < k_processor_ids + k_host_processors; ++p)
    caches.insert(caches.end(), {{p, 1, 32, k_data | k_processor},
                                 {p, 1, 32, k_instructions | k_processor},
                                 {p, 2, 512, k_data | k_instructions | k_processor}});
  write_caches(node, caches, 64);
  write(node / "gpu_id", "0\n");
  write(node / "name", "\n");
  write(node / "properties",
        fmt::format("cpu_cores_count {}\nsimd_count 0\nmem_banks_count 1\ncaches_count {}\nio_links_count {}\n"
                    "p2p_links_count 0\ncpu_core_id_base {}\nsimd_id_base 0\nmax_waves_per_simd 0\nlds_size_in_kb 0\n"
                    "gds_size_in_kb 0\nnum_gws 0\nwave_front_size 0\narray_count 0\nsimd_arrays_per_engine 0\n"
                    "cu_per_simd_array 0\nsimd_per_cu 0\nmax_slots_scratch_cu 0\nvendor_id 0\ndevice_id 0\n"
                    "location_id 0\ndomain 0\ndrm_render_minor 0\nhive_id 0\nnum_sdma_engines 0\n"
                    "num_sdma_xgmi_engines 0\nmax_engine_clk_ccompute 2000\n",
                    k_host_processors, caches.size(), s.nodes(), k_processor_ids));
  write(node / "mem_banks/0/properties",
        fmt::format("heap_type {}\nsize_in_bytes {}\nflags 0\nwidth 64\nmem_clk_max 2400\n", k_heap_system,
                    k_host_bytes));
  for (unsigned gpu = 0; gpu < s.nodes(); ++gpu) write_link(node, gpu, 0, gpu + 1, k_link_pcie);
}

// The kernel adds the partition to the place of the function: in its lowest bits, some versions above bit 27.
std::uint32_t location_of(const settings& s, unsigned node) {
  const auto partition = static_cast<std::uint32_t>(node % s.partitions);
  const auto gpu = static_cast<std::uint32_t>(node / s.partitions);
  return (gpu + 3) << 8 | (s.partition_names == "alike" ? partition << 28 : partition);
}

void write_gpu(const settings& s, const fs::path& node, unsigned gpu) {
  const bool xgmi = s.links == "xgmi" && s.nodes() > 1 && has_xgmi(s);
  write(node / "gpu_id", fmt::format("{}\n", gpu_id_of(gpu)));
  const model m = model_of(target_of(s.target));
  write(node / "name", fmt::format("{}\n", m.name));
  write(node / "properties",
        fmt::format("cpu_cores_count 0\nsimd_count {}\nmem_banks_count 1\ncaches_count 2\nio_links_count {}\n"
                    "p2p_links_count 0\ncpu_core_id_base 0\nsimd_id_base {}\nmax_waves_per_simd {}\nlds_size_in_kb 64\n"
                    "gds_size_in_kb 0\nnum_gws 64\nwave_front_size {}\narray_count {}\nsimd_arrays_per_engine 1\n"
                    "cu_per_simd_array {}\nsimd_per_cu {}\nmax_slots_scratch_cu 32\ngfx_target_version {}\n"
                    "vendor_id 4098\ndevice_id {}\nlocation_id {}\ndomain 0\ndrm_render_minor {}\nhive_id {}\n"
                    "num_sdma_engines {}\nnum_sdma_xgmi_engines {}\nnum_sdma_queues_per_engine 8\nnum_cp_queues 24\n"
                    "max_engine_clk_fcompute 1700\nlocal_mem_size 0\nfw_version 71\ncapability {}\ndebug_prop 0\n"
                    "sdma_fw_version 8\nunique_id {}\nnum_xcc {}\nmax_engine_clk_ccompute 2000\n",
                    s.compute_units * m.simds, s.nodes(), k_simd_ids + gpu * 1024, m.waves, m.lanes, k_shader_engines,
                    s.compute_units / k_shader_engines, m.simds, m.target_version, m.device_id, location_of(s, gpu),
                    render_minor_of(gpu), xgmi ? 0x5a : 0, std::min<std::uint64_t>(s.copy_engines, 2),
                    has_xgmi(s) ? s.copy_engines - std::min<std::uint64_t>(s.copy_engines, 2) : 0, m.capability,
                    0x5a00000000000001ull + gpu / s.partitions, s.l2s()));
  write(node / "mem_banks/0/properties",
        fmt::format("heap_type {}\nsize_in_bytes {}\nflags 0\nwidth 4096\nmem_clk_max 1600\n",
                    s.large_bar != 0 ? k_heap_public : k_heap_private, s.memory_mib << 20));
  write_caches(node,
               {{k_simd_ids + gpu * 1024, 1, 16, k_data | k_compute_unit},
                {k_simd_ids + gpu * 1024, 2, 8192, k_data | k_compute_unit}},
               128);
  write_link(node, 0, gpu + 1, 0, k_link_pcie);
  unsigned number = 1;
  for (unsigned other = 0; other < s.nodes(); ++other)
    if (other != gpu) write_link(node, number++, gpu + 1, other + 1, xgmi ? k_link_xgmi : k_link_pcie);
}

void write_pci(const settings& s, const fs::path& function, unsigned gpu) {
  write(function / "vendor", "0x1002\n");
  write(function / "device", fmt::format("{:#06x}\n", model_of(target_of(s.target)).device_id));
  write(function / "class", "0x038000\n");
  write(function / "numa_node", "-1\n");
  write(function / "current_link_speed", "16.0 GT/s PCIe\n");
  write(function / "current_link_width", "16\n");
  write(function / "drm" / fmt::format("renderD{}", render_minor_of(gpu)) / "dev", "");
}

// The folder lists the machine's own functions, too, for programs that read all; their files are read where they are.
void list_own_functions(const fs::path& folder) {
  std::error_code none;
  for (const auto& function : fs::directory_iterator(k_pci_devices, none)) {
    const fs::path link = folder / function.path().filename();
    if (!fs::exists(fs::symlink_status(link))) fs::create_directory_symlink(function.path(), link, none);
  }
}

}  // namespace

int gpu_of_id(const settings& s, std::uint32_t gpu_id) {
  const std::uint32_t gpu = gpu_id - gpu_id_of(0);
  return gpu < s.nodes() ? static_cast<int>(gpu) : -1;
}

std::uint32_t family_of(const settings& s) { return model_of(target_of(s.target)).family; }

std::string bus_id_of(unsigned function) { return fmt::format("0000:{:02x}:00.0", function + 3); }

void write_topology(const settings& s, const std::string& folder) {
  const fs::path top = fs::path(folder) / "kfd" / "kfd" / "topology";
  write(top / "generation_id", "1\n");
  write(top / "system_properties", "platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
  write_host(s, top / "nodes" / "0");
  for (unsigned gpu = 0; gpu < s.nodes(); ++gpu) {
    write_gpu(s, top / "nodes" / std::to_string(gpu + 1), gpu);
    if (gpu % s.partitions == 0)
      write_pci(s, fs::path(folder) / "pci" / bus_id_of(static_cast<unsigned>(gpu / s.partitions)), gpu);
  }
  list_own_functions(fs::path(folder) / "pci");
  // rocminfo asks lsmod.
  write(fs::path(folder) / "modules", "amdgpu 16384 0 - Live 0x0000000000000000\n");
  const fs::path module = fs::path(folder) / "module";
  write(module / "initstate", "live\n");
  write(module / "refcnt", "0\n");
  write(module / "coresize", "16384\n");
  fs::create_directories(module / "holders");
}

std::string redirected(const char* session, const char* path) {
  if (session == nullptr || path == nullptr || *path != '/') return {};
  const struct {
    const char* from;
    const char* to;
  } k_moved[] = {{"/sys/devices/virtual/kfd", "/kfd"},
                 {"/sys/class/kfd", "/kfd"},
                 {"/sys/module/amdgpu", "/module"},
                 {"/proc/modules", "/modules"},
                 // Not there: counters of the machine's IOMMU.
                 {"/sys/bus/event_source/devices/amd_iommu", "/iommu"},
                 {"/sys/bus/event_source/devices/amd_iommu_0", "/iommu"}};
  for (const auto& m : k_moved) {
    const std::size_t length = std::strlen(m.from);
    if (std::strncmp(path, m.from, length) == 0 && (path[length] == 0 || path[length] == '/'))
      return std::string(session) + m.to + (path + length);
  }
  const std::size_t length = std::strlen(k_pci_devices);
  if (std::strncmp(path, k_pci_devices, length) != 0) return {};
  if (path[length] == 0 || std::strcmp(path + length, "/") == 0) return std::string(session) + "/pci";
  if (path[length] != '/') return {};
  const char* function = path + length + 1;
  for (unsigned gpu = 0; gpu < 8; ++gpu)
    if (std::strncmp(function, bus_id_of(gpu).c_str(), 12) == 0) {
      const std::string there = std::string(session) + "/pci/" + function;
      if (fs::exists(std::string(session) + "/pci/" + bus_id_of(gpu))) return there;
    }
  return {};
}

}  // namespace amdgpu
