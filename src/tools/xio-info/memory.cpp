// SPDX-License-Identifier: MIT
// The symmetric heap, and the kinds of memory that this platform has.
#include "xio/memory.h"
#include "tools/xio-info/section.hpp"

namespace xio::info {

section memory_section(const options& o, bool gpu_ready) {
  section s{"memory", "Memory: symmetric heap, and kinds (xio_mem_alloc)", {}};
  s.rows.push_back({"heap_bytes", std::uint64_t{o.heap_size}, "of each PE: XIO_HEAP_SIZE"});
  s.rows.push_back({"mode", o.memory_mode, "what lies in GPU memory: XIO_MEMORY_MODE"});
  for (const xio_mem_kind_t kind : {XIO_MEM_HOST_MAPPED, XIO_MEM_HOST_COHERENT, XIO_MEM_HOST_PINNED, XIO_MEM_HOST_PLAIN,
                                    XIO_MEM_HOST_DEFAULT, XIO_MEM_DEVICE_FINE_GRAINED, XIO_MEM_DEVICE_COARSE_GRAINED,
                                    XIO_MEM_DEVICE_UNCACHED, XIO_MEM_DEVICE_VMEM, XIO_MEM_DEVICE_HIP}) {
    const bool there = gpu_ready && xio_mem_supports(kind) == XIO_OK;
    s.rows.push_back({xio_mem_kind_name(kind), there, there ? "" : gpu_ready ? xio_last_error() : "no GPU"});
  }
  return s;
}

}  // namespace xio::info
