// SPDX-License-Identifier: MIT
// A PCI function by its address, as sysfs tells of it: whether it is an NVMe controller that vfio may take.
#pragma once
#include <cstdint>
#include <string>

namespace xio::nvme {

// "nvme:[DOMAIN:]BUS:DEVICE.FUNCTION[/NSID]", taken apart.
struct vfio_name {
  std::string bdf;              // "0000:3b:00.0"
  std::uint32_t nsid = 1;       // 1 .. 0xfffffffe
  std::uint32_t bus_devfn = 0;  // BUS << 8 | DEVICE << 3 | FUNCTION
};
vfio_name parse_vfio_name(const std::string& name);  // throws XIO_ERR_ARG
// The same behind another scheme's colon: "kmod:BDF[/NSID]".
vfio_name parse_function_name(const std::string& name, const std::string& scheme);

// Of the function at bdf: the driver's name, or "". Throws where it is no NVMe controller.
std::string driver_of_controller(const std::string& root, const std::string& bdf, const std::string& name);

// The names under which vfio knows a function.
struct vfio_place {
  std::string name;  // of the storage, for sentences
  std::string bdf;
  std::uint32_t group = 0;  // of its IOMMU
  std::string cdev;         // "/dev/vfio/devices/vfio0"; "" where the kernel has no such files
};

// The IOMMU group of a controller that is ready to be opened by vfio; throws the reason and the cure where it is not.
// name: for sentences. root: "" or a folder that stands for it.
std::uint32_t find_vfio_group(const std::string& root, const std::string& bdf, const std::string& name);

// The file that iommufd's way opens for a function that vfio-pci has, or "".
std::string find_vfio_cdev(const std::string& root, const std::string& bdf);

// "0000:03:00.1 (e1000e)" for each function of the group that another driver has; "" if there is none.
std::string others_in_group(const std::string& root, std::uint32_t group);

}  // namespace xio::nvme
