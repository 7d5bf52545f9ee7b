// SPDX-License-Identifier: MIT
#include "memory/hdp_facts.hpp"

#include <fstream>

#include "gpu/gpu.hpp"
#include "topology/kfd_node.hpp"

namespace xio::memory {
namespace {

// The CPU says whether a hypervisor is below: a flag in /proc/cpuinfo (x86, linux cpufeatures.h).
bool in_virtual_machine() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (line.rfind("flags", 0) == 0) return (line + " ").find(" hypervisor ") != std::string::npos;
  return false;
}

hdp_link link_of(const gpu::hdp_hardware& hw) {
  if (!hw.amd) return hdp_link::none;
  const auto node = topology::find_kfd_node("", gpu::identity());
  if (hw.integrated || (node && node->has_cpu)) return hdp_link::apu;
  return node && node->cpu_by_xgmi ? hdp_link::xgmi : hdp_link::pcie;
}

}  // namespace

hdp_facts hdp_facts_here() {
  const gpu::hdp_hardware hw = gpu::hdp();
  hdp_facts f;
  f.arch = gpu::arch();
  f.link = link_of(hw);
  f.virtual_machine = in_virtual_machine();
  f.page_bytes = gpu::page_size();
  f.register_mapped = hw.flush != nullptr;
  f.kernels_store = hw.flush != nullptr;
  f.large_bar = hw.large_bar;
  return f;
}

}  // namespace xio::memory
