// SPDX-License-Identifier: MIT
// Pages of other devices' registers for kernels: which call of the runtimes maps them. Included by hip.hip only, after
// hip_identity.hpp.
//
// hipHostRegister pins the page for every GPU of the process in fine-grained memory and does not look at
// hipHostRegisterIoMemory (clr hip_memory.cpp, ihipHostRegister; rocmemory.cpp, Buffer::create), so one GPU that cannot
// is a failure of all. hsa_amd_memory_lock_to_pool does the same for one GPU alone. Both end in the kernel's ioctl,
// which takes pages of registers in AMD's driver package (amdgpu-dkms) and refuses them in Linux's own amdgpu
// (https://github.com/ROCm/rocm-xio/issues/167). There the device's driver may export them: foreign_registers.hpp.
#pragma once
#include <hip/hip_runtime.h>

#include <mutex>
#include <optional>
#include <set>

#include "gpu/foreign_registers.hpp"

namespace xio::gpu::hw {

namespace {

// hsa.h and hsa_ext_amd.h.
constexpr int k_agent_device = 17, k_device_cpu = 0;
constexpr int k_pool_segment = 0, k_pool_flags = 1, k_segment_global = 0;
constexpr std::uint32_t k_fine_grained = 2;

struct handle {
  std::uint64_t value;
};

// The host's fine-grained pool. A callback that returns 1 ends the walk.
struct pool_search {
  using info = int (*)(handle, int, void*);
  info of_agent = nullptr, of_pool = nullptr;
  int (*each_pool)(handle, int (*)(handle, void*), void*) = nullptr;
  std::optional<handle> found;

  static int look_at_pool(handle pool, void* self) {
    auto& s = *static_cast<pool_search*>(self);
    std::uint32_t segment = 1, flags = 0;
    if (s.of_pool(pool, k_pool_segment, &segment) != 0 || s.of_pool(pool, k_pool_flags, &flags) != 0) return 0;
    if (segment != k_segment_global || (flags & k_fine_grained) == 0) return 0;
    s.found = pool;
    return 1;
  }
  static int look_at_agent(handle agent, void* self) {
    auto& s = *static_cast<pool_search*>(self);
    std::uint32_t kind = 1;
    if (s.of_agent(agent, k_agent_device, &kind) != 0 || kind != k_device_cpu) return 0;
    s.each_pool(agent, look_at_pool, self);
    return s.found ? 1 : 0;
  }
};

std::optional<handle> host_pool() {
  pool_search s;
  const auto each_agent = find_call<int (*)(int (*)(handle, void*), void*)>("hsa_iterate_agents");
  s.of_agent = find_call<pool_search::info>("hsa_agent_get_info");
  s.of_pool = find_call<pool_search::info>("hsa_amd_memory_pool_get_info");
  s.each_pool = find_call<decltype(s.each_pool)>("hsa_amd_agent_iterate_memory_pools");
  if (each_agent == nullptr || s.of_agent == nullptr || s.of_pool == nullptr || s.each_pool == nullptr) return {};
  each_agent(pool_search::look_at_agent, &s);
  return s.found;
}

// The current device's.
std::optional<handle> own_agent() {
  void* some = nullptr;
  if (hipMalloc(&some, 4096) != hipSuccess) {
    (void)hipGetLastError();
    return {};
  }
  const auto agent = agent_of(some);
  (void)hipFree(some);
  if (!agent) return {};
  return handle{*agent};
}

std::mutex locked_pages_lock;
std::set<void*> locked_pages;  // by the HSA runtime and not by HIP

bool lock_by_hsa(void* page, std::size_t bytes, void** seen, std::string& why) {
  using lock_to_pool = int (*)(void*, std::size_t, handle*, int, handle, std::uint32_t, void**);
  const auto lock = find_call<lock_to_pool>("hsa_amd_memory_lock_to_pool");
  const auto pool = host_pool();
  auto agent = own_agent();
  if (lock == nullptr || !pool || !agent) {
    why += "; the HSA runtime has no hsa_amd_memory_lock_to_pool for it";
    return false;
  }
  if (const int status = lock(page, bytes, &*agent, 1, *pool, 0, seen); status != 0) {
    why += fmt::format("; hsa_amd_memory_lock_to_pool: status {:#x}", static_cast<unsigned>(status));
    return false;
  }
  const std::lock_guard hold(locked_pages_lock);
  locked_pages.insert(page);
  return true;
}

// For the current device. False: why says what each call returned.
bool map_io(void* page, std::size_t bytes, const register_export& as, void** seen, std::string& why) {
  hipError_t e = hipHostRegister(page, bytes, hipHostRegisterMapped | hipHostRegisterIoMemory);
  if (e == hipSuccess) {
    e = hipHostGetDevicePointer(seen, page, 0);
    if (e == hipSuccess) return true;
    (void)hipHostUnregister(page);
  }
  (void)hipGetLastError();
  why = fmt::format("hipHostRegister: {}", hipGetErrorString(e));
  if (lock_by_hsa(page, bytes, seen, why)) return true;
  *seen = map_exported(page, bytes, as, why);
  if (*seen == nullptr) why += "; AMD's driver package maps all registers: install amdgpu-dkms";
  return *seen != nullptr;
}

void unmap_io(void* page) {
  if (unmap_exported(page)) return;
  bool by_hsa = false;
  {
    const std::lock_guard hold(locked_pages_lock);
    by_hsa = locked_pages.erase(page) != 0;
  }
  if (by_hsa)
    find_call<int (*)(void*)>("hsa_amd_memory_unlock")(page);
  else if (hipHostUnregister(page) != hipSuccess)
    (void)hipGetLastError();
}

}  // namespace

}  // namespace xio::gpu::hw
