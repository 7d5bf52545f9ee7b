// SPDX-License-Identifier: MIT
// The stage that says what this machine is: kernel, CPU, board, GPUs with their firmware, drivers, ROCm, NICs, drives.
// Of files alone, so that it works where no GPU does; serial numbers and addresses are not read at all.
#include <sys/utsname.h>

#include <cstdlib>

#include "base/error.hpp"
#include "base/first_line.hpp"
#include "tools/words.hpp"
#include "tools/xio-verify/versions.hpp"
#include "tools/xio-verify/worker.hpp"

namespace xio::verify {
namespace {

namespace fs = std::filesystem;

std::string first_line(const fs::path& file) {
  std::string line = xio::first_line(file);
  line.erase(line.find_last_not_of(" \t\r") + 1);
  return line.substr(0, 256);
}

std::string value_after(const fs::path& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(key)) {
      const std::size_t at = line.find_first_not_of(" \t:=\"", key.size());
      if (at == std::string::npos) return "";
      line = line.substr(at);
      line.erase(line.find_last_not_of(" \t\"") + 1);
      return line.substr(0, 256);
    }
  return "";
}

void set(json& row, const char* name, const std::string& value) {
  if (!value.empty()) row[name] = value;
}

void add_system(row_writer& rows, const std::string& root) {
  json row{{"part", "system"}};
  utsname u{};
  if (root.empty() && uname(&u) == 0) {
    row["kernel"] = u.release;
    row["processor"] = u.machine;
  } else {
    set(row, "kernel", first_line(root + "/proc/sys/kernel/osrelease"));
  }
  set(row, "distribution", value_after(root + "/etc/os-release", "PRETTY_NAME"));
  set(row, "cpu", value_after(root + "/proc/cpuinfo", "model name"));
  const std::string dmi = root + "/sys/class/dmi/id/";
  for (const char* name : {"sys_vendor", "product_name", "board_name", "bios_version", "bios_date"})
    set(row, name, first_line(dmi + name));
  row["iommu"] = !entries_of(root + "/sys/class/iommu").empty();
  set(row, "mem_total", value_after(root + "/proc/meminfo", "MemTotal"));
  rows.add(row);
}

void add_drivers(row_writer& rows, const std::string& root) {
  for (const char* name : {"amdgpu", "amdkfd", "nvidia", "nvidia_peermem", "amdp2p", "ib_core", "mlx5_core", "bnxt_re",
                           "ionic", "ionic_rdma", "vfio_pci", "iommufd", "nvme"}) {
    const fs::path module = root + "/sys/module/" + name;
    std::error_code error;
    if (!fs::is_directory(module, error)) continue;
    json row{{"part", "driver"}, {"name", name}};
    set(row, "version", first_line(module / "version"));
    set(row, "srcversion", first_line(module / "srcversion"));
    rows.add(row);
  }
  if (const std::string line = first_line(root + "/proc/driver/nvidia/version"); !line.empty())
    rows.add({{"part", "driver"}, {"name", "nvidia"}, {"version", line}});
}

void add_runtimes(row_writer& rows, const std::string& root) {
  json row{{"part", "runtime"}};
  for (const auto& [name, version] : runtime_versions()) set(row, name, version);
  for (const fs::path& folder : entries_of(root + "/opt"))
    if (folder.filename().string().starts_with("rocm"))
      set(row, folder.filename().c_str(), first_line(folder / ".info/version"));
  rows.add(row);
}

// The properties that the compute driver publishes, without unique_id.
void add_kfd_node(row_writer& rows, const fs::path& node) {
  static const auto wanted = tools::split(
      "simd_count,simd_per_cu,array_count,vendor_id,device_id,gfx_target_version,fw_version,sdma_fw_version,"
      "num_sdma_engines,num_sdma_xgmi_engines,num_sdma_queues_per_engine,num_cp_queues,num_xcc,"
      "max_waves_per_simd,lds_size_in_kb,wave_front_size,max_engine_clk_fcompute,local_mem_size,capability,"
      "hive_id_set");
  json row{{"part", "gpu of the compute driver"}, {"node", node.filename().string()}};
  std::ifstream in(node / "properties");
  bool is_gpu = false;
  std::string name;
  for (unsigned long long value = 0; in >> name >> value;) {
    if (std::ranges::find(wanted, name) != wanted.end()) row[name] = value;
    if (name == "hive_id") row["hive_id_set"] = value != 0;
    is_gpu = is_gpu || (name == "simd_count" && value != 0);
  }
  if (!is_gpu) return;
  json links = json::array();
  for (const fs::path& link : entries_of(node / "io_links"))
    links.push_back("to node " + value_after(link / "properties", "node_to") + " of type " +
                    value_after(link / "properties", "type"));
  row["links"] = links;
  rows.add(row);
}

void add_gpus(row_writer& rows, const std::string& root) {
  for (const fs::path& node : entries_of(root + "/sys/class/kfd/kfd/topology/nodes")) add_kfd_node(rows, node);
  for (const fs::path& node : entries_of(root + "/sys/class/drm")) {
    const std::string name = node.filename();
    if (!name.starts_with("renderD")) continue;
    json row{{"part", "gpu"}, {"node", name}};
    set(row, "vendor", first_line(node / "device/vendor"));
    set(row, "device", first_line(node / "device/device"));
    set(row, "revision", first_line(node / "device/revision"));
    set(row, "vbios", first_line(node / "device/vbios_version"));
    set(row, "memory_partition", first_line(node / "device/current_memory_partition"));
    set(row, "compute_partition", first_line(node / "device/current_compute_partition"));
    set(row, "link_speed", first_line(node / "device/current_link_speed"));
    set(row, "link_width", first_line(node / "device/current_link_width"));
    for (const fs::path& firmware : entries_of(node / "device/fw_version"))
      set(row, firmware.filename().c_str(), first_line(firmware));
    rows.add(row);
  }
}

void add_nics(row_writer& rows, const std::string& root) {
  for (const fs::path& device : entries_of(root + "/sys/class/infiniband")) {
    json row{{"part", "nic"}, {"name", device.filename().string()}};
    for (const char* name : {"fw_ver", "hca_type", "board_id", "hw_rev"}) set(row, name, first_line(device / name));
    set(row, "vendor", first_line(device / "device/vendor"));
    set(row, "device", first_line(device / "device/device"));
    rows.add(row);
  }
}

void add_drives(row_writer& rows, const std::string& root) {
  for (const fs::path& device : entries_of(root + "/sys/class/nvme")) {
    json row{{"part", "drive"}, {"name", device.filename().string()}};
    for (const char* name : {"model", "firmware_rev", "transport"}) set(row, name, first_line(device / name));
    rows.add(row);
  }
}

// The variables that the user has set, but for keys. Paths say where things are; the report only has that they are set.
void add_environment(row_writer& rows) {
  json row{{"part", "environment"}};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string text = *entry, name = text.substr(0, text.find('='));
    bool wanted = false;
    for (const char* prefix : {"XIO_", "HSA_", "HIP_", "ROCR_", "CUDA_VISIBLE", "GPU_MAX", "AMD_"})
      wanted = wanted || name.starts_with(prefix);
    if (!wanted || name.starts_with("XIO_TCP_KEY") || name.find("SESSION") != std::string::npos) continue;
    const std::string value = text.substr(std::min(text.size(), name.size() + 1));
    row[name] = value.find('/') != std::string::npos ? "set" : value.substr(0, 64);
  }
  const char* session = std::getenv("XIO_AMDGPU_SESSION");
  row["simulated"] = session != nullptr && *session != '\0';
  rows.add(row);
}

}  // namespace

bool find_machine(row_writer& rows, const std::string& root) {
  add_system(rows, root);
  add_drivers(rows, root);
  add_runtimes(rows, root);
  add_gpus(rows, root);
  add_nics(rows, root);
  add_drives(rows, root);
  add_environment(rows);
  return true;
}

}  // namespace xio::verify
