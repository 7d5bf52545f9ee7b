// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_function.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>

#include "base/error.hpp"
#include "base/first_line.hpp"
#include "base/text_form.hpp"
#include "transport/nvme/holders.hpp"

namespace xio::nvme {

namespace fs = std::filesystem;

namespace {

// PCI Code and ID Assignment 1.11: mass storage, non-volatile memory, NVM Express I/O controller.
constexpr std::uint32_t k_nvme_class = 0x010802;
constexpr std::uint32_t k_no_group = ~0u;

std::uint32_t number_in(const std::string& text, int base, std::uint32_t otherwise) {
  std::uint32_t value = 0;
  const auto [end, ec] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return ec == std::errc{} && end == text.data() + text.size() ? value : otherwise;
}

std::uint32_t class_of(const fs::path& function) {
  const std::string text = first_word(function / "class");
  return text.starts_with("0x") ? number_in(text.substr(2), 16, 0) : 0;
}

std::string how_to_bind(const std::string& bdf) {
  return fmt::format(
      "modprobe vfio-pci; driverctl set-override {0} vfio-pci (or: echo vfio-pci > "
      "/sys/bus/pci/devices/{0}/driver_override; echo {0} > /sys/bus/pci/devices/{0}/driver/unbind; echo {0} > "
      "/sys/bus/pci/drivers_probe)",
      bdf);
}

[[noreturn]] void no_iommu(const std::string& name, const std::string& bdf) {
  fail(XIO_ERR_UNSUPPORTED,
       "cannot open {}: {} is behind no IOMMU, and would reach all memory; switch it on in the firmware (VT-d, AMD-Vi) "
       "and boot Linux with intel_iommu=on or amd_iommu=on",
       name, bdf);
}

}  // namespace

vfio_name parse_vfio_name(const std::string& name) { return parse_function_name(name, "nvme"); }

vfio_name parse_function_name(const std::string& name, const std::string& scheme) {
  static const text_form drive("([a-z]+):(([0-9a-fA-F]{4}):)?([0-9a-fA-F]{2}:[01][0-9a-fA-F]\\.[0-7])(/([0-9]+))?");
  const auto part = drive.parts_of(name);
  if (part.empty() || part[1] != scheme)
    fail(XIO_ERR_ARG, "cannot open storage \"{}\": write it as {}:BDF/NSID, as in {}:0000:3b:00.0/1", name, scheme,
         scheme);
  vfio_name out;
  out.bdf = (part[3].empty() ? "0000" : part[3]) + ":" + part[4];
  std::ranges::transform(out.bdf, out.bdf.begin(),
                         [](char c) { return c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c; });
  out.bus_devfn = number_in(out.bdf.substr(5, 2), 16, 0) << 8 | number_in(out.bdf.substr(8, 2), 16, 0) << 3 |
                  number_in(out.bdf.substr(11, 1), 16, 0);
  if (!part[6].empty()) out.nsid = number_in(part[6], 10, 0);
  // NVMe base 2.0, 3.2.1.2: 0 names none and ffffffffh all.
  if (out.nsid == 0 || out.nsid == ~0u)
    fail(XIO_ERR_ARG, "cannot open storage \"{}\": a namespace has a number from 1 to 4294967294", name);
  return out;
}

std::string driver_of_controller(const std::string& root, const std::string& bdf, const std::string& name) {
  const fs::path function = fs::path(root + "/sys/bus/pci/devices") / bdf;
  std::error_code ec;
  if (!fs::exists(function, ec))
    fail(XIO_ERR_ARG, "cannot open {}: there is no PCI function {}; lspci -D -d ::0108 lists the NVMe controllers",
         name, bdf);
  if (const std::uint32_t code = class_of(function); code != k_nvme_class)
    fail(XIO_ERR_ARG,
         "cannot open {}: {} is no NVMe controller (PCI class {:06x}); lspci -D -d ::0108 lists those there are", name,
         bdf, code);
  return target_of(function / "driver");
}

std::uint32_t find_vfio_group(const std::string& root, const std::string& bdf, const std::string& name) {
  const fs::path function = fs::path(root + "/sys/bus/pci/devices") / bdf;
  std::error_code ec;
  const std::string driver = driver_of_controller(root, bdf, name);
  if (driver != "vfio-pci") {
    if (const std::string who = holder_of_disks(root, disks_of(root, bdf)); !who.empty())
      fail(XIO_ERR_STATE, "cannot open {}: {}; free it first, or use another drive", name, who);
    // vfio-pci would not take it.
    if (!fs::exists(fs::symlink_status(function / "iommu_group", ec))) no_iommu(name, bdf);
    fail(XIO_ERR_STATE, "cannot open {}: {} is bound to {} and not to vfio-pci, so bind it: {}", name, bdf,
         driver.empty() ? "no driver" : "the driver " + driver, how_to_bind(bdf));
  }
  const std::uint32_t group = number_in(target_of(function / "iommu_group"), 10, k_no_group);
  // vfio's mode without an IOMMU makes up a group of this name (Linux, drivers/vfio/group.c).
  const fs::path group_name = root + fmt::format("/sys/kernel/iommu_groups/{}/name", group);
  if (group == k_no_group || first_word(group_name) == "vfio-noiommu") no_iommu(name, bdf);
  return group;
}

// Linux, drivers/vfio/vfio_main.c: a device of the class vfio-dev, named by its index, is the function's child.
std::string find_vfio_cdev(const std::string& root, const std::string& bdf) {
  std::error_code ec;
  for (const fs::path& at : entries_of(root + "/sys/bus/pci/devices/" + bdf + "/vfio-dev")) {
    const std::string child = at.filename();
    // Without CONFIG_VFIO_DEVICE_CDEV the child has no number of a device file.
    if (child.starts_with("vfio") && number_in(child.substr(4), 10, k_no_group) != k_no_group &&
        fs::exists(at / "dev", ec))
      return "/dev/vfio/devices/" + child;
  }
  return "";
}

std::string others_in_group(const std::string& root, std::uint32_t group) {
  std::vector<std::string> found;
  for (const fs::path& at : entries_of(root + fmt::format("/sys/kernel/iommu_groups/{}/devices", group))) {
    const std::string driver = target_of(at / "driver");
    // A group is viable while no driver but vfio's own, the stub's and that of bridges works in it.
    if (!driver.empty() && driver != "vfio-pci" && driver != "pci-stub" && driver != "pcieport")
      found.push_back(fmt::format("{} ({})", at.filename().string(), driver));
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

}  // namespace xio::nvme
