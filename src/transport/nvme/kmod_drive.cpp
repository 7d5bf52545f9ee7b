// SPDX-License-Identifier: MIT
#include "transport/nvme/kmod_drive.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>

#include <charconv>
#include <optional>

#include "base/error.hpp"
#include "base/first_line.hpp"
#include "base/text_form.hpp"
#include "transport/nvme/kmod_module.hpp"

namespace xio::nvme {
namespace {

namespace fs = std::filesystem;

const text_form& bdf_form() {
  static const text_form form("([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\\.([0-7])");
  return form;
}

// The controller behind a block device: its `device`, or, where several controllers may lead to one namespace (native
// multipath), a child of it.
std::optional<fs::path> controller_of(const fs::path& block) {
  std::error_code none;
  const fs::path device = block / "device";
  if (fs::exists(device / "address", none)) return device;
  for (const auto& child : fs::directory_iterator(device, none))
    if (fs::exists(child.path() / "address", none)) return child.path();
  return std::nullopt;
}

}  // namespace

kmod_drive find_kmod_drive(const std::string& name, const std::string& path, const kmod_places& where) {
  static const text_form form("/dev/(nvme[0-9]+n[0-9]+)");
  const auto part = form.parts_of(path);
  if (part.empty())
    fail(XIO_ERR_ARG, "cannot open storage \"{}\": kmod: wants a whole namespace as /dev/nvme0n1", name);
  const fs::path block = fs::path(where.sysfs) / "class" / "block" / part[1];
  std::error_code none;
  if (!fs::exists(block, none))
    fail(XIO_ERR_IO, "cannot open {}: Linux knows no drive {}; `lsblk` lists those that it has", name, path);
  const auto controller = controller_of(block);
  kmod_drive drive;
  if (controller) drive.bdf = first_word(*controller / "address");
  const std::string nsid = first_word(block / "nsid");
  const auto end = std::from_chars(nsid.data(), nsid.data() + nsid.size(), drive.nsid);
  if (!controller || !bdf_form().fits(drive.bdf) || nsid.empty() || end.ec != std::errc{})
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: {} is no drive on PCI Express, and no GPU reaches another; use file:{}",
         name, path, path);
  return drive;
}

std::string why_no_queue(const kmod_drive& drive, const kmod_places& where) {
  const unique_fd module(::open(where.module.c_str(), O_RDWR | O_CLOEXEC));
  if (!module)
    return fmt::format("{}: {}, and where the kernel module xio is loaded, Linux' nvme driver lends it no queue",
                       where.module, errno_text(errno));
  xio_kmod_info info{};
  if (ioctl(module.get(), XIO_KMOD_INFO, &info) != 0 || info.version != XIO_KMOD_VERSION)
    return fmt::format("{} is not of the kernel module xio that this version knows", where.module);
  xio_kmod_queue_pair pair{};
  pair.device = kmod_device(drive.bdf);
  // No handle is 0, so this call makes nothing: its errno says whether the module would lend the drive.
  ioctl(module.get(), XIO_KMOD_QUEUE_PAIR, &pair);
  if (errno == EPERM)
    return "queues of a drive are given to CAP_SYS_RAWIO only, and Linux' nvme driver lends none anyway";
  if (errno == EOPNOTSUPP) return "Linux' nvme driver lends none of its queues";
  return fmt::format("the kernel module gives no queue of {}: {}", drive.bdf, errno_text(errno));
}

}  // namespace xio::nvme
