// SPDX-License-Identifier: MIT
// The memory cgroups of this process: memory beyond their limits is not refused, it ends the process when it is
// touched.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace xio::gpu {

struct memory_group {
  std::string limit_file;  // which to raise
  std::uint64_t limit;
  std::uint64_t left;  // of it; what the kernel can take back counts as left
};

// The one of this process and of those above it that has least left; nothing if none has a limit. root: where /proc and
// /sys are looked for, "" for the machine's own.
std::optional<memory_group> tightest_memory_group(const std::string& root = "");

}  // namespace xio::gpu
