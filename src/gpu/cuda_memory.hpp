// SPDX-License-Identifier: MIT
// Memory by kind, in CUDA's calls. Included by cuda.cu only. The driver's are looked up through the runtime, so that
// libcuda is not linked; cuda.h gives their types.
#pragma once
#include <cuda.h>
#include <cuda_runtime.h>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "memory/pages.hpp"

namespace xio::gpu::hw {

namespace {

template <class Call>
Call driver_call(const char* name, unsigned version) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult how{};
  const cudaError_t e = cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &how);
  if (e != cudaSuccess) (void)cudaGetLastError();
  return e == cudaSuccess && how == cudaDriverEntryPointSuccess ? reinterpret_cast<Call>(found) : nullptr;
}

// cuda.h renames some to their newest version; the lookup wants the plain name and the CUDA that the version came with.
#define XIO_DRIVER_CALL(name, version) driver_call<decltype(&name)>(#name, version)

// By contexts: the runtime's own question ends a capture of that stream.
bool stream_is_elsewhere(void* stream, int) {
  static const auto context_of = driver_call<CUresult (*)(CUstream, CUcontext*)>("cuStreamGetCtx", 9020);
  static const auto current = driver_call<CUresult (*)(CUcontext*)>("cuCtxGetCurrent", 4000);
  static const CUcontext ours = [] {
    CUcontext found = nullptr;
    return current != nullptr && current(&found) == CUDA_SUCCESS ? found : nullptr;
  }();
  CUcontext its = ours;
  if (ours == nullptr || context_of == nullptr) return false;
  return context_of(static_cast<CUstream>(stream), &its) == CUDA_SUCCESS && its != ours;
}

cudaError_t as_runtime_error(CUresult r) {
  switch (r) {
    case CUDA_SUCCESS: return cudaSuccess;
    case CUDA_ERROR_OUT_OF_MEMORY: return cudaErrorMemoryAllocation;
    case CUDA_ERROR_NOT_SUPPORTED: return cudaErrorNotSupported;
    default: return cudaErrorInvalidValue;
  }
}

// CUDA's device memory is coherent at system scope while kernels run and always goes through the L2 cache, by which
// devices on the bus write as well. So fine-grained is what it is, coarse-grained asks for less, and uncached is not.
std::string lacks(xio_mem_kind_t kind) {
  if (kind != XIO_MEM_DEVICE_UNCACHED) return "";
  return "NVIDIA GPUs have no uncached memory, all of it goes through their L2 cache, which sees what other devices "
         "write; use DEVICE_FINE_GRAINED";
}

cudaError_t take_host(void** out, std::size_t bytes, xio_mem_kind_t kind) {
  return cudaHostAlloc(
      out, bytes, kind == XIO_MEM_HOST_DEFAULT ? cudaHostAllocDefault : cudaHostAllocPortable | cudaHostAllocMapped);
}
cudaError_t take_device(void** out, std::size_t bytes, xio_mem_kind_t) { return cudaMalloc(out, bytes); }

cudaError_t pin(void* p, std::size_t bytes) {
  return cudaHostRegister(p, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped);
}
cudaError_t unpin(void* p) { return cudaHostUnregister(p); }

location locate_by_runtime(const void* p) {
  static const auto range_of =
      driver_call<CUresult (*)(CUdeviceptr*, std::size_t*, CUdeviceptr)>("cuMemGetAddressRange", 3020);
  location l;
  cudaPointerAttributes a{};
  if (cudaPointerGetAttributes(&a, p) != cudaSuccess) {
    (void)cudaGetLastError();
    return l;
  }
  if (a.type == cudaMemoryTypeUnregistered) return l;
  l.where = a.type == cudaMemoryTypeManaged  ? residence::both
            : a.type == cudaMemoryTypeDevice ? residence::device
                                             : residence::host;
  l.registered = l.where == residence::host;
  l.device = a.device;
  CUdeviceptr base = 0;
  std::size_t bytes = 0;
  if (l.where == residence::device && range_of != nullptr &&
      range_of(&base, &bytes, reinterpret_cast<CUdeviceptr>(p)) == CUDA_SUCCESS) {
    l.base = reinterpret_cast<void*>(base);
    l.bytes = bytes;
  }
  return l;
}

// --- Virtual memory ----------------------------------------------------------------------------------

struct vmem_calls {
  decltype(&cuMemGetAllocationGranularity) granularity = XIO_DRIVER_CALL(cuMemGetAllocationGranularity, 10020);
  decltype(&cuMemAddressReserve) reserve = XIO_DRIVER_CALL(cuMemAddressReserve, 10020);
  decltype(&cuMemCreate) create = XIO_DRIVER_CALL(cuMemCreate, 10020);
  decltype(&cuMemMap) map = XIO_DRIVER_CALL(cuMemMap, 10020);
  decltype(&cuMemSetAccess) set_access = XIO_DRIVER_CALL(cuMemSetAccess, 10020);
  decltype(&cuMemUnmap) unmap = XIO_DRIVER_CALL(cuMemUnmap, 10020);
  decltype(&cuMemRelease) release = XIO_DRIVER_CALL(cuMemRelease, 10020);
  decltype(&cuMemAddressFree) forget = XIO_DRIVER_CALL(cuMemAddressFree, 10020);
  decltype(&cuDeviceGetAttribute) attribute = XIO_DRIVER_CALL(cuDeviceGetAttribute, 2000);
  bool complete() const {
    return granularity != nullptr && reserve != nullptr && create != nullptr && map != nullptr &&
           set_access != nullptr && unmap != nullptr && release != nullptr && forget != nullptr && attribute != nullptr;
  }
};

const vmem_calls& driver() {
  static const vmem_calls calls;
  return calls;
}

CUmemAllocationProp vmem_wish(int device) {
  CUmemAllocationProp p{};
  p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  p.location.id = device;
  p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  // NICs may reach it where the GPU lets them. The numbers of devices are the same in the runtime and the driver.
  int reachable = 0;
  if (driver().attribute(&reachable, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device) ==
      CUDA_SUCCESS)
    p.allocFlags.gpuDirectRDMACapable = reachable != 0;
  return p;
}

CUdeviceptr address_of(const block& b) { return reinterpret_cast<CUdeviceptr>(b.range); }

cudaError_t vmem_granule(std::size_t* out, int device) {
  if (!driver().complete()) return cudaErrorNotSupported;
  const auto wish = vmem_wish(device);
  return as_runtime_error(driver().granularity(out, &wish, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
}
cudaError_t vmem_reserve(block& b, std::size_t alignment) {
  CUdeviceptr at = 0;
  const CUresult r = driver().reserve(&at, b.whole, alignment, 0, 0);
  b.range = reinterpret_cast<void*>(at);
  return as_runtime_error(r);
}
cudaError_t vmem_create(block& b) {
  const auto wish = vmem_wish(b.device);
  CUmemGenericAllocationHandle handle = 0;
  const CUresult r = driver().create(&handle, b.whole, &wish, 0);
  b.handle = handle;
  return as_runtime_error(r);
}
cudaError_t vmem_map(block& b) { return as_runtime_error(driver().map(address_of(b), b.whole, 0, b.handle, 0)); }
cudaError_t vmem_access(block& b) {
  CUmemAccessDesc d{};
  d.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  d.location.id = b.device;
  d.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  return as_runtime_error(driver().set_access(address_of(b), b.whole, &d, 1));
}
cudaError_t vmem_unmap(const block& b) { return as_runtime_error(driver().unmap(address_of(b), b.whole)); }
cudaError_t vmem_release(const block& b) { return as_runtime_error(driver().release(b.handle)); }
cudaError_t vmem_forget(const block& b) { return as_runtime_error(driver().forget(address_of(b), b.whole)); }

// --- dma-buf -----------------------------------------------------------------------------------------

// cuMemGetHandleForAddressRange (CUDA 11.7) takes whole pages of one allocation. The PCIe flag came with 12.8; its
// value is CU_MEM_RANGE_FLAG_DMA_BUF_MAPPING_TYPE_PCIE (cuda.h), older drivers refuse it.
int export_dmabuf(const block*, void* base, std::size_t bytes, bool pcie, std::uint64_t* offset) {
  using call = CUresult (*)(void*, CUdeviceptr, std::size_t, CUmemRangeHandleType, unsigned long long);
  static const auto exporter = driver_call<call>("cuMemGetHandleForAddressRange", 11070);
  if (exporter == nullptr)
    fail(XIO_ERR_UNSUPPORTED,
         "a dma-buf of the memory at {}: the NVIDIA driver has no call for it; install one of CUDA 11.7 or newer",
         base);
  const auto span = memory::pages_of(reinterpret_cast<std::uintptr_t>(base), bytes, page_size());
  if (!span) fail(XIO_ERR_ARG, "a dma-buf of {} bytes at {} leaves the address space; check the length", bytes, base);
  int fd = -1;
  const CUresult r = exporter(&fd, span->first, span->bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, pcie ? 1 : 0);
  if (r != CUDA_SUCCESS || fd < 0)
    fail(XIO_ERR_UNSUPPORTED,
         "a dma-buf of {} bytes at {}{}: the NVIDIA driver refuses (CUresult {}); it needs the open kernel modules{}",
         bytes, base, pcie ? " through PCIe" : "", static_cast<int>(r), pcie ? " and a driver of CUDA 12.8" : "");
  *offset = span->offset;
  return fd;
}

}  // namespace

}  // namespace xio::gpu::hw
