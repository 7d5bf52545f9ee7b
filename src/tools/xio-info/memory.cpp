// SPDX-License-Identifier: MIT
// The symmetric heap, and the kinds of memory that this platform has.
#include "xio/memory.h"
#include "gpu/gpu.hpp"
#include "tools/xio-info/section.hpp"

namespace xio::info {
namespace {

// Adds the kinds of memory that hold what others write while kernels poll, and why; the heap's is XIO_HEAP_KIND's.
void add_choices(section& s, const heap_options& o) {
  const auto add = [&s](const char* name, gpu::purpose what, gpu::place where) {
    const gpu::memory_report r = gpu::report_memory(what, where);
    s.rows.push_back({name, r.kind, r.why});
  };
  add("rings", gpu::purpose::rings, gpu::place::shared);
  add("completions", gpu::purpose::completions, gpu::place::shared);
  add("flags", gpu::purpose::flags, gpu::place::shared);
  add("rings_in_gpu", gpu::purpose::rings, gpu::place::device);
  add("completions_in_gpu", gpu::purpose::completions, gpu::place::device);
  if (o.heap_kind == option::heap_kind::device || gpu::host_reads_device_memory())
    add("heap", gpu::purpose::heap, gpu::place::device);
  else
    s.rows.push_back({"heap", std::string(option::word_of(o.heap_kind)), "XIO_HEAP_KIND says so"});
}

}  // namespace

section memory_section(const heap_options& o, bool gpu_ready) {
  section s{"memory", "Memory: symmetric heap, and kinds (xio_mem_alloc)", {}};
  s.rows.push_back({"heap_bytes", std::uint64_t{o.heap_size}, "of each PE: XIO_HEAP_SIZE"});
  s.rows.push_back(
      {"mode", o.memory_mode ? std::to_string(*o.memory_mode) : "auto", "what lies in GPU memory: XIO_MEMORY_MODE"});
  if (gpu_ready) add_choices(s, o);
  for (const xio_mem_kind_t kind : {XIO_MEM_HOST_MAPPED, XIO_MEM_HOST_COHERENT, XIO_MEM_HOST_PINNED, XIO_MEM_HOST_PLAIN,
                                    XIO_MEM_HOST_DEFAULT, XIO_MEM_DEVICE_FINE_GRAINED, XIO_MEM_DEVICE_COARSE_GRAINED,
                                    XIO_MEM_DEVICE_UNCACHED, XIO_MEM_DEVICE_VMEM, XIO_MEM_DEVICE_HIP}) {
    const bool there = gpu_ready && xio_mem_supports(kind) == XIO_OK;
    s.rows.push_back({xio_mem_kind_name(kind), there, there ? "" : gpu_ready ? xio_last_error() : "no GPU"});
  }
  return s;
}

}  // namespace xio::info
