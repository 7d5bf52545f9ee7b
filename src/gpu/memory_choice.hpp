// SPDX-License-Identifier: MIT
// Which kind of memory holds what others write while a kernel looks at it, on AMD GPUs: one table by GPU and purpose,
// and what the HIP that runs has of it. docs/memory.md shows the table, docs/decisions/0070-uncached-memory.md says
// why.
#pragma once
#include <string>
#include <string_view>

namespace xio::gpu {

// The purpose of a piece of memory.
enum class purpose {
  own,          // the GPU's kernels alone, while they run: any kind will do
  tables,       // what kernels read and the host changes meanwhile: rows of registered memory, drives, PEs
  rings,        // entries that kernels write and engines fetch
  completions,  // what engines write and kernels poll
  flags,        // words of host threads and kernels
  heap,         // the symmetric heap, with the flags of barriers and signals in it
};

enum class caching {
  fine,      // fine-grained device memory, coherent host memory
  uncached,  // no cache of the GPU keeps it
};

const char* name_of(purpose what);
const char* name_of(caching kind);

// The features of a HIP runtime, by the number of hipRuntimeGetVersion. Older ones ignore the flag of uncached host
// memory without a word, so they must not be asked.
struct hip_version {
  int number = 0;  // 70051831 is 7.0
  int major_part() const { return number / 10000000; }
  int minor_part() const { return number / 100000 % 100; }
  bool has_uncached_device_memory() const { return number >= 50700000; }
  bool has_uncached_host_memory() const { return number >= 70000000; }
};

struct memory_plan {
  caching wanted;   // by the table
  caching use;      // and what of it this HIP has
  bool harmless;    // the driver makes the same of both, so that nothing is lost where use is less than wanted
  std::string why;  // one sentence for people
};

// Whether kernels see what others write meanwhile to ordinary memory (hipMalloc) of the GPU itself.
bool own_memory_is_fresh(std::string_view arch);

// arch: "gfx942:sramecc+". on_host: pinned host memory, else the GPU's own.
memory_plan plan_memory(std::string_view arch, purpose what, bool on_host, hip_version hip);

// Flags of hipExtMallocWithFlags and hipHostMalloc; numbers, for HIP 5.2's headers do not name all of them.
constexpr unsigned k_hip_device_fine = 0x1, k_hip_device_uncached = 0x3;
constexpr unsigned k_hip_host_portable = 0x1, k_hip_host_mapped = 0x2;
constexpr unsigned k_hip_host_coherent = 0x40000000, k_hip_host_uncached = 0x10000000;

constexpr unsigned device_flags(caching kind) {
  return kind == caching::uncached ? k_hip_device_uncached : k_hip_device_fine;
}
constexpr unsigned host_flags(caching kind) {
  return k_hip_host_portable | k_hip_host_mapped |
         (kind == caching::uncached ? k_hip_host_uncached : k_hip_host_coherent);
}

// Takes memory by a plan. call(flags) is the runtime's allocation and returns its error, 0 for none; out_of_memory says
// which errors another kind would have as well; said(sentence) is called where a planned kind was refused.
template <class Call, class OutOfMemory, class Said>
auto take_planned(const memory_plan& plan, bool on_host, Call&& call, OutOfMemory&& out_of_memory, Said&& said) {
  const auto flags = [on_host](caching kind) { return on_host ? host_flags(kind) : device_flags(kind); };
  auto e = call(flags(plan.use));
  if (static_cast<int>(e) == 0 || plan.use == caching::fine || out_of_memory(e)) return e;
  const auto refused = e;
  e = call(flags(caching::fine));
  if (static_cast<int>(e) == 0) said(refused);
  return e;
}

}  // namespace xio::gpu
