// SPDX-License-Identifier: MIT
// The calls of /dev/kfd by which a process gets memory and a queue of a copy engine, and those of a DRM file by which a
// GPU sees a dma-buf. Layouts, numbers and rules: linux include/uapi/linux/kfd_ioctl.h and amdkfd/kfd_chardev.c
// of 7.3.4. An own copy: headers of distributions are older than the kernels that run. A kernel that knows a shorter
// struct reads and writes no more than that.
#pragma once
#include <linux/ioctl.h>

#include <cstdint>

namespace xio::kfd {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

struct version {
  u32 major, minor;
};
constexpr u32 k_minor_dmabuf = 12;     // EXPORT_DMABUF
constexpr u32 k_minor_by_engine = 17;  // SDMA_BY_ENG_ID

enum queue_type : u32 { queue_sdma = 1, queue_sdma_xgmi = 3, queue_sdma_by_engine = 4 };
struct create_queue {
  u64 ring, write_pointer, read_pointer, doorbell_offset;
  u32 ring_bytes, gpu_id, type, percentage, priority, queue_id;
  u64 eop, eop_bytes, save_area;
  u32 save_bytes, control_stack_bytes, engine, metadata_bytes;
};
static_assert(sizeof(create_queue) == 96);
struct destroy_queue {
  u32 queue_id, pad;
};

enum memory_flag : u32 {
  in_vram = 1u << 0,
  in_gtt = 1u << 1,
  doorbells = 1u << 3,
  uncached = 1u << 25,
  coherent = 1u << 26,
  host_access = 1u << 29,
  executable = 1u << 30,
  writable = 1u << 31,
};
struct alloc_memory {
  u64 va, bytes, handle, mmap_offset;
  u32 gpu_id, flags;
};
static_assert(sizeof(alloc_memory) == 40);
struct free_memory {
  u64 handle;
};
struct map_memory {  // and unmap
  u64 handle, gpu_ids;
  u32 count, done;
};
static_assert(sizeof(map_memory) == 24);
struct export_dmabuf {
  u64 handle;
  u32 flags, fd;
};
static_assert(sizeof(export_dmabuf) == 16);

struct acquire_vm {
  u32 drm_fd, gpu_id;
};
struct import_dmabuf {
  u64 va, handle;
  u32 gpu_id, fd;
};

constexpr unsigned long k_get_version = _IOR('K', 0x01, version);
constexpr unsigned long k_create_queue = _IOWR('K', 0x02, create_queue);
constexpr unsigned long k_destroy_queue = _IOWR('K', 0x03, destroy_queue);
constexpr unsigned long k_acquire_vm = _IOW('K', 0x15, acquire_vm);
constexpr unsigned long k_alloc_memory = _IOWR('K', 0x16, alloc_memory);
constexpr unsigned long k_free_memory = _IOW('K', 0x17, free_memory);
constexpr unsigned long k_map_memory = _IOWR('K', 0x18, map_memory);
constexpr unsigned long k_unmap_memory = _IOWR('K', 0x19, map_memory);
constexpr unsigned long k_import_dmabuf = _IOWR('K', 0x1d, import_dmabuf);
constexpr unsigned long k_export_dmabuf = _IOWR('K', 0x24, export_dmabuf);

// linux include/uapi/drm/drm.h and amdgpu_drm.h. A handle has 32 bits, and 32 that are 0 behind it.
struct prime_import {
  u32 handle, flags;
  std::int32_t file;
};
struct gem_va {
  u64 handle;
  u32 operation, flags;  // 1 maps, 2 unmaps
  u64 va, offset, bytes;
};
constexpr u32 k_gem_registers = 1u << 1 | 1u << 2 | 4u << 5;  // READABLE, WRITEABLE, MTYPE_UC
constexpr unsigned long k_gem_close = _IOW('d', 0x09, free_memory);
constexpr unsigned long k_prime_import = _IOWR('d', 0x2e, prime_import);
constexpr unsigned long k_gem_va = _IOW('d', 0x48, gem_va);

// A process has this many bytes of doorbells on each GPU, in whole pages: 1,024 of 8 bytes.
constexpr u64 k_doorbell_bytes = 8192;

}  // namespace xio::kfd
