// SPDX-License-Identifier: MIT
#include "transport/nvme/holders.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

namespace xio::nvme {

namespace fs = std::filesystem;

namespace {

// Names in a folder; none if it cannot be read.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ec;
  for (fs::directory_iterator it(folder, ec), end; !ec && it != end; it.increment(ec))
    names.push_back(it->path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

// Where the kernel keeps a disk or partition: it names both in class/block, under one another in block/.
struct block_device {
  std::string name;
  fs::path folder;
};

std::vector<block_device> with_partitions(const std::string& root, const std::string& disk) {
  const fs::path folder = fs::path(root + "/sys/block") / disk;
  std::vector<block_device> all{{disk, folder}};
  std::error_code ec;
  for (const auto& name : names_in(folder))
    if (fs::exists(folder / name / "partition", ec)) all.push_back({name, folder / name});
  return all;
}

// proc(5), mountinfo: the device as MAJOR:MINOR in field 3, the place in field 5, the source after " - TYPE". File
// systems like btrfs show a number of their own, hence also the source.
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
    std::string type, source;
    behind >> type >> source;
    if ((!number.empty() && device == number) || source == "/dev/" + b.name)
      return place == "/" ? b.name + " is mounted as the root file system" : b.name + " is mounted on " + place;
  }
  return "";
}

std::string swapped_on(const std::string& root, const block_device& b) {
  std::ifstream in(root + "/proc/swaps");
  for (std::string path, rest; in >> path && std::getline(in, rest);)
    if (path == "/dev/" + b.name) return b.name + " is swapped on";
  return "";
}

// md, dm (LVM, crypt) and bcache link themselves there.
std::string held(const std::string& root, const block_device& b) {
  for (const auto& name : names_in(b.folder / "holders")) {
    const std::string called = first_line(fs::path(root + "/sys/block") / name / "dm/name");
    return fmt::format("{} is part of {}{}", b.name, name, called.empty() ? "" : " (" + called + ")");
  }
  return "";
}

// A mount or swap of another namespace shows nowhere else: whoever claims a disk makes O_EXCL fail.
std::string claimed(const std::string& root, const block_device& b) {
  const int fd = ::open((root + "/dev/" + b.name).c_str(), O_RDONLY | O_EXCL | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0) ::close(fd);
  return fd < 0 && errno == EBUSY ? b.name + " is in use (another container may have it mounted)" : "";
}

}  // namespace

std::vector<std::string> disks_of(const std::string& root, const std::string& bdf) {
  // With native multipath the controller has nvme0c1n1 and the disk is nvme0n1: subsystem, controller, namespace.
  static const std::regex pattern("(nvme[0-9]+)(c[0-9]+)?(n[0-9]+)");
  std::vector<std::string> disks;
  const fs::path folder = fs::path(root + "/sys/bus/pci/devices") / bdf / "nvme";
  for (const auto& controller : names_in(folder))
    for (const auto& name : names_in(folder / controller))
      if (std::smatch part; std::regex_match(name, part, pattern)) disks.push_back(part.str(1) + part.str(3));
  return disks;
}

std::string holder_of_disks(const std::string& root, const std::vector<std::string>& disks) {
  for (const auto& disk : disks) {
    // What says most comes first: a mounted disk is also claimed.
    for (const auto look : {mounted, swapped_on, held, claimed})
      for (const auto& device : with_partitions(root, disk))
        if (std::string who = look(root, device); !who.empty()) return who;
  }
  return "";
}

}  // namespace xio::nvme
