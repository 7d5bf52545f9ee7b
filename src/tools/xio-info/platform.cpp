// SPDX-License-Identifier: MIT
// The build and the GPUs.
#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "tools/gpus.hpp"
#include "tools/xio-info/section.hpp"
#include "xio/xio.h"

namespace xio::info {
namespace {

std::string version() {
  int major = 0, minor = 0, patch = 0;
  xio_version(&major, &minor, &patch);
  return fmt::format("{}.{}.{}", major, minor, patch);
}

}  // namespace

section platform_section(bool* gpu_ready) {
  section s{"platform", "Platform", {{"version", version(), ""}, {"platform", std::string(gpu::name()), ""}}};
  const xio_status_t status = guard([] { gpu::init(0); });
  *gpu_ready = status == XIO_OK;
  s.rows.push_back({"gpu_usable", *gpu_ready, *gpu_ready ? "" : last_error()});
  s.rows.push_back({"page_bytes", static_cast<std::uint64_t>(gpu::page_size()), "of the system"});
  if (!*gpu_ready) return s;
  s.rows.push_back({"gpu", gpu::arch(), ""});
  if (const std::string id = gpu::bus_id(); !id.empty()) s.rows.push_back({"gpu_bus_id", id, ""});
  s.rows.push_back({"wave_lanes", static_cast<std::uint64_t>(gpu::wave_size()), ""});
  return s;
}

std::vector<section> gpu_sections() {
  std::vector<tools::gpu_facts> gpus;
  if (tools::list_gpus(gpus) != nullptr) return {};
  std::vector<section> all;
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const tools::gpu_facts& g = gpus[i];
    section s{fmt::format("gpu{}", i), fmt::format("GPU {}", i), {{"name", g.name, ""}, {"arch", g.arch, ""}}};
    if (!g.bus_id.empty()) s.rows.push_back({"bus_id", g.bus_id, ""});
    s.rows.push_back({"memory_bytes", std::uint64_t{g.memory_bytes}, ""});
    s.rows.push_back({"compute_units", static_cast<std::uint64_t>(g.compute_units), ""});
    s.rows.push_back({"wave_lanes", static_cast<std::uint64_t>(g.wave_lanes), ""});
    all.push_back(std::move(s));
  }
  return all;
}

}  // namespace xio::info
