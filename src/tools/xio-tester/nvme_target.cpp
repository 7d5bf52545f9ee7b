// SPDX-License-Identifier: MIT
#include "tools/xio-tester/nvme_target.hpp"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <filesystem>

#include "base/error.hpp"
#include "base/text_form.hpp"
#include "base/unique_fd.hpp"
#include "ctx/stripes.hpp"
#include "tools/overwrite.hpp"
#include "transport/nvme/holders.hpp"

namespace xio::tester {
namespace {

// Follows a link such as /dev/disk/by-id/nvme-....
std::string resolved(const std::string& path) {
  std::error_code wrong;
  const auto full = std::filesystem::canonical(path, wrong);
  return wrong ? path : full.string();
}

std::uint64_t bytes_of_disk(const std::string& path) {
  const unique_fd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t bytes = 0;
  if (!fd || ioctl(fd.get(), BLKGETSIZE64, &bytes) != 0)
    fail(XIO_ERR_ARG, "--controller: {} cannot be asked for its size: {}; give a disk that you may read", path,
         errno_text(errno));
  return bytes;
}

nvme_target file_target(const std::string& name, const char* scheme = "file:") {
  nvme_target t;
  t.name = scheme + name;
  t.said = nvme::parse_file_name(name, t.name);  // as opening will read it
  const std::string& path = t.said.path;
  t.is_file = true;
  struct stat st {};
  if (path.empty()) fail(XIO_ERR_ARG, "--controller file: has no path behind it; give file:PATH");
  if (stat(path.c_str(), &st) != 0) {
    if (errno != ENOENT)
      fail(XIO_ERR_ARG, "--controller: {} cannot be looked at: {}; give a path that you may read", path,
           errno_text(errno));
    return t;
  }
  t.is_disk = S_ISBLK(st.st_mode);
  if (!t.is_disk && !S_ISREG(st.st_mode))
    fail(XIO_ERR_ARG, "--controller: {} is no file and no NVMe device; give file:PATH, nvme:BDF/NSID or /dev/nvmeXnY",
         path);
  t.exists = true;
  t.bytes = t.is_disk ? bytes_of_disk(path) : static_cast<std::uint64_t>(st.st_size);
  return t;
}

nvme_target drive_target(const std::string& name) {
  nvme_target t;
  t.name = name;
  t.exists = true;
  return t;
}

// A node of the kernel's driver, which therefore holds the drive.
nvme_target node_target(const std::string& path, std::uint32_t nsid) {
  static const text_form node("/dev/nvme[0-9]+(n[0-9]+)?");
  const std::string full = resolved(path);
  const auto found = node.parts_of(full);
  if (found.empty())
    fail(XIO_ERR_ARG, "--controller: {} is no NVMe controller or namespace; give one as /dev/nvme0 or /dev/nvme0n1",
         path);
  const std::string space = !found[1].empty() ? full : full + "n" + std::to_string(nsid);
  struct stat st {};
  if (stat(space.c_str(), &st) != 0)
    fail(XIO_ERR_ARG, "--controller: {} cannot be looked at: {}; see `nvme list`, or xio-info", space,
         errno_text(errno));
  return drive_target("kmod:" + space);
}

std::string disk_of(const std::string& name) {
  static const text_form kmod("kmod:/dev/(nvme[0-9]+n[0-9]+)");
  const auto found = kmod.parts_of(name);
  return found.empty() ? "" : found[1];
}

std::string bdf_of(const std::string& name) {
  static const text_form nvme("(nvme|kmod):([0-9a-fA-F:.]+)(/[0-9]+)?");
  const auto found = nvme.parts_of(name);
  return found.empty() ? "" : found[2];
}

}  // namespace

nvme_target find_target(const nvme_settings& s) {
  static const text_form bdf("([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7]");
  const std::string& c = s.controller;
  if (c.rfind("file:", 0) == 0) return file_target(c.substr(5));
  if (c.starts_with("block:")) return file_target(c.substr(6), "block:");
  if (c.rfind("nvme:", 0) == 0 || c.rfind("kmod:", 0) == 0) return drive_target(c);
  if (bdf.fits(c)) return drive_target("nvme:" + (c.size() < 12 ? "0000:" + c : c) + "/" + std::to_string(s.nsid));
  if (c.rfind("/dev/", 0) == 0) return node_target(c, s.nsid);
  nvme_target t = file_target(c);
  if (!t.exists)
    fail(XIO_ERR_ARG, "--controller: there is no {}; to make a file of that name, give file:{}", t.said.path, c);
  return t;
}

std::vector<nvme_target> find_targets(const nvme_settings& s) {
  std::vector<nvme_target> all;
  for (const std::string& name : member_names(s.controller)) {
    nvme_settings one = s;
    one.controller = name;
    all.push_back(find_target(one));
  }
  return all;
}

nvme_target striped(const std::vector<nvme_target>& targets) {
  nvme_target whole = targets.front();
  for (std::size_t i = 1; i < targets.size(); ++i) {
    whole.name += "," + targets[i].name;
    whole.is_file = whole.is_file && targets[i].is_file;
    whole.is_disk = whole.is_disk || targets[i].is_disk;
    whole.exists = whole.exists && targets[i].exists;
    whole.bytes += targets[i].bytes;
  }
  return whole;
}

void check_writable(const nvme_target& t, const nvme_settings& s) {
  if (t.is_file) {
    const std::string lost = s.i_know ? "" : tools::lost_by_writing(t.said.path);
    if (!lost.empty()) fail(XIO_ERR_ARG, "{}; add --i-know if that is meant", lost);
    return;
  }
  const std::string disk = disk_of(t.name);
  const std::string holder =
      nvme::holder_of_disks("", disk.empty() ? nvme::disks_of("", bdf_of(t.name)) : std::vector<std::string>{disk});
  if (!holder.empty()) fail(XIO_ERR_ARG, "{} is in use: {}; writes are refused until that is over", t.name, holder);
  if (!s.i_know)
    fail(XIO_ERR_ARG, "{} is a drive, and writes replace what is on it; add --i-know if that is meant", t.name);
}

}  // namespace xio::tester
