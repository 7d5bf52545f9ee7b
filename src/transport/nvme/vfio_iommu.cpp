// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_iommu.hpp"

#include <cerrno>

#include "base/error.hpp"

namespace xio::nvme {

int open_device_file(vfio_calls& calls, const std::string& name, const std::string& path, const char* absent) {
  const int fd = calls.open(path);
  if (fd >= 0) return fd;
  switch (errno) {
    case EACCES:
    case EPERM:
      fail(XIO_ERR_IO, "cannot open {}: no permission for {}; chown it to this user, or run as root", name, path);
    case EBUSY:
      fail(XIO_ERR_STATE, "cannot open {}: {} is open in another process (or twice in this one); close it there", name,
           path);
    case ENOENT: fail(XIO_ERR_UNSUPPORTED, "cannot open {}: there is no {}; {}", name, path, absent);
    default: fail(XIO_ERR_IO, "cannot open {}: {}: {}", name, path, errno_text(errno));
  }
}

void fail_not_viable(const std::string& name, std::uint32_t group, const std::string& others) {
  fail(XIO_ERR_STATE,
       "cannot open {}: IOMMU group {} is not viable, because others in it have kernel drivers: {}; bind them to "
       "vfio-pci too, or move the drive to another slot",
       name, group, others.empty() ? "unknown" : others);
}

}  // namespace xio::nvme
