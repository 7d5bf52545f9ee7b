// SPDX-License-Identifier: MIT
// NVMe controllers, and who has them.
#include "base/first_line.hpp"
#include "gpu/gpu.hpp"
#include "tools/xio-info/section.hpp"
#include "transport/nvme/holders.hpp"
#include "transport/nvme/vfio_way.hpp"
#include "transport/software.hpp"

namespace xio::info {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_devices = "/sys/bus/pci/devices";

// Class 010802: PCI Code and ID Assignment Specification 1.11, section 1.2.
std::vector<std::string> controllers(const std::string& root) {
  std::vector<std::string> all;
  for (const fs::path& at : entries_of(root + k_devices))
    if (first_line(at / "class") == "0x010802") all.push_back(at.filename().string());
  return all;
}

std::string model_of(const fs::path& device) {
  const auto controllers = entries_of(device / "nvme");
  const std::string model = controllers.empty() ? "" : first_line(controllers.front() / "model");
  return model.substr(0, model.find_last_not_of(' ') + 1);
}

// Says what a drive of vfio-pci can be used for, how it gets addresses, and why not in the better way.
std::string use_by_vfio(const nvme_options& o, const std::string& root, const std::string& bus_id,
                        std::vector<row>* rows) {
  try {
    const nvme::vfio_place place{"", bus_id, nvme::find_vfio_group(root, bus_id, bus_id),
                                 nvme::find_vfio_cdev(root, bus_id)};
    const nvme::vfio_choice by = nvme::choose_vfio_way(o, root, place);
    rows->push_back({"addresses", std::string("by ") + name_of(by.way), by.forced ? "XIO_VFIO_IOMMU" : by.why});
    return "xio_storage_open \"nvme:" + bus_id + "/1\"";
  } catch (const error& e) {
    rows->push_back({"addresses", std::string("none"), e.what()});
    return "none";
  }
}

section section_of(const nvme_options& o, const std::string& root, const std::string& bus_id) {
  const fs::path device = fs::path(root + k_devices) / bus_id;
  section s{"nvme_" + bus_id, "NVMe controller " + bus_id, {}};
  const std::string bound = target_of(device / "driver"), driver = bound.empty() ? "none" : bound;
  const auto disks = nvme::disks_of(root, bus_id);
  const std::string holder = nvme::holder_of_disks(root, disks);
  if (const std::string model = model_of(device); !model.empty()) s.rows.push_back({"model", model, ""});
  s.rows.push_back({"driver", driver, ""});
  for (const std::string& d : disks)
    s.rows.push_back({d, first_line(fs::path(root + "/sys/block") / d / "size"), "512-byte sectors"});
  s.rows.push_back({"held", !holder.empty(), holder});
  std::string use = "bind it to vfio-pci: xio-info --bind " + bus_id;
  if (driver == "xio") use = "xio_storage_open \"kmod:" + bus_id + "/1\"";
  if (driver == "vfio-pci") use = use_by_vfio(o, root, bus_id, &s.rows);
  if (!holder.empty()) use = "none while it is held";
  s.rows.push_back({"use", use, ""});
  return s;
}

}  // namespace

std::vector<section> drive_sections(const nvme_options& o, const std::string& root) {
  std::vector<section> all;
  for (const std::string& bus_id : controllers(root)) all.push_back(section_of(o, root, bus_id));
  section first{"nvme", "NVMe controllers", {}};
  first.rows.push_back(
      {"controllers", std::uint64_t{all.size()}, all.empty() ? "the software controller takes files: file:PATH" : ""});
  if (const auto* devices = software::built_in(); devices != nullptr && root.empty())
    first.rows.push_back(
        {"files_by", devices->describe_file_library(o.storage_files_by, o.storage_files_library, gpu::payload()), ""});
  all.insert(all.begin(), std::move(first));
  return all;
}

}  // namespace xio::info
