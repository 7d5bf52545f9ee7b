// SPDX-License-Identifier: MIT
// Memory by kind, in HIP's calls. Included by hip.hip only. Calls that HIP 5.2 lacks are looked up in the
// libraries of the version that runs.
#pragma once
#include <dlfcn.h>
#include <hip/hip_ext.h>
#include <hip/hip_runtime.h>

#include "base/error.hpp"
#include "gpu/memory.hpp"
#include "gpu/memory_choice.hpp"

namespace xio::gpu::hw {

namespace {

std::string lacks(xio_mem_kind_t kind) {
  if (kind != XIO_MEM_DEVICE_UNCACHED) return "";
  const hip_version v = runtime_version();
  if (v.has_uncached_device_memory()) return "";
  return fmt::format("HIP {}.{} has no uncached memory; install ROCm 5.7 or newer", v.major_part(), v.minor_part());
}

hipError_t take_host(void** out, std::size_t bytes, xio_mem_kind_t kind) {
  unsigned flags = hipHostMallocDefault;
  if (kind == XIO_MEM_HOST_MAPPED) flags = hipHostMallocPortable | hipHostMallocMapped;
  if (kind == XIO_MEM_HOST_COHERENT) flags = hipHostMallocPortable | hipHostMallocMapped | hipHostMallocCoherent;
  return hipHostMalloc(out, bytes, flags);
}

hipError_t take_device(void** out, std::size_t bytes, xio_mem_kind_t kind) {
  if (kind == XIO_MEM_DEVICE_UNCACHED) return hipExtMallocWithFlags(out, bytes, device_flags(caching::uncached));
  if (kind == XIO_MEM_DEVICE_FINE_GRAINED) return hipExtMallocWithFlags(out, bytes, hipDeviceMallocFinegrained);
  if (kind == XIO_MEM_DEVICE_COARSE_GRAINED) return hipExtMallocWithFlags(out, bytes, hipDeviceMallocDefault);
  return hipMalloc(out, bytes);
}

hipError_t pin(void* p, std::size_t bytes) {
  return hipHostRegister(p, bytes, hipHostRegisterPortable | hipHostRegisterMapped);
}
hipError_t unpin(void* p) { return hipHostUnregister(p); }

location locate_shared(const void* p);

location locate_by_runtime(const void* p) {
  location l;
  hipPointerAttribute_t a{};
  if (hipPointerGetAttributes(&a, p) != hipSuccess) {
    (void)hipGetLastError();
    return locate_shared(p);
  }
#if HIP_VERSION_MAJOR >= 6
  const auto type = a.type;
  if (type == hipMemoryTypeUnregistered) return l;
  const bool managed = a.isManaged != 0 || type == hipMemoryTypeManaged;
#else
  const auto type = a.memoryType;
  const bool managed = a.isManaged != 0;
#endif
  l.where = managed ? residence::both : type == hipMemoryTypeDevice ? residence::device : residence::host;
  l.registered = l.where == residence::host;
  l.device = a.device;
  hipDeviceptr_t base = nullptr;
  std::size_t bytes = 0;
  if (l.where == residence::device && hipMemGetAddressRange(&base, &bytes, const_cast<void*>(p)) == hipSuccess) {
    l.base = base;
    l.bytes = bytes;
  } else {
    (void)hipGetLastError();
  }
  return l;
}

// --- Virtual memory ----------------------------------------------------------------------------------

hipMemAllocationProp vmem_wish(int device) {
  hipMemAllocationProp p{};
  p.type = hipMemAllocationTypePinned;
  p.location.type = hipMemLocationTypeDevice;
  p.location.id = device;
  p.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
  return p;
}

hipMemGenericAllocationHandle_t handle_of(const block& b) {
  return reinterpret_cast<hipMemGenericAllocationHandle_t>(static_cast<std::uintptr_t>(b.handle));
}

hipError_t vmem_granule(std::size_t* out, int device) {
  const auto wish = vmem_wish(device);
  return hipMemGetAllocationGranularity(out, &wish, hipMemAllocationGranularityRecommended);
}
hipError_t vmem_reserve(block& b, std::size_t alignment) {
  return hipMemAddressReserve(&b.range, b.whole, alignment, nullptr, 0);
}
hipError_t vmem_create(block& b) {
  const auto wish = vmem_wish(b.device);
  hipMemGenericAllocationHandle_t handle = nullptr;
  const hipError_t e = hipMemCreate(&handle, b.whole, &wish, 0);
  b.handle = reinterpret_cast<std::uintptr_t>(handle);
  return e;
}
hipError_t vmem_map(block& b) { return hipMemMap(b.range, b.whole, 0, handle_of(b), 0); }
hipError_t vmem_access(block& b) {
  hipMemAccessDesc d{};
  d.location.type = hipMemLocationTypeDevice;
  d.location.id = b.device;
  d.flags = hipMemAccessFlagsProtReadWrite;
  return hipMemSetAccess(b.range, b.whole, &d, 1);
}
hipError_t vmem_unmap(const block& b) { return hipMemUnmap(b.range, b.whole); }
hipError_t vmem_release(const block& b) { return hipMemRelease(handle_of(b)); }
hipError_t vmem_forget(const block& b) { return hipMemAddressFree(b.range, b.whole); }

// --- dma-buf -----------------------------------------------------------------------------------------

// The HSA runtime under HIP (hsa_ext_amd.h): v1 since ROCm 5.6, v2 with flags since HSA_AMD_INTERFACE 1.9, whose 1 is
// HSA_AMD_DMABUF_MAPPING_TYPE_PCIE. Both export the whole allocation and return where base lies in it.
using export_v1 = int (*)(const void*, std::size_t, int*, std::uint64_t*);
using export_v2 = int (*)(const void*, std::size_t, int*, std::uint64_t*, std::uint64_t);
// hipMemGetHandleForAddressRange (ROCm 7.0): type 1 is hipMemRangeHandleTypeDmaBufFd, flag 1
// hipMemRangeFlagDmaBufMappingTypePcie. It says no offset, so it is given whole allocations only.
using export_range = int (*)(void*, void*, std::size_t, int, unsigned long long);

template <class Call>
Call find_call(const char* name) {
  return reinterpret_cast<Call>(dlsym(RTLD_DEFAULT, name));
}

// Memory that a program created and mapped itself (ROCm 5.7 and newer): the export above does not know it. A handle is
// looked up by the first address of its mapping alone, and is retained until it is released (ROCR runtime.cpp,
// VMemoryRetainAllocHandle). The export asks for no handle type, as hipMemExportToShareableHandle does.
struct vmem_handle {
  std::uint64_t handle;
};
using vmem_retain = int (*)(vmem_handle*, void*);
using vmem_export = int (*)(int*, vmem_handle, std::uint64_t);
using vmem_drop = int (*)(vmem_handle);

int export_mapping(void* start) {
  static const auto retain = find_call<vmem_retain>("hsa_amd_vmem_retain_alloc_handle");
  static const auto share = find_call<vmem_export>("hsa_amd_vmem_export_shareable_handle");
  static const auto drop = find_call<vmem_drop>("hsa_amd_vmem_handle_release");
  vmem_handle h{};
  if (retain == nullptr || share == nullptr || drop == nullptr || retain(&h, start) != 0) return -1;
  int fd = -1;
  if (share(&fd, h, 0) != 0) fd = -1;
  (void)drop(h);
  return fd;
}

// Allocators that grow map piece behind piece, and a dma-buf ends with its piece.
void check_one_piece(const location& piece, void* base, std::size_t bytes) {
  const auto before = static_cast<std::size_t>(static_cast<char*>(base) - static_cast<char*>(piece.base));
  if (before <= piece.bytes && bytes <= piece.bytes - before) return;
  fail(XIO_ERR_UNSUPPORTED,
       "a dma-buf of {} bytes at {}: they go past the {} bytes at {} that were mapped as one piece, and a dma-buf is "
       "of one; have the allocator take whole blocks (PyTorch: PYTORCH_HIP_ALLOC_CONF=expandable_segments:False) or "
       "use xio_mem_alloc",
       bytes, base, piece.bytes, piece.base);
}

int export_allocation(const block* from, void* base, std::size_t needed, bool pcie, std::uint64_t* offset) {
  static const auto by_range = find_call<export_range>("hipMemGetHandleForAddressRange");
  void* start = from != nullptr ? from->range : nullptr;
  std::size_t bytes = from != nullptr ? from->whole : 0;
  if (start == nullptr) {
    const location l = locate_by_runtime(base);
    if (l.base != nullptr) check_one_piece(l, base, needed);
    start = l.base;
    bytes = l.bytes;
  }
  int fd = -1;
  if (start == nullptr) return -1;
  if (by_range == nullptr || by_range(&fd, start, bytes, 1, pcie ? 1 : 0) != hipSuccess) fd = -1;
  if (fd < 0 && from == nullptr && !pcie) fd = export_mapping(start);
  if (fd < 0 && from != nullptr && from->kind == XIO_MEM_DEVICE_VMEM && !pcie &&
      hipMemExportToShareableHandle(&fd, handle_of(*from), hipMemHandleTypePosixFileDescriptor, 0) != hipSuccess)
    fd = -1;
  (void)hipGetLastError();
  *offset = static_cast<std::uint64_t>(static_cast<char*>(base) - static_cast<char*>(start));
  return fd;
}

int export_dmabuf(const block* from, void* base, std::size_t bytes, bool pcie, std::uint64_t* offset) {
  static const auto v1 = find_call<export_v1>("hsa_amd_portable_export_dmabuf");
  static const auto v2 = find_call<export_v2>("hsa_amd_portable_export_dmabuf_v2");
  int fd = -1, status = 0;
  if (from == nullptr || from->kind != XIO_MEM_DEVICE_VMEM) {
    if (v2 != nullptr)
      status = v2(base, bytes, &fd, offset, pcie ? 1 : 0);
    else if (v1 != nullptr && !pcie)
      status = v1(base, bytes, &fd, offset);
    if (status == 0 && fd >= 0) return fd;
  }
  if ((fd = export_allocation(from, base, bytes, pcie, offset)) >= 0) return fd;
  if (v1 == nullptr && v2 == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "a dma-buf of the memory at {}: the HSA runtime has no call for it; install ROCm 5.6 or newer", base);
  if (pcie && v2 == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "a dma-buf of the memory at {} through PCIe: the HSA runtime has no flag for it; install a newer ROCm or "
         "leave the flag out",
         base);
  fail(XIO_ERR_UNSUPPORTED,
       "a dma-buf of {} bytes at {}{}: the driver refuses (HSA status {:#x}); it needs CONFIG_HSA_AMD_P2P, "
       "CONFIG_DMABUF_MOVE_NOTIFY and a BAR as large as the GPU's memory; memory of a pool or of another allocator may "
       "have none, where xio_mem_alloc or hipMalloc have (PyTorch: PYTORCH_HIP_ALLOC_CONF=expandable_segments:False)",
       bytes, base, pcie ? " through PCIe" : "", static_cast<unsigned>(status));
}

}  // namespace

}  // namespace xio::gpu::hw
