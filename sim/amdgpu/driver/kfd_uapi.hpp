// SPDX-License-Identifier: MIT
// What libhsakmt and the kernel's compute driver say to each other by ioctl. Layouts and numbers: linux
// include/uapi/linux/kfd_ioctl.h, up to minor version 23. The two calls for IPC are in AMD's own kernel alone:
// libhsakmt include/linux/kfd_ioctl.h. An own copy, as the header of a distribution is older than what a newer ROCr
// calls.
#pragma once
#include <cstdint>

namespace amdgpu::uapi {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;

// The low byte of an ioctl's number; the next one is 'K'.
enum call : u32 {
  get_version = 0x01,
  create_queue = 0x02,
  destroy_queue = 0x03,
  set_memory_policy = 0x04,
  get_clock_counters = 0x05,
  get_process_apertures = 0x06,
  update_queue = 0x07,
  create_event = 0x08,
  destroy_event = 0x09,
  set_event = 0x0a,
  reset_event = 0x0b,
  wait_events = 0x0c,
  dbg_register = 0x0d,
  dbg_unregister = 0x0e,
  set_scratch_backing_va = 0x11,
  get_tile_config = 0x12,
  set_trap_handler = 0x13,
  get_process_apertures_new = 0x14,
  acquire_vm = 0x15,
  alloc_memory = 0x16,
  free_memory = 0x17,
  map_memory = 0x18,
  unmap_memory = 0x19,
  set_cu_mask = 0x1a,
  get_dmabuf_info = 0x1c,
  import_dmabuf = 0x1d,
  alloc_queue_gws = 0x1e,
  svm = 0x20,
  set_xnack_mode = 0x21,
  available_memory = 0x23,
  export_dmabuf = 0x24,
  runtime_enable = 0x25,
  ipc_import = 0x80,
  ipc_export = 0x81,
};
constexpr u32 k_ioctl_type = 'K';
constexpr u32 k_major = 1;  // minor: settings
constexpr u32 k_minor_dmabuf = 12, k_minor_by_engine = 17;

struct version_args {
  u32 major, minor;
};

enum queue_type : u32 { compute = 0, sdma = 1, compute_aql = 2, sdma_xgmi = 3, sdma_by_engine = 4 };
constexpr int k_not_supported = 524;  // ENOTSUPP, which no header for programs has
constexpr u32 k_min_ring_bytes = 1024;
struct create_queue_args {
  u64 ring_base, write_pointer, read_pointer, doorbell_offset;
  u32 ring_bytes, gpu_id, type, percentage, priority, queue_id;
  u64 eop_address, eop_bytes, save_address;
  u32 save_bytes, control_stack_bytes;
  u32 engine, metadata_bytes;  // from minor 17 on
};
struct destroy_queue_args {
  u32 queue_id, pad;
};
struct update_queue_args {
  u64 ring_base;
  u32 queue_id, ring_bytes, percentage, priority;
};
struct set_cu_mask_args {
  u32 queue_id, bits;
  u64 mask;
};
struct alloc_queue_gws_args {
  u32 queue_id, count, first, pad;
};

struct memory_policy_args {
  u64 alternate_base, alternate_bytes;
  u32 gpu_id, default_policy, alternate_policy, pad;
};
struct clock_counters_args {
  u64 gpu_clock, cpu_clock, system_clock, system_frequency;
  u32 gpu_id, pad;
};

struct apertures {
  u64 lds_base, lds_limit, scratch_base, scratch_limit, gpuvm_base, gpuvm_limit;
  u32 gpu_id, pad;
};
struct apertures_new_args {
  u64 apertures_at;
  u32 nodes, pad;
};

enum event_type : u32 { event_signal = 0, event_hw_exception = 3, event_debug = 5, event_memory = 8 };
constexpr u32 k_event_types = 9;
constexpr u32 k_signal_events = 4096;
struct create_event_args {
  u64 page_offset;
  u32 trigger_data, type, auto_reset, node_id, event_id, slot_index;
};
struct event_args {  // destroy, set, reset
  u32 event_id, pad;
};
struct memory_exception {
  u32 not_present, read_only, no_execute, imprecise;
  u64 va;
  u32 gpu_id, error_type;
};
struct event_data {
  union {
    memory_exception memory;
    u64 last_event_age;
  };
  u64 extension;
  u32 event_id, pad;
};
enum wait_result : u32 { wait_complete = 0, wait_timeout = 1, wait_fail = 2 };
struct wait_events_args {
  u64 events_at;
  u32 count, all, timeout_ms, result;
};

struct scratch_va_args {
  u64 va;
  u32 gpu_id, pad;
};
struct tile_config_args {
  u64 tiles, macro_tiles;
  u32 tile_count, macro_tile_count, gpu_id, gb_addr_config, banks, ranks;
};
struct trap_handler_args {
  u64 tba, tma;
  u32 gpu_id, pad;
};
struct acquire_vm_args {
  u32 drm_fd, gpu_id;
};

enum memory_flag : u32 {
  in_vram = 1u << 0,
  in_gtt = 1u << 1,
  userptr = 1u << 2,
  doorbell = 1u << 3,
  mmio_remap = 1u << 4,
  extended_coherent = 1u << 24,
  uncached = 1u << 25,
  coherent = 1u << 26,
  aql_queue_memory = 1u << 27,
  no_substitute = 1u << 28,
  host_access = 1u << 29,
  executable = 1u << 30,
  writable = 1u << 31,
};
constexpr u32 k_memory_kinds = in_vram | in_gtt | userptr | doorbell | mmio_remap;
struct alloc_memory_args {
  u64 va, bytes, handle, mmap_offset;
  u32 gpu_id, flags;
};
struct free_memory_args {
  u64 handle;
};
struct map_memory_args {  // and unmap
  u64 handle, gpu_ids_at;
  u32 gpus, done;
};

struct dmabuf_info_args {
  u64 bytes, metadata;
  u32 metadata_bytes, gpu_id, flags, fd;
};
struct import_dmabuf_args {
  u64 va, handle;
  u32 gpu_id, fd;
};
struct export_dmabuf_args {
  u64 handle;
  u32 flags, fd;
};
struct ipc_export_args {
  u64 handle;
  u32 share[4], gpu_id, flags;
};
struct ipc_import_args {
  u64 handle, va, mmap_offset;
  u32 share[4], gpu_id, flags;
};

struct svm_args {  // the attributes follow
  u64 start, bytes;
  u32 op, attributes;
};
struct xnack_args {
  i32 enabled;
};
struct available_memory_args {
  u64 available;
  u32 gpu_id, pad;
};

static_assert(sizeof(version_args) == 8 && sizeof(create_queue_args) == 96 && sizeof(destroy_queue_args) == 8 &&
              sizeof(update_queue_args) == 24 && sizeof(set_cu_mask_args) == 16 && sizeof(alloc_queue_gws_args) == 16 &&
              sizeof(memory_policy_args) == 32 && sizeof(clock_counters_args) == 40 && sizeof(apertures) == 56 &&
              sizeof(apertures_new_args) == 16 && sizeof(create_event_args) == 32 && sizeof(event_args) == 8 &&
              sizeof(event_data) == 48 && sizeof(wait_events_args) == 24 && sizeof(scratch_va_args) == 16 &&
              sizeof(tile_config_args) == 40 && sizeof(trap_handler_args) == 24 && sizeof(acquire_vm_args) == 8 &&
              sizeof(alloc_memory_args) == 40 && sizeof(free_memory_args) == 8 && sizeof(map_memory_args) == 24 &&
              sizeof(dmabuf_info_args) == 32 && sizeof(import_dmabuf_args) == 24 && sizeof(export_dmabuf_args) == 16 &&
              sizeof(ipc_export_args) == 32 && sizeof(ipc_import_args) == 48 && sizeof(svm_args) == 24 &&
              sizeof(xnack_args) == 4 && sizeof(available_memory_args) == 16);

}  // namespace amdgpu::uapi
