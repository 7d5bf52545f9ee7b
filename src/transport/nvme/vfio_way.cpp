// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_way.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>

#include "transport/nvme/vfio_iommufd.hpp"
#include "transport/nvme/vfio_type1.hpp"

namespace xio::nvme {
namespace {

// Why this process cannot open a file, or "".
std::string closed(const std::string& root, const std::string& path) {
  if (faccessat(AT_FDCWD, (root + path).c_str(), R_OK | W_OK, AT_EACCESS) == 0) return "";
  return errno == ENOENT ? "there is no " + path : "this process may not open " + path;
}

std::string not_by_iommufd(const std::string& root, const vfio_place& place) {
  if (std::string why = closed(root, "/dev/iommu"); !why.empty()) return why;
  if (place.cdev.empty()) return fmt::format("{} has no file in /dev/vfio/devices", place.bdf);
  return closed(root, place.cdev);
}

}  // namespace

vfio_choice choose_vfio_way(const nvme_options& o, const std::string& root, const vfio_place& place) {
  if (o.vfio_iommu == option::vfio_iommu::type1) return {vfio_way::type1, "", true};
  if (o.vfio_iommu == option::vfio_iommu::iommufd) return {vfio_way::iommufd, "", true};
  // iommufd pins ordinary memory only.
  if (!o.nvme_queue_bar.empty()) return {vfio_way::type1, "XIO_NVME_QUEUE_BAR is memory of a device"};
  std::string why = not_by_iommufd(root, place);
  if (why.empty()) return {vfio_way::iommufd, ""};
  // A kernel without groups leaves one way, whose refusal is then the one to hear.
  const std::string group = fmt::format("{}/dev/vfio/{}", root, place.group);
  if (!place.cdev.empty() && access(group.c_str(), F_OK) != 0) return {vfio_way::iommufd, ""};
  return {vfio_way::type1, std::move(why)};
}

std::unique_ptr<vfio_iommu> make_iommu(vfio_way way, vfio_calls& calls, const std::string& name) {
  if (way == vfio_way::iommufd) return std::make_unique<vfio_iommufd>(calls, name);
  return std::make_unique<vfio_type1>(calls, name);
}

}  // namespace xio::nvme
