// SPDX-License-Identifier: MIT
// libxio's software NICs and drives copy by the GPU (hipMemcpyAsync), and so they would look into its L2, which no
// device does, and write it back for the kernels. With late memory the host does those copies, as a NIC would: past the
// caches.

#include <cstring>

#include "amdgpu/driver/process.hpp"
#include "preload/calls.hpp"

namespace {

bool is_of_libxio(const void* caller) {
  Dl_info where{};
  return dladdr(caller, &where) != 0 && where.dli_fname != nullptr &&
         std::strstr(where.dli_fname, "/libxio") != nullptr;
}

}  // namespace

PRELOAD_SHOWN int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, void* stream) {
  static const auto real =
      preload::next(static_cast<int (*)(void*, const void*, std::size_t, int, void*)>(nullptr), "hipMemcpyAsync");
  const amdgpu::process* const p = amdgpu::process::made();
  if (p == nullptr || p->chosen.memory != "adversary" || !is_of_libxio(__builtin_return_address(0)))
    return real(to, from, bytes, kind, stream);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  std::memcpy(to, from, bytes);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return 0;
}
