// SPDX-License-Identifier: MIT
// One address space of devices, as the kernel keeps it: devices are admitted, memory is mapped and unmapped. There are
// two ways to have one: containers and groups (type 1, vfio_type1.hpp) and iommufd (vfio_iommufd.hpp).
#pragma once
#include "base/unique_fd.hpp"
#include "transport/nvme/iova.hpp"
#include "transport/nvme/vfio_calls.hpp"
#include "transport/nvme/vfio_function.hpp"

namespace xio::nvme {

enum class vfio_way { type1, iommufd };
inline const char* name_of(vfio_way w) { return w == vfio_way::type1 ? "type 1" : "iommufd"; }

// The files that hold a device open. The device is closed before its group.
struct vfio_handles {
  unique_fd group;  // of type 1
  unique_fd device;
};

class vfio_iommu {
 public:
  virtual ~vfio_iommu() = default;
  virtual vfio_way way() const = 0;
  // Opens a device, which reaches what is mapped from then on, until it is closed. Throws the reason and the cure.
  virtual vfio_handles admit(const vfio_place& place) = 0;
  // The addresses that the devices so far can use; at least one device has been admitted.
  virtual std::vector<iova_ranges::range> ranges(const vfio_place& place) = 0;
  // Whole pages, to be read and written by every device. Throws.
  virtual void map(std::uint64_t first, std::uint64_t bytes, std::uint64_t iova) = 0;
  // Of one map(); 0 or an errno.
  virtual int unmap(std::uint64_t iova, std::uint64_t bytes) = 0;
};

// Opens a file that stands for a device, or throws; absent: what to do where there is none.
int open_device_file(vfio_calls& calls, const std::string& name, const std::string& path, const char* absent);

// Throws the error for a group whose other functions have drivers; others: the result of others_in_group.
[[noreturn]] void fail_not_viable(const std::string& name, std::uint32_t group, const std::string& others);

}  // namespace xio::nvme
