// SPDX-License-Identifier: MIT
// The call by which newer HSA runtimes (ROCm 5.6, and with flags later) export memory as a dma-buf, for one that lacks
// it: the software GPU's driver has the memory files.
#include <dlfcn.h>

#include "kmod/settings.hpp"

namespace {

// hsa.h: HSA_STATUS_SUCCESS, HSA_STATUS_ERROR_INVALID_ARGUMENT, HSA_STATUS_ERROR_INVALID_ALLOCATION.
constexpr int k_success = 0, k_invalid_argument = 0x1001, k_invalid_allocation = 0x1003;

int export_memory(const void* base, std::size_t bytes, int* fd, std::uint64_t* offset) {
  using find_file = int (*)(const void*, std::uint64_t, std::uint64_t*);
  static const auto find = reinterpret_cast<find_file>(dlsym(RTLD_DEFAULT, "xio_amdgpu_export"));
  if (kmod_sim::session() == nullptr || find == nullptr) return k_invalid_argument;
  *fd = find(base, bytes, offset);
  return *fd >= 0 ? k_success : k_invalid_allocation;
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int hsa_amd_portable_export_dmabuf(const void* base, std::size_t bytes, int* fd,
                                                                          std::uint64_t* offset) {
  return export_memory(base, bytes, fd, offset);
}

// flags 1: through PCI Express, which is the only way here.
__attribute__((visibility("default"))) int hsa_amd_portable_export_dmabuf_v2(const void* base, std::size_t bytes,
                                                                             int* fd, std::uint64_t* offset,
                                                                             std::uint64_t flags) {
  return flags > 1 ? k_invalid_argument : export_memory(base, bytes, fd, offset);
}

}  // extern "C"
