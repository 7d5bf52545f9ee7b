// SPDX-License-Identifier: MIT
#include "topology/access.hpp"

#include <fmt/core.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/first_line.hpp"

namespace xio::topology {
namespace {

// "usermod -aG render $USER": the group that the file is for, if it is for one.
std::string way_in(const std::string& path) {
  struct stat s {};
  constexpr mode_t for_group = S_IRGRP | S_IWGRP;
  if (stat(path.c_str(), &s) != 0 || (s.st_mode & for_group) != for_group || s.st_gid == 0)
    return "ask root for a udev rule that gives a group of yours the file";
  char names[4096];
  group entry{};
  group* found = nullptr;
  const bool named = getgrgid_r(s.st_gid, &entry, names, sizeof names, &found) == 0 && found != nullptr;
  return fmt::format("as root: usermod -aG {} USER; then log in again",
                     named ? std::string(entry.gr_name) : std::to_string(s.st_gid));
}

}  // namespace

std::vector<std::string> files_like(const std::string& root, const std::string& folder, const std::string& begin) {
  std::vector<std::string> all;
  for (const auto& at : entries_of(root + folder))
    if (const std::string name = at.filename(); name.starts_with(begin)) all.push_back(folder + "/" + name);
  return all;
}

piece device_access(const std::string& root, const std::string& name, const std::vector<std::string>& files) {
  for (const std::string& f : files)
    if (access((root + f).c_str(), R_OK | W_OK) != 0)
      return {name, piece_state::missing, fmt::format("this process may not read and write {}", f), way_in(root + f)};
  if (files.empty()) return {name, piece_state::missing, "its device files are not there", "as root: udevadm trigger"};
  return {name, piece_state::ok,
          files.size() == 1 ? files[0] : fmt::format("{} and {} more", files[0], files.size() - 1), ""};
}

}  // namespace xio::topology
