// SPDX-License-Identifier: MIT
// memory.hpp on a real GPU, written once in HIP's names. Included by hip.hip and cuda.cu only, behind accelerator.hpp
// and hip_memory.hpp or cuda_memory.hpp.
#pragma once
#include <cctype>

#include "gpu/accelerator.hpp"
#include "gpu/host_pages.hpp"
#include "gpu/memory.hpp"
#include "memory/pages.hpp"

namespace xio::gpu {

namespace {

void warn_of(hipError_t e, const char* what, const block& b) {
  if (e == hipSuccess) return;
  (void)hipGetLastError();
  log::warn("{} {} bytes of {} at {}: {}", what, b.bytes, xio_mem_kind_name(b.kind), b.base, hipGetErrorString(e));
}

// One step of taking virtual memory, named.
void vmem_step(hipError_t e, const char* what, const block& b) {
  if (e == hipSuccess) return;
  (void)hipGetLastError();
  const bool none = e == hipErrorOutOfMemory;
  fail(none ? XIO_ERR_NO_MEMORY : XIO_ERR_UNSUPPORTED, "{} {} bytes of DEVICE_VMEM on device {}: {}; {}", what, b.bytes,
       b.device, hipGetErrorString(e),
       none ? "ask for less" : "this GPU or driver has no virtual memory management, use another kind");
}

bool on_host(xio_mem_kind_t kind) { return kind < XIO_MEM_DEVICE_FINE_GRAINED; }

// Runtimes call sizes that no machine has by several names.
void check_size(const block& b) {
  if (on_host(b.kind)) return check_available(b.bytes, xio_mem_kind_name(b.kind));
  std::size_t free = 0, total = 0;
  check(hw::memory_left(&free, &total), "the size of device {}'s memory", b.device);
  if (b.bytes > total)
    fail(XIO_ERR_NO_MEMORY, "{} bytes of {}: device {} has {}; ask for less", b.bytes, xio_mem_kind_name(b.kind),
         b.device, total);
}

void drop_vmem(const block& b, int steps) noexcept {
  if (steps >= 3) warn_of(hw::vmem_unmap(b), "unmapping", b);
  if (steps >= 2) warn_of(hw::vmem_release(b), "releasing", b);
  if (steps >= 1) warn_of(hw::vmem_forget(b), "giving back the addresses of", b);
}

void take_vmem(block& b, std::size_t alignment) {
  std::size_t granule = 0;
  vmem_step(hw::vmem_granule(&granule, b.device), "asking for the granule of", b);
  const auto whole = memory::align_up(b.bytes, std::max(granule, page_size()));
  if (!whole) fail(XIO_ERR_NO_MEMORY, "{} bytes are more than an address can count; ask for less", b.bytes);
  b.whole = *whole;
  int steps = 0;
  try {
    vmem_step(hw::vmem_reserve(b, std::max(granule, alignment)), "reserving addresses for", b);
    b.base = b.range;
    steps = 1;
    vmem_step(hw::vmem_create(b), "creating", b);
    steps = 2;
    vmem_step(hw::vmem_map(b), "mapping", b);
    steps = 3;
    vmem_step(hw::vmem_access(b), "giving access to", b);
  } catch (...) {
    drop_vmem(b, steps);
    throw;
  }
}

// Kernels name the memory by the host's address, and on AMD registered pages may have another one for the GPU.
void pin_pages(const block& b) {
  check(hw::pin(b.base, b.bytes), "registering {} bytes of host memory with device {}", b.bytes, b.device);
  void* seen = nullptr;
  if (hw::device_address(&seen, b.base) == hipSuccess && seen == b.base) return;
  (void)hipGetLastError();
  warn_of(hw::unpin(b.base), "unregistering", b);
  fail(
      XIO_ERR_UNSUPPORTED,
      "device {} sees registered host memory at other addresses than the host does, so kernels cannot name HOST_PINNED "
      "memory; use HOST_COHERENT or HOST_MAPPED",
      b.device);
}

void take_pages(block& b, std::size_t alignment) {
  b.range = b.base = reserve_pages(b.bytes, alignment, "host memory");
  b.whole = b.bytes;
  try {
    fill_pages(b.base, b.bytes, "host memory");
    if (b.kind == XIO_MEM_HOST_PINNED) pin_pages(b);
  } catch (...) {
    unmap_pages(b.base, b.bytes);
    throw;
  }
}

// The allocators align to 256 at least, but not always to pages.
void take_allocated(block& b, std::size_t alignment) {
  if (b.bytes > SIZE_MAX - alignment)
    fail(XIO_ERR_NO_MEMORY, "{} bytes are more than an address can count; ask for less", b.bytes);
  b.whole = b.bytes + alignment;
  if (on_host(b.kind))
    check(hw::take_host(&b.range, b.whole, b.kind), "{} bytes of {}", b.bytes, xio_mem_kind_name(b.kind));
  else
    check(hw::take_device(&b.range, b.whole, b.kind), "{} bytes of {} on device {}", b.bytes, xio_mem_kind_name(b.kind),
          b.device);
  const auto start = reinterpret_cast<std::uintptr_t>(b.range);
  b.base = reinterpret_cast<void*>(static_cast<std::uintptr_t>(memory::align_up(start, alignment).value_or(start)));
}

}  // namespace

// Whether pages can be pinned is not known before some are, and is the same for all.
std::string lacks(xio_mem_kind_t kind) {
  if (kind != XIO_MEM_HOST_PINNED) return hw::lacks(kind);
  const on_device here;
  block b;
  b.kind = kind;
  b.bytes = page_size();
  b.device = g_device;
  try {
    take_pages(b, page_size());
  } catch (const error& e) {
    return e.status() == XIO_ERR_UNSUPPORTED ? e.what() : "";
  }
  give_back(b);
  return "";
}
bool has_device_memory() { return true; }

block take(xio_mem_kind_t kind, std::size_t bytes, std::size_t alignment) {
  const std::string why = hw::lacks(kind);
  if (!why.empty()) fail(XIO_ERR_UNSUPPORTED, "{}", why);
  const auto whole = memory::align_up(bytes, page_size());
  if (!whole) fail(XIO_ERR_NO_MEMORY, "{} bytes are more than an address can count; ask for less", bytes);
  const on_device here;
  block b;
  b.kind = kind;
  b.bytes = *whole;
  b.device = g_device;
  check_size(b);
  if (kind == XIO_MEM_HOST_PLAIN || kind == XIO_MEM_HOST_PINNED) {
    take_pages(b, alignment);
    return b;
  }
  if (kind == XIO_MEM_DEVICE_VMEM)
    take_vmem(b, alignment);
  else
    take_allocated(b, alignment);
  try {
    if (on_host(kind))
      std::memset(b.base, 0, b.bytes);
    else
      lane_of_thread::mine().zero(b.base, b.bytes);
  } catch (...) {
    give_back(b);
    throw;
  }
  return b;
}

namespace {

void free_block(const block& b) noexcept {
  int before = 0;
  if (hipGetDevice(&before) != hipSuccess || hipSetDevice(b.device) != hipSuccess) (void)hipGetLastError();
  switch (b.kind) {
    case XIO_MEM_HOST_PINNED: warn_of(hw::unpin(b.base), "unregistering", b); [[fallthrough]];
    case XIO_MEM_HOST_PLAIN: unmap_pages(b.range, b.whole); break;
    case XIO_MEM_DEVICE_VMEM: drop_vmem(b, 3); break;
    default: warn_of(on_host(b.kind) ? hipHostFree(b.range) : hw::free_device(b.range), "freeing", b);
  }
  if (before != b.device && hipSetDevice(before) != hipSuccess) (void)hipGetLastError();
}

}  // namespace

void give_back(const block& b) noexcept {
  free_after_kernels([b] { free_block(b); });
}

location locate(const void* address) {
  const on_device here;
  return hw::locate_by_runtime(address);
}

namespace {

// As the runtime names it.
std::string runtime_name(int device) {
  char text[32] = {};
  if (hw::get_bus_id(text, sizeof text, device) != hipSuccess) {
    (void)hipGetLastError();
    return "";
  }
  // CUDA writes capitals; hwloc and the kernel do not.
  std::string id(text);
  for (char& c : id) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return id;
}

}  // namespace

std::string bus_id_of(int device) { return topology::pci_function_of("", runtime_name(device)); }
std::string identity_of(int device) { return hw::identity(device, runtime_name(device)); }

int export_dmabuf(const block* from, void* base, std::size_t bytes, bool pcie, std::uint64_t* offset) {
  const on_device here;
  if (!hw::in_device_memory(base) && (from == nullptr || on_host(from->kind)))
    fail(XIO_ERR_UNSUPPORTED,
         "a dma-buf of the memory at {}: it is host memory, engines reach that without; leave it out", base);
  return hw::export_dmabuf(from, base, bytes, pcie, offset);
}

exported_memory export_memory(void* base, std::size_t bytes) {
  const on_device here;
  exported_memory out;
  if (!hw::in_device_memory(base)) return out;
  try {
    out.fd = hw::export_dmabuf(nullptr, base, bytes, false, &out.offset);
  } catch (const error& e) {
    out.why_not = e.what();
  }
  return out;
}

std::string bus_id() { return bus_id_of(g_device); }
std::string identity() { return identity_of(g_device); }

}  // namespace xio::gpu
