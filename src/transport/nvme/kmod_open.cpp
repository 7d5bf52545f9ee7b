// SPDX-License-Identifier: MIT
// "kmod:/dev/nvmeXnY": a queue of a drive that Linux goes on using. No running kernel has a way to lend one that leaves
// both owners whole (docs/kernel-module.md), so this says what does work, for this very drive.
#include "base/error.hpp"
#include "transport/nvme/kmod_drive.hpp"
#include "transport/nvme/nvme.hpp"

namespace xio::nvme {

std::unique_ptr<controller> open_kmod(const opening& what) {
  const kmod_drive drive = find_kmod_drive(what.name, what.rest);
  fail(XIO_ERR_UNSUPPORTED, "cannot open {}: {}; bind {} to vfio-pci and open nvme:{}/{}, or use file:{}", what.name,
       why_no_queue(drive), drive.bdf, drive.bdf, drive.nsid, what.rest);
}

}  // namespace xio::nvme
