// SPDX-License-Identifier: MIT
// What libhsakmt asks of libdrm: a GPU's name. Signatures: libdrm xf86drm.h and amdgpu/amdgpu.h.
#include <dlfcn.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "amdgpu/driver/descriptors.hpp"
#include "amdgpu/driver/settings.hpp"

#define AMDGPU_SHOWN extern "C" __attribute__((visibility("default")))

namespace {

template <class Function>
Function next(Function, const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

bool is_here() { return amdgpu::session_folder() != nullptr; }

struct device {
  int fd;
};

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
    *out = new device{fd};
    return 0;
  }
  static const auto real =
      next(static_cast<int (*)(int, std::uint32_t*, std::uint32_t*, void**)>(nullptr), "amdgpu_device_initialize");
  return real == nullptr ? -ENODEV : real(fd, major, minor, out);
}

AMDGPU_SHOWN int amdgpu_device_deinitialize(void* handle) {
  if (is_here()) {
    delete static_cast<device*>(handle);
    return 0;
  }
  static const auto real = next(static_cast<int (*)(void*)>(nullptr), "amdgpu_device_deinitialize");
  return real == nullptr ? -ENODEV : real(handle);
}

AMDGPU_SHOWN const char* amdgpu_get_marketing_name(void* handle) {
  if (is_here()) return "Software AMD GPU";
  static const auto real = next(static_cast<const char* (*)(void*)>(nullptr), "amdgpu_get_marketing_name");
  return real == nullptr ? nullptr : real(handle);
}
