// SPDX-License-Identifier: MIT
#include "transport/nvme/holders.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <span>
#include <sstream>

#include "base/error.hpp"
#include "base/first_line.hpp"
#include "base/text_form.hpp"

namespace xio::nvme {

namespace fs = std::filesystem;

namespace {

// Where the kernel keeps a disk or partition: it names both in class/block, under one another in block/.
struct block_device {
  std::string name;
  fs::path folder;
};

std::vector<block_device> with_partitions(const std::string& root, const std::string& disk) {
  const fs::path folder = fs::path(root + "/sys/block") / disk;
  std::vector<block_device> all{{disk, folder}};
  std::error_code ec;
  for (const auto& at : entries_of(folder))
    if (fs::exists(at / "partition", ec)) all.push_back({at.filename(), at});
  return all;
}

// The kernel writes blanks of names as \040 (proc(5)).
std::string unescaped(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool octal = text[i] == '\\' && i + 3 < text.size() && text[i + 1] >= '0' && text[i + 1] <= '3';
    if (!octal) {
      out += text[i];
      continue;
    }
    out += static_cast<char>((text[i + 1] - '0') * 64 + (text[i + 2] - '0') * 8 + (text[i + 3] - '0'));
    i += 3;
  }
  return out;
}

// Whether a path names the device: by its name, or as a node or link with its number.
bool names(const std::string& root, const std::string& path, const block_device& b) {
  if (path == "/dev/" + b.name) return true;
  struct stat s {};
  if (!path.starts_with('/') || stat((root + path).c_str(), &s) != 0 || !S_ISBLK(s.st_mode)) return false;
  return first_line(b.folder / "dev") == fmt::format("{}:{}", major(s.st_rdev), minor(s.st_rdev));
}

// Further devices of a mount are in its options: logdev=/dev/nvme0n1p3 of XFS, device=... of btrfs.
bool in_options(const std::string& root, const std::string& options, const block_device& b) {
  std::istringstream all(options);
  for (std::string one; std::getline(all, one, ',');)
    if (const auto is = one.find('='); is != std::string::npos && names(root, unescaped(one.substr(is + 1)), b))
      return true;
  return false;
}

// proc(5), mountinfo: the device as MAJOR:MINOR in field 3, the place in field 5, the source after " - TYPE", then
// options. File systems like btrfs show a number of their own, hence also the source; those of bcachefs and zfs are
// lists, with colons between.
std::string mounted(const std::string& root, const block_device& b) {
  const std::string number = first_line(b.folder / "dev");
  std::ifstream in(root + "/proc/self/mountinfo");
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string id, parent, device, inside, place;
    fields >> id >> parent >> device >> inside >> place;
    const std::size_t rest = line.find(" - ");
    if (!fields || rest == std::string::npos) continue;
    std::istringstream behind(line.substr(rest + 3));
    std::string type, source, options;
    behind >> type >> source >> options;
    bool is =
        (!number.empty() && device == number) || names(root, unescaped(source), b) || in_options(root, options, b);
    std::istringstream sources(source);
    for (std::string one; !is && std::getline(sources, one, ':');) is = one == "/dev/" + b.name;
    if (is) return place == "/" ? b.name + " is mounted as the root file system" : b.name + " is mounted on " + place;
  }
  return "";
}

std::string swapped_on(const std::string& root, const block_device& b) {
  std::ifstream in(root + "/proc/swaps");
  for (std::string path, rest; in >> path && std::getline(in, rest);)
    if (names(root, unescaped(path), b)) return b.name + " is swapped on";
  return "";
}

// md, dm (LVM, crypt) and bcache link themselves there.
std::string held(const std::string& root, const block_device& b) {
  for (const auto& at : entries_of(b.folder / "holders")) {
    const std::string name = at.filename(), called = first_line(fs::path(root + "/sys/block") / name / "dm/name");
    return fmt::format("{} is part of {}{}", b.name, name, called.empty() ? "" : " (" + called + ")");
  }
  std::error_code ec;
  if (fs::exists(b.folder / "bcache", ec)) return b.name + " is part of a bcache";
  return "";
}

// File systems of several devices: a mount shows one of them, and the kernel all. Linux, fs/btrfs/sysfs.c: a link of
// the device's name; fs/bcachefs/sysfs.c: a link called block.
std::string in_file_system(const std::string& root, const block_device& b) {
  std::error_code ec;
  for (const auto& at : entries_of(root + "/sys/fs/btrfs"))
    if (fs::exists(fs::symlink_status(at / "devices" / b.name, ec)))
      return fmt::format("{} is part of the mounted btrfs {}", b.name, at.filename().string());
  for (const auto& at : entries_of(root + "/sys/fs/bcachefs"))
    for (const auto& device : entries_of(at))
      if (target_of(device / "block") == b.name)
        return fmt::format("{} is part of the mounted bcachefs {}", b.name, at.filename().string());
  return "";
}

// Loop devices and zfs tell nobody else. A loop device says what it lies on. Which disks a pool has only zfs knows, for
// root: a member while zfs is loaded counts as one in use. udev has read the disk, and lets everybody read what it
// found.
std::string below_another(const std::string& root, const block_device& b) {
  for (const auto& at : entries_of(root + "/sys/block"))
    if (const std::string on = first_line(at / "loop/backing_file"); !on.empty() && names(root, on, b))
      return fmt::format("{} is below {}", b.name, at.filename().string());
  std::error_code ec;
  if (!fs::exists(root + "/sys/module/zfs", ec)) return "";
  std::ifstream found(root + "/run/udev/data/b" + first_line(b.folder / "dev"));
  for (std::string line; std::getline(found, line);)
    if (line == "E:ID_FS_TYPE=zfs_member")
      return b.name + " is part of a ZFS pool; if that is not imported, unload the module zfs";
  return "";
}

// A mount or swap of another namespace shows nowhere else: a disk that is claimed makes O_EXCL fail. A disk that
// this process may not open is taken to be in use.
std::string claimed(const std::string& root, const block_device& b) {
  const int fd = ::open((root + "/dev/" + b.name).c_str(), O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) {
    ::close(fd);
    return "";
  }
  if (errno == EBUSY) return b.name + " is in use (another container may have it mounted)";
  // A folder that stands for a machine may have no nodes.
  if (errno == ENOENT && !root.empty()) return "";
  return fmt::format("whether {} is in use cannot be known: {}; run as root, or with the right to read it", b.name,
                     errno_text(errno));
}

// Of an identifier as sysfs writes it, "eui.0025385b21404a5f" or with dashes or blanks: its digits. "" if all are 0.
std::string digits_of(std::string text) {
  if (const auto dot = text.find('.'); dot != std::string::npos) text = text.substr(dot + 1);
  std::string out;
  for (const char c : text)
    if (std::isxdigit(static_cast<unsigned char>(c)) != 0) out += static_cast<char>(std::tolower(c));
  return out.find_first_not_of('0') == std::string::npos ? "" : out;
}

std::string hex_of(std::span<const std::uint8_t> bytes) {
  return digits_of(fmt::format("{:02x}", fmt::join(bytes, "")));
}

}  // namespace

std::vector<std::string> disks_of(const std::string& root, const std::string& bdf) {
  // With native multipath the controller has nvme0c1n1 and the disk is nvme0n1: subsystem, controller, namespace.
  static const text_form controller_disk("(nvme[0-9]+)(c[0-9]+)?(n[0-9]+)");
  std::vector<std::string> disks;
  for (const auto& controller : entries_of(fs::path(root + "/sys/bus/pci/devices") / bdf / "nvme"))
    for (const auto& at : entries_of(controller))
      if (const auto part = controller_disk.parts_of(at.filename()); !part.empty()) disks.push_back(part[1] + part[3]);
  return disks;
}

std::string holder_of_disks(const std::string& root, const std::vector<std::string>& disks) {
  for (const auto& disk : disks) {
    // The most exact reason comes first: a mounted disk is also claimed.
    for (const auto find_holder : {mounted, swapped_on, held, in_file_system, below_another, claimed})
      for (const auto& device : with_partitions(root, disk))
        if (std::string who = find_holder(root, device); !who.empty()) return who;
  }
  return "";
}

// Linux, drivers/nvme/host/sysfs.c: nguid, eui and nsid of a disk; size counts 512 bytes.
std::vector<std::string> disks_of_namespace(const std::string& root, const namespace_identity& is) {
  std::vector<std::string> same;
  const std::string nguid = hex_of(is.nguid), eui64 = hex_of(is.eui64);
  // With native multipath a controller's own nvme0c1n1 stands beside the disk.
  static const text_form disk("nvme[0-9]+n[0-9]+");
  for (const auto& at : entries_of(root + "/sys/block")) {
    const std::string name = at.filename();
    if (!disk.fits(name)) continue;
    const std::string its_nguid = digits_of(first_line(at / "nguid"));
    const std::string its_eui64 = digits_of(first_line(at / "eui"));
    const bool by_id = (!nguid.empty() && nguid == its_nguid) || (!eui64.empty() && eui64 == its_eui64);
    // Without any identifier, namespaces that cannot be distinguished may be the same one.
    const bool nameless = nguid.empty() && eui64.empty() && its_nguid.empty() && its_eui64.empty();
    const bool alike =
        first_line(at / "nsid") == std::to_string(is.nsid) && first_line(at / "size") == std::to_string(is.bytes / 512);
    if (by_id || (nameless && alike)) same.push_back(name);
  }
  return same;
}

void refuse_namespace_in_use(const namespace_identity& is, const std::string& name) {
  if (const std::string who = holder_of_disks("", disks_of_namespace("", is)); !who.empty())
    fail(XIO_ERR_STATE,
         "cannot open {}: its namespace may be shared, and Linux has it through another controller: {}; free it first, "
         "or open it with XIO_STORAGE_READ_ONLY",
         name, who);
}

}  // namespace xio::nvme
