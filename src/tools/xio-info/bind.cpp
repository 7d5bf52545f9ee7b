// SPDX-License-Identifier: MIT
// Takes a drive from Linux' driver for vfio-pci, and gives it back: each step is printed before it is done, and nothing
// is done to a drive that somebody uses.
#include <fcntl.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <thread>

#include "base/error.hpp"
#include "base/first_line.hpp"
#include "base/unique_fd.hpp"
#include "tools/xio-info/section.hpp"
#include "topology/pci_reader.hpp"
#include "transport/nvme/holders.hpp"

namespace xio::info {
namespace {

namespace fs = std::filesystem;

constexpr const char* k_vfio = "vfio-pci";

struct function {
  std::string root, bus_id;

  fs::path bus() const { return root + "/sys/bus/pci"; }
  fs::path folder() const { return bus() / "devices" / bus_id; }
};

function drive_named(const std::string& root, const std::string& bus_id) {
  const function f{root, topology::full_bus_id(bus_id)};
  std::error_code error;
  if (!fs::exists(f.folder(), error)) fail(XIO_ERR_ARG, "there is no PCI function {}; xio-info lists drives", f.bus_id);
  // Class 0108: PCI Code and ID Assignment Specification 1.11, section 1.2.
  if (const std::string is = first_line(f.folder() / "class"); !is.starts_with("0x0108"))
    fail(XIO_ERR_ARG, "{} is no NVMe controller (its class is {}); xio-info lists drives", f.bus_id, is);
  return f;
}

// vfio gives a process a whole IOMMU group: what else is in it must belong to no driver of Linux.
std::string refuse_shared_group(const function& f) {
  const fs::path group = f.folder() / "iommu_group";
  const std::string number = target_of(group);
  if (number.empty())
    fail(XIO_ERR_STATE,
         "{} is in no IOMMU group, and vfio-pci needs one; turn the IOMMU on, in the firmware and by "
         "amd_iommu=on or intel_iommu=on",
         f.bus_id);
  for (const fs::path& at : entries_of(group / "devices")) {
    const std::string other = at.filename();
    const fs::path folder = f.bus() / "devices" / other;
    const std::string driver = target_of(folder / "driver");
    const bool is_bridge = first_line(folder / "class").starts_with("0x0604");
    if (other == f.bus_id || is_bridge || driver.empty() || driver == k_vfio) continue;
    fail(XIO_ERR_STATE,
         "{} shares IOMMU group {} with {}, which {} drives: vfio would take both; use a drive in another slot",
         f.bus_id, number, other, driver);
  }
  return number;
}

// Exclusive opens of the disks: nothing can mount them until they are gone.
std::vector<unique_fd> claim_disks(const function& f) {
  const auto disks = nvme::disks_of(f.root, f.bus_id);
  if (const std::string holder = nvme::holder_of_disks(f.root, disks); !holder.empty())
    fail(XIO_ERR_STATE, "{} stays as it is: {}; free it first", f.bus_id, holder);
  std::vector<unique_fd> claims;
  for (const std::string& d : disks) {
    claims.emplace_back(::open((f.root + "/dev/" + d).c_str(), O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK));
    if (claims.back().get() < 0 && errno == EBUSY)
      fail(XIO_ERR_STATE, "{} stays as it is: {} was taken into use meanwhile", f.bus_id, d);
  }
  return claims;
}

// Unbinding would wait in the kernel for as long as a process has the drive open.
void refuse_open_vfio(const function& f) {
  const std::string group = "/dev/vfio/" + target_of(f.folder() / "iommu_group");
  std::string device;
  for (const fs::path& at : entries_of(f.folder() / "vfio-dev")) device = "/dev/vfio/devices/" + at.filename().string();
  for (const fs::path& process : entries_of(f.root + "/proc"))
    for (const fs::path& fd : entries_of(process / "fd")) {
      std::error_code unread;
      const std::string is = fs::read_symlink(fd, unread).string();
      if (is == group || (!device.empty() && is == device))
        fail(XIO_ERR_STATE, "{} stays as it is: process {} ({}) has {} open; end it first", f.bus_id,
             process.filename().string(), first_line(process / "comm"), is);
    }
}

struct step {
  std::string text;
  fs::path file;
};

void write_step(const step& s) {
  const unique_fd to(::open(s.file.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  const std::string line = s.text + "\n";
  if (to.get() < 0 || ::write(to.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size()))
    fail(XIO_ERR_STATE, "{}: {}{}", s.file.string(), errno_text(errno),
         errno == EACCES || errno == EPERM ? "; run as root" : "");
}

// Says all steps before the first, and then does them.
void do_steps(const std::vector<step>& steps) {
  for (const step& s : steps)
    if (::access(s.file.c_str(), W_OK) != 0)
      fail(XIO_ERR_STATE, "nothing was changed, {} cannot be written: {}; run as root", s.file.string(),
           errno_text(errno));
  for (const step& s : steps) std::printf("echo %s > %s\n", s.text.empty() ? "\"\"" : s.text.c_str(), s.file.c_str());
  std::fflush(stdout);
  for (const step& s : steps) write_step(s);
}

bool comes_to(const function& f, bool vfio) {
  for (int left = 200; left > 0; --left) {
    if ((target_of(f.folder() / "driver") == k_vfio) == vfio) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

std::vector<step> steps_of(const function& f, const std::string& driver, const std::string& wanted) {
  std::vector<step> steps{{wanted, f.folder() / "driver_override"}};
  if (!driver.empty()) steps.push_back({f.bus_id, f.bus() / "drivers" / driver / "unbind"});
  steps.push_back({f.bus_id, f.bus() / "drivers_probe"});
  return steps;
}

}  // namespace

std::string bind_drive(const std::string& root, const std::string& bus_id) {
  const function f = drive_named(root, bus_id);
  const std::string driver = target_of(f.folder() / "driver");
  const std::string group = refuse_shared_group(f);
  const std::string use = fmt::format(
      "give it to a user: chown USER /dev/vfio/{0}; back: xio-info --unbind {1}\n"
      "xio_storage_open \"nvme:{1}/1\"\n",
      group, f.bus_id);
  if (driver == k_vfio) return f.bus_id + " is bound to vfio-pci already\n" + use;
  if (!driver.empty() && driver != "nvme")
    fail(XIO_ERR_STATE, "{} stays as it is: {} drives it, and not nvme; unbind it there first", f.bus_id, driver);
  if (const std::string functions = first_line(f.folder() / "sriov_numvfs"); !functions.empty() && functions != "0")
    fail(XIO_ERR_STATE, "{} stays as it is: it has {} virtual functions; remove them first, or bind one of them",
         f.bus_id, functions);
  std::error_code error;
  if (!fs::exists(f.bus() / "drivers" / k_vfio, error))
    fail(XIO_ERR_STATE, "Linux has no driver vfio-pci loaded; as root: modprobe vfio-pci");
  auto claims = claim_disks(f);
  do_steps(steps_of(f, driver, k_vfio));
  claims.clear();
  if (!comes_to(f, true))
    fail(XIO_ERR_STATE,
         "{} did not come to vfio-pci; the kernel's log says why (dmesg), and xio-info --unbind {} gives it back",
         f.bus_id, f.bus_id);
  return f.bus_id + " is bound to vfio-pci now, until the next boot\n" + use;
}

std::string unbind_drive(const std::string& root, const std::string& bus_id) {
  const function f = drive_named(root, bus_id);
  const std::string driver = target_of(f.folder() / "driver");
  const std::string chosen = first_line(f.folder() / "driver_override");
  if (driver != k_vfio && chosen != k_vfio)
    return fmt::format("{} is not bound to vfio-pci: {}\n", f.bus_id,
                       driver.empty() ? "no driver has it" : driver + " has it");
  refuse_open_vfio(f);
  do_steps(steps_of(f, driver, ""));
  if (!comes_to(f, false)) fail(XIO_ERR_STATE, "{} stayed with vfio-pci; the kernel's log says why (dmesg)", f.bus_id);
  const std::string now = target_of(f.folder() / "driver");
  return fmt::format("{} is Linux' again: {}\n", f.bus_id, now.empty() ? "no driver took it" : now + " has it");
}

}  // namespace xio::info
