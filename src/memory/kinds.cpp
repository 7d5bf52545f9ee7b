// SPDX-License-Identifier: MIT
#include "memory/kinds.hpp"
#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"

extern "C" const char* xio_mem_kind_name(xio_mem_kind_t kind) {
  switch (kind) {
    case XIO_MEM_NONE: return "NONE";
    case XIO_MEM_HOST_MAPPED: return "HOST_MAPPED";
    case XIO_MEM_HOST_COHERENT: return "HOST_COHERENT";
    case XIO_MEM_HOST_PINNED: return "HOST_PINNED";
    case XIO_MEM_HOST_PLAIN: return "HOST_PLAIN";
    case XIO_MEM_HOST_DEFAULT: return "HOST_DEFAULT";
    case XIO_MEM_DEVICE_FINE_GRAINED: return "DEVICE_FINE_GRAINED";
    case XIO_MEM_DEVICE_COARSE_GRAINED: return "DEVICE_COARSE_GRAINED";
    case XIO_MEM_DEVICE_UNCACHED: return "DEVICE_UNCACHED";
    case XIO_MEM_DEVICE_VMEM: return "DEVICE_VMEM";
    case XIO_MEM_DEVICE_HIP: return "DEVICE_HIP";
  }
  return "NONE";
}

namespace xio::memory {

bool on_host(xio_mem_kind_t kind) { return kind >= XIO_MEM_HOST_MAPPED && kind <= XIO_MEM_HOST_DEFAULT; }

bool is_kind(xio_mem_kind_t kind) {
  return on_host(kind) || (kind >= XIO_MEM_DEVICE_FINE_GRAINED && kind <= XIO_MEM_DEVICE_HIP);
}

void check_kind(xio_mem_kind_t kind, const char* function) {
  if (!is_kind(kind))
    fail(XIO_ERR_ARG, "{}: {} is no kind of memory; use one of xio_mem_kind_t", function, static_cast<int>(kind));
  if (const std::string why = gpu::lacks(kind); !why.empty())
    fail(XIO_ERR_UNSUPPORTED, "{}: {} on the {} platform: {}", function, xio_mem_kind_name(kind), gpu::name(), why);
}

}  // namespace xio::memory
