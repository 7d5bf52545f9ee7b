// SPDX-License-Identifier: MIT
// What this build is: commit, platform, GPUs it was built for, libraries and features.

#include <algorithm>
#include <iterator>

#include "build_commit.h"
#include "build_parts.h"
#include "config.h"
#include "gpu/gpu.hpp"
#include "tools/gpus.hpp"
#include "tools/xio-info/section.hpp"

namespace xio::info {
namespace {

struct part {
  const char* name;
  const char* version;  // or how it was found; "no"
  const char* lost;     // without it
};
constexpr part k_parts[] = {XIO_PARTS};

// The libraries that configure found and libxio or its tools contain; others that it found serve to build and test.
constexpr std::string_view k_libraries[] = {"fmt",      "spdlog", "boost-context", "cli11",   "nlohmann-json",
                                            "mpi",      "ucx",    "sodium",        "openssl", "hwloc",
                                            "liburing", "libpci", "verbs",         "mlx5dv",  "hsakmt"};
constexpr std::string_view k_features[] = {"model", "dma-buf in verbs", "sanitizer"};

std::string key_of(std::string name) {
  std::ranges::replace_if(
      name, [](char c) { return c == ' ' || c == '-'; }, '_');
  return name;
}

template <std::size_t N>
section parts_section(const char* name, const char* title, const std::string_view (&wanted)[N]) {
  section s{name, title, {}};
  for (const part& p : k_parts)
    if (std::ranges::find(wanted, p.name) != std::end(wanted))
      s.rows.push_back({key_of(p.name), std::string(p.version), p.lost});
  return s;
}

}  // namespace

std::vector<section> version_sections() {
  section build{"build", "xio-info of XIO " PACKAGE_VERSION, {}};
  build.rows.push_back({"version", std::string(PACKAGE_VERSION), ""});
  build.rows.push_back({"commit", std::string(XIO_COMMIT), ""});
  build.rows.push_back({"platform", std::string(gpu::name()), ""});
  build.rows.push_back({"gpu_targets", std::string(tools::gpu_targets()), ""});
  build.rows.push_back({"compiler", std::string(__VERSION__), ""});
  return {build, parts_section("libraries", "Libraries", k_libraries),
          parts_section("features", "Features", k_features)};
}

}  // namespace xio::info
