// SPDX-License-Identifier: MIT
// Calls on /dev/dri/renderD* by which a GPU sees another driver's dma-buf (linux drm_prime.c, amdgpu_gem.c), and what
// libhsakmt asks of libdrm: a GPU's name and family. Signatures: libdrm xf86drm.h and amdgpu/amdgpu.h.
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "amdgpu/driver/descriptors.hpp"
#include "amdgpu/driver/kfd_ioctls.hpp"
#include "amdgpu/driver/kfd_uapi.hpp"
#include "amdgpu/driver/process.hpp"
#include "amdgpu/driver/topology.hpp"

#define AMDGPU_SHOWN extern "C" __attribute__((visibility("default")))

namespace {

template <class Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_here() { return amdgpu::session_folder() != nullptr; }

// libhsakmt looks for amdgpu_device_get_fd in libdrm itself, so the file is where libdrm keeps it (amdgpu_internal.h,
// struct amdgpu_device).
struct device {
  int users;
  void* next;
  int fd, flink_fd;
};

// libdrm amdgpu/amdgpu.h, struct amdgpu_gpu_info.
struct gpu_info {
  std::uint32_t asic_id, chip_revision, external_revision, family;
  std::uint64_t flags, most_engine_khz, most_memory_khz;
  std::uint32_t others[94];
};
static_assert(sizeof(gpu_info) == 416);

// The session's, which the program's environment has; run has looked at them.
std::uint32_t family() {
  amdgpu::settings s;
  static_cast<void>(read_settings(s, [](const char* name) { return std::getenv(name); }));
  return family_of(s);
}

}  // namespace

AMDGPU_SHOWN int drmOpenRender(int minor) {
  if (is_here()) return amdgpu::open_device_file(amdgpu::device_file::render);
  static const auto real = next(static_cast<int (*)(int)>(nullptr), "drmOpenRender");
  return real == nullptr ? -ENODEV : real(minor);
}

AMDGPU_SHOWN int drmClose(int fd) {
  if (is_here()) return ::close(fd);
  static const auto real = next(static_cast<int (*)(int)>(nullptr), "drmClose");
  return real == nullptr ? ::close(fd) : real(fd);
}

AMDGPU_SHOWN int amdgpu_device_initialize(int fd, std::uint32_t* major, std::uint32_t* minor, void** out) {
  if (is_here()) {
    *major = 3;
    *minor = 49;
    // A file of its own: newer libhsakmt closes the one that it has given.
    const int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (own < 0) return -errno;
    *out = new device{1, nullptr, own, -1};
    return 0;
  }
  static const auto real =
      next(static_cast<int (*)(int, std::uint32_t*, std::uint32_t*, void**)>(nullptr), "amdgpu_device_initialize");
  return real == nullptr ? -ENODEV : real(fd, major, minor, out);
}

AMDGPU_SHOWN int amdgpu_device_deinitialize(void* handle) {
  if (is_here()) {
    ::close(static_cast<device*>(handle)->fd);
    delete static_cast<device*>(handle);
    return 0;
  }
  static const auto real = next(static_cast<int (*)(void*)>(nullptr), "amdgpu_device_deinitialize");
  return real == nullptr ? -ENODEV : real(handle);
}

AMDGPU_SHOWN int amdgpu_query_gpu_info(void* handle, void* info) {
  if (is_here()) {
    *static_cast<gpu_info*>(info) = {0, 0, 0, family(), 0, 1700000, 1600000, {}};
    return 0;
  }
  static const auto real = next(static_cast<int (*)(void*, void*)>(nullptr), "amdgpu_query_gpu_info");
  return real == nullptr ? -ENODEV : real(handle, info);
}

AMDGPU_SHOWN const char* amdgpu_get_marketing_name(void* handle) {
  if (is_here()) return "Software AMD GPU";
  static const auto real = next(static_cast<const char* (*)(void*)>(nullptr), "amdgpu_get_marketing_name");
  return real == nullptr ? nullptr : real(handle);
}

// linux include/uapi/drm/drm.h, amdgpu_drm.h. GEM's objects are of the compute driver here, and get an address when
// they are mapped.
int amdgpu::gem_ioctl(process& p, int fd, std::uint32_t request, void* argument) {
  constexpr std::uint32_t k_close = 0x40086409, k_prime = 0xc00c642e, k_va = 0x40286448;
  constexpr std::uint32_t k_map = 1, k_writable = 1 << 2, k_caching = 0xf << 5, k_uncached = 4 << 5;
  auto* const words = static_cast<std::uint32_t*>(argument);
  std::uint64_t handle = words[0];
  std::optional<unsigned> gpu;
  for (unsigned g = 0; g < p.chosen.nodes(); ++g)
    if (p.has_vm(g) && p.acquire_vm(g, number_of_file(fd)) == 0) gpu = g;
  if (request == k_prime) {  // handle, flags, descriptor
    const auto from = static_cast<int>(words[2]);
    if (!is_register_file(from) || p.chosen.imports != "gem") return EINVAL;
    const int failed = p.memory.adopt(unique_fd(dup(from)), 0, gpu.value_or(0), &handle, uapi::in_gtt);
    words[0] = static_cast<std::uint32_t>(handle);
    return failed;
  }
  if (request == k_close) {
    const int failed = p.memory.free(handle);
    if (failed != 0) std::fprintf(stderr, "software AMD GPU: a GEM object is closed while mapped\n");
    return failed;
  }
  if (request != k_va) return ENOTTY;
  if (!gpu) return 0;  // in a table that no kernel uses
  if (words[2] != k_map) return p.memory.unmap(handle, *gpu);
  const std::uint32_t flags = ((words[3] & k_writable) != 0 ? uapi::writable : 0u) |
                              ((words[3] & k_caching) == k_uncached ? uapi::uncached : 0u);
  return p.memory.map(handle, *gpu, words[4] | std::uint64_t{words[5]} << 32, flags);
}
