// SPDX-License-Identifier: MIT
// What may be chosen by XIO_AMDGPU_*: one table, in settings.cpp.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace amdgpu {

struct settings {
  std::uint64_t gpus = 1, partitions = 1;
  std::string partition_names = "function", target = "gfx90a";
  std::uint64_t xccs = 2, compute_units = 16, memory_mib = 4096;
  std::string links = "xgmi";
  std::uint64_t large_bar = 1, copy_engines = 5, register_pages = 1, kfd_minor = 17;
  std::string doorbells = "aligned", imports = "gem";
  std::uint64_t threads = 2, slice = 2000;
  std::string memory = "plain";
  std::uint64_t seed = 1, hdp = 0, unwritten = 0, log = 0;
  std::string counts, times;
  std::uint64_t ignored = 0;
  std::string ignored_list, sites;

  // Each partition is a node, which the driver calls a GPU elsewhere.
  unsigned nodes() const { return static_cast<unsigned>(gpus * partitions); }
  // Of each.
  unsigned l2s() const { return target == "gfx942" ? static_cast<unsigned>(xccs) : 1; }
};

// Reads all rows by `look`, which is getenv outside of tests. Returns one sentence if something cannot be.
std::optional<std::string> read_settings(settings& out, const std::function<const char*(const char*)>& look);

// The table as text: name, default, values, meaning.
std::string settings_text();

// The folder that `run` makes and removes, with the topology in it; null outside of it.
const char* session_folder();

}  // namespace amdgpu
