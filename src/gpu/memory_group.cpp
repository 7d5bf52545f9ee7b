// SPDX-License-Identifier: MIT
#include "gpu/memory_group.hpp"

#include <algorithm>
#include <fstream>

namespace xio::gpu {

namespace {

// The names of one version of cgroups.
struct version {
  const char* mounts[2];
  const char *limit, *usage;
  const char* reclaimable[2];  // of memory.stat
};
constexpr version k_v1{{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory"},
                       "memory.limit_in_bytes",
                       "memory.usage_in_bytes",
                       {"total_active_file", "total_inactive_file"}};
constexpr version k_v2{
    {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}, "memory.max", "memory.current", {"active_file", "inactive_file"}};

// "max", and v1's nearly 2^63, are no limits.
constexpr std::uint64_t k_no_limit = std::uint64_t{1} << 60;

std::optional<std::uint64_t> number_in(const std::string& file) {
  std::ifstream in(file);
  std::uint64_t value = 0;
  if (in >> value) return value;
  return {};
}

std::uint64_t reclaimable(const std::string& folder, const version& v) {
  std::ifstream in(folder + "/memory.stat");
  std::string key;
  std::uint64_t value = 0, sum = 0;
  while (in >> key >> value)
    if (key == v.reclaimable[0] || key == v.reclaimable[1]) sum += value;
  return sum;
}

void look_at(const std::string& folder, const version& v, std::optional<memory_group>& tightest) {
  const std::string limit_file = folder + "/" + v.limit;
  const auto limit = number_in(limit_file);
  if (!limit || *limit >= k_no_limit) return;
  const std::uint64_t used = number_in(folder + "/" + v.usage).value_or(0);
  const std::uint64_t held = used - std::min(used, reclaimable(folder, v));
  const std::uint64_t left = *limit - std::min(*limit, held);
  if (!tightest || left < tightest->left) tightest = memory_group{limit_file, *limit, left};
}

// From the process's own group to the topmost that is seen here: in a container that may be the process's own, by any
// name outside.
void look_upwards(const std::string& mount, std::string path, const version& v, std::optional<memory_group>& tightest) {
  while (path.size() > 1) {
    look_at(mount + path, v, tightest);
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
  look_at(mount, v, tightest);
}

}  // namespace

std::optional<memory_group> tightest_memory_group(const std::string& root) {
  std::optional<memory_group> tightest;
  std::ifstream in(root + "/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    // "4:cpu,memory:/path", or "0::/path" of version 2.
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers.find(",memory,") != std::string::npos) look_upwards(root + k_v1.mounts[0], path, k_v1, tightest);
    if (controllers == ",,")
      for (const char* mount : k_v2.mounts) look_upwards(root + mount, path, k_v2, tightest);
  }
  return tightest;
}

}  // namespace xio::gpu
