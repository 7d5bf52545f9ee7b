// SPDX-License-Identifier: MIT
// "kmod:BDF/NSID": queues of a controller that is bound to the kernel module xio. "kmod:/dev/nvmeXnY": the same drive
// by the name that Linux' own driver gave it, whose queues no running kernel lends (docs/kernel-module.md); so that
// says what does work, for this very drive.
#include "base/error.hpp"
#include "transport/nvme/holders.hpp"
#include "transport/nvme/kmod_controller.hpp"
#include "transport/nvme/kmod_drive.hpp"
#include "transport/nvme/vfio_function.hpp"

namespace xio::nvme {
namespace {

[[noreturn]] void refuse_kernel_drive(const opening& what) {
  const kmod_drive drive = find_kmod_drive(what.name, what.rest);
  if (const std::string who = holder_of_disks("", disks_of("", drive.bdf)); !who.empty())
    fail(XIO_ERR_STATE, "cannot open {}: {}; and {}; free it first, or use file:{}", what.name, who,
         why_no_queue(drive), what.rest);
  fail(
      XIO_ERR_UNSUPPORTED,
      "cannot open {}: {}; bind {} to xio and open kmod:{}/{}, bind it to vfio-pci and open nvme:{}/{}, or use file:{}",
      what.name, why_no_queue(drive), drive.bdf, drive.bdf, drive.nsid, drive.bdf, drive.nsid, what.rest);
}

void check_binding(const std::string& name, const std::string& bdf) {
  const std::string driver = driver_of_controller("", bdf, name);
  if (driver == "xio") return;
  if (const std::string who = holder_of_disks("", disks_of("", bdf)); !who.empty())
    fail(XIO_ERR_STATE, "cannot open {}: {}; free it first, or use another drive", name, who);
  fail(XIO_ERR_STATE,
       "cannot open {}: {} is bound to {} and not to xio, so bind it: load the kernel module xio, write xio to "
       "/sys/bus/pci/devices/{}/driver_override, unbind it, and write {} to /sys/bus/pci/drivers_probe",
       name, bdf, driver.empty() ? "no driver" : "the driver " + driver, bdf, bdf);
}

}  // namespace

std::unique_ptr<controller> open_kmod(const opening& what) {
  if (what.rest[0] == '/') refuse_kernel_drive(what);
  const vfio_name place = parse_function_name(what.name, "kmod");
  if (what.opts.backend == option::backend::model)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: it is hardware; set XIO_BACKEND=auto or hw", what.name);
  check_binding(what.name, place.bdf);
  return std::make_unique<kmod_controller>(what.name, place.bdf, place.nsid, what.attr, what.opts, what.machine);
}

}  // namespace xio::nvme
