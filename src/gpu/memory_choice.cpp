// SPDX-License-Identifier: MIT
#include "gpu/memory_choice.hpp"

#include <fmt/core.h>

namespace xio::gpu {

namespace {

constexpr caching F = caching::fine, U = caching::uncached;

// The page-table kinds (MTYPE) that linux amdgpu makes of KFD's flags COHERENT (fine-grained), EXT_COHERENT and
// UNCACHED: gmc_v9_0.c gmc_v9_0_get_coherence_flags, gmc_v10_0.c, gmc_v11_0.c and gmc_v12_0.c *_get_vm_pte, for shared
// virtual memory kfd_svm.c svm_range_get_pte_flags. UC: not cached. CC: cached, and lines are probed. RW, NC: cached,
// and seen by others only by the write-backs and invalidates of LLVM's memory model (AMDGPUUsage, "Memory Model", per
// target).
//
//                         fine-grained                            uncached
//   gfx908, gfx90a        own CC, peers' UC, host UC              UC
//   gfx940 to gfx942      own RW, peers' NC, host UC (APU: RW)    UC; of HIP's device memory own CC, peers' UC
//   gfx950                own RW, peers' NC, host NC              likewise
//   other gfx9, 10, 11    UC                                      UC
//   gfx12                 NC                                      UC
//
// HIP's uncached device memory is EXT_COHERENT there, and UNCACHED on gfx12 since November 2025 (rocm-systems
// pull 1670).
struct row {
  std::string_view prefix;  // of the GPU's name; the first that fits
  caching rings, completions, flags, heap;
  bool host_is_uncached;  // fine-grained host memory is mapped UC all the same
  bool own_is_fresh;      // coarse-grained memory of its own is RW, which is probed; else NC
  const char* why;
};

// clang-format off
constexpr row k_table[] = {
  {"gfx908",  F, F, F, F, true,  true,  "the driver probes the cache for fine-grained memory of its own and maps others' uncached"},
  {"gfx90a",  F, F, F, F, true,  true,  "the driver probes the cache for fine-grained memory of its own and maps others' uncached"},
  {"gfx94",   U, U, U, U, true,  true,  "the driver lets caches keep fine-grained memory, so a kernel that polls may see old bytes"},
  {"gfx95",   U, U, U, U, false, true,  "the driver lets caches keep fine-grained memory, so a kernel that polls may see old bytes"},
  {"gfx9",    F, F, F, F, true,  false, "the driver maps fine-grained memory uncached"},
  {"gfx10",   F, F, F, F, true,  false, "the driver maps fine-grained memory uncached"},
  {"gfx11",   F, F, F, F, true,  false, "the driver maps fine-grained memory uncached"},
  {"gfx12",   U, U, U, U, false, false, "the driver lets caches keep fine-grained memory, so a kernel that polls may see old bytes"},
  {"",        U, U, U, U, false, false, "a GPU that this libxio does not know; uncached is the safe kind"},
};
// clang-format on

caching column(const row& r, purpose what) {
  switch (what) {
    case purpose::own: return F;
    case purpose::tables: return r.heap;
    case purpose::rings: return r.rings;
    case purpose::completions: return r.completions;
    case purpose::flags: return r.flags;
    case purpose::heap: return r.heap;
  }
  return F;
}

const row& row_of(std::string_view arch) {
  for (const row& r : k_table)
    if (arch.substr(0, r.prefix.size()) == r.prefix) return r;
  return k_table[std::size(k_table) - 1];
}

}  // namespace

const char* name_of(purpose what) {
  switch (what) {
    case purpose::own: return "own";
    case purpose::tables: return "tables";
    case purpose::rings: return "rings";
    case purpose::completions: return "completions";
    case purpose::flags: return "flags";
    case purpose::heap: return "heap";
  }
  return "";
}

const char* name_of(caching kind) { return kind == caching::uncached ? "uncached" : "fine"; }

bool own_memory_is_fresh(std::string_view arch) { return row_of(arch.substr(0, arch.find(':'))).own_is_fresh; }

memory_plan plan_memory(std::string_view arch, purpose what, bool on_host, hip_version hip) {
  const std::string_view name = arch.substr(0, arch.find(':'));
  const row& r = row_of(name);
  memory_plan plan{column(r, what), F, true, ""};
  plan.why = fmt::format("{}: {}", name.empty() ? "an unknown GPU" : name, r.why);
  const bool has = on_host ? hip.has_uncached_host_memory() : hip.has_uncached_device_memory();
  plan.use = has ? plan.wanted : F;
  if (plan.use == plan.wanted) return plan;
  plan.harmless = on_host && r.host_is_uncached;
  plan.why += fmt::format("; HIP {}.{} has no uncached {} memory ({} and newer have), so it is fine-grained{}",
                          hip.major_part(), hip.minor_part(), on_host ? "host" : "device", on_host ? "7.0" : "5.7",
                          plan.harmless ? ", which the driver maps uncached for the host's memory on this GPU" : "");
  return plan;
}

}  // namespace xio::gpu
