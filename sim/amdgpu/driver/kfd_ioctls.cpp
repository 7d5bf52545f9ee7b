// SPDX-License-Identifier: MIT
// The calls of /dev/kfd. Which errno each gives: linux drivers/gpu/drm/amd/amdkfd/kfd_chardev.c.
#include "amdgpu/driver/kfd_ioctls.hpp"

#include <fcntl.h>

#include <cstdio>
#include <cstring>
#include <fstream>

#include "amdgpu/driver/descriptors.hpp"
#include "amdgpu/driver/kfd_uapi.hpp"
#include "amdgpu/driver/process.hpp"
#include "amdgpu/driver/topology.hpp"
#include "amdgpu/queues/clock.hpp"

namespace amdgpu {
namespace {

using namespace uapi;

// Bits 63:32 of the flat apertures of every gfx9: kfd_flat_memory.c, kfd_init_apertures_v9.
constexpr u64 k_lds_base = u64{1} << 48, k_scratch_base = u64{2} << 48, k_aperture_last = 0xffffffffu;

int on(const process& p, u32 gpu_id) { return gpu_of_id(p.chosen, gpu_id); }

int do_version(process& p, version_args& a) {
  a = {k_major, static_cast<u32>(p.chosen.kfd_minor)};
  return 0;
}

// Linux 6.12 and newer (kfd_queue.c): a page with the pointers, mapped as just that, and a ring that is all of a
// mapping. Looked at here for copy engines alone.
bool has_queue_buffers(const process& p, const create_queue_args& a, unsigned gpu) {
  constexpr u64 k_page = 4096;
  const auto is_whole = [&](u64 at, u64 bytes) {
    const mapping* m = p.tables[gpu].find(at);
    return m != nullptr && m->base == at && m->bytes == (bytes + k_page - 1) / k_page * k_page;
  };
  return is_whole(a.write_pointer / k_page * k_page, k_page) && is_whole(a.read_pointer / k_page * k_page, k_page) &&
         is_whole(a.ring_base, a.ring_bytes);
}

int do_create_queue(process& p, create_queue_args& a) {
  const bool by_engine = a.type == sdma_by_engine && p.chosen.kfd_minor >= k_minor_by_engine;
  if (a.percentage > 100 || a.priority > 15) return EINVAL;
  if ((a.ring_bytes & (a.ring_bytes - 1)) != 0) return EINVAL;
  a.ring_bytes = std::max(a.ring_bytes, k_min_ring_bytes);
  if (a.write_pointer == 0 || a.read_pointer == 0 || a.write_pointer % 8 != 0 || a.read_pointer % 8 != 0) return EFAULT;
  if (a.type != compute_aql && a.type != sdma && a.type != sdma_xgmi && !by_engine) return k_not_supported;
  const int gpu = on(p, a.gpu_id);
  if (gpu < 0 || (by_engine && a.engine >= p.chosen.copy_engines)) return EINVAL;
  if (!p.has_vm(static_cast<unsigned>(gpu))) return ESRCH;
  if (a.type != compute_aql && p.chosen.kfd_minor >= k_minor_by_engine &&
      !has_queue_buffers(p, a, static_cast<unsigned>(gpu)))
    return EINVAL;
  queue_request r;
  r.ring = a.ring_base;
  r.ring_bytes = a.ring_bytes;
  r.write_pointer = reinterpret_cast<u64*>(a.write_pointer);
  r.read_pointer = reinterpret_cast<u64*>(a.read_pointer);
  r.gpu_id = a.gpu_id;
  const int failed = p.create_queue({a.type, a.engine}, static_cast<unsigned>(gpu), r, &a.queue_id, &a.doorbell_offset);
  if (failed == 0 && p.chosen.log >= 1)
    std::fprintf(stderr, "software AMD GPU: queue %u on GPU %d: %s, %u bytes\n", a.queue_id, gpu,
                 a.type == compute_aql ? "AQL" : "copies", a.ring_bytes);
  return failed;
}

int do_destroy_queue(process& p, destroy_queue_args& a) { return p.destroy_queue(a.queue_id); }

int do_update_queue(process& p, update_queue_args& a) {
  if (a.percentage > 100 || a.priority > 15) return EINVAL;
  return p.gpus.suspend(a.queue_id, a.percentage == 0);
}

int do_clocks(process& p, clock_counters_args& a) {
  a.gpu_clock = on(p, a.gpu_id) < 0 ? 0 : gpu_clock();  // the host's node has no GPU
  a.cpu_clock = a.system_clock = host_nanoseconds();
  a.system_frequency = 1000000000;
  return 0;
}

int do_apertures(process& p, apertures_new_args& a) {
  auto* out = reinterpret_cast<apertures*>(a.apertures_at);
  const auto gpus = static_cast<u32>(p.chosen.nodes());
  if (a.nodes == 0) {
    a.nodes = gpus;
    return 0;
  }
  if (out == nullptr) return EFAULT;
  a.nodes = std::min(a.nodes, gpus);
  for (u32 gpu = 0; gpu < a.nodes; ++gpu)
    out[gpu] = {k_lds_base, k_lds_base | k_aperture_last, k_scratch_base, k_scratch_base | k_aperture_last,
                0x4000,     (u64{1} << 47) - 1,           gpu_id_of(gpu), 0};
  return 0;
}

int do_tiles(process& p, tile_config_args& a) {
  if (on(p, a.gpu_id) < 0) return EINVAL;
  a.gb_addr_config = 0x2a114042;
  a.tile_count = a.macro_tile_count = 0;
  a.banks = a.ranks = 0;
  return 0;
}

int do_acquire_vm(process& p, acquire_vm_args& a) {
  const int gpu = on(p, a.gpu_id);
  if (gpu < 0 || fcntl(static_cast<int>(a.drm_fd), F_GETFD) < 0) return EINVAL;
  const auto g = static_cast<unsigned>(gpu);
  if (!p.has_vm(g)) keep_device_file(static_cast<int>(a.drm_fd));
  return p.acquire_vm(g, number_of_file(static_cast<int>(a.drm_fd)));
}

// Registers of devices are memfds with the name "registers" here.
bool is_register_page(u64 address) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long long first = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx", &first, &end) == 2 && address >= first && address < end)
      return line.find("/memfd:registers") != std::string::npos;
  }
  return false;
}

int do_allocate(process& p, alloc_memory_args& a) {
  const int gpu = on(p, a.gpu_id);
  if (gpu < 0 || a.bytes == 0) return EINVAL;
  const auto g = static_cast<unsigned>(gpu);
  if ((a.flags & doorbell) != 0 && a.bytes != k_doorbell_bytes) return EINVAL;
  if (!p.has_vm(g)) return ENODEV;
  const int doorbells = (a.flags & doorbell) != 0 ? p.doorbells_of(g) : -1;
  const u64 user = (a.flags & userptr) != 0 ? a.mmap_offset : 0;
  // get_user_pages takes no VM_IO (linux mm/gup.c, check_vma_flags).
  if (user != 0 && p.chosen.register_pages == 0 && is_register_page(user)) return EFAULT;
  const u64 seen_by_gpu = (a.flags & doorbell) != 0 ? p.lane_doorbells_of(g) : user;
  if (const int failed = p.memory.allocate({a.va, a.bytes, a.flags, g, seen_by_gpu}, doorbells, &a.handle); failed != 0)
    return failed;
  if (user == 0) a.mmap_offset = memory_objects::offset_of(a.handle);
  return 0;
}

int do_free(process& p, free_memory_args& a) { return p.memory.free(a.handle); }

template <class Step>
int for_gpus(process& p, map_memory_args& a, Step&& step) {
  const auto* ids = reinterpret_cast<const u32*>(a.gpu_ids_at);
  if (a.gpus == 0 || a.done > a.gpus) return EINVAL;
  if (ids == nullptr) return EFAULT;
  for (; a.done < a.gpus; ++a.done) {
    const int gpu = on(p, ids[a.done]);
    if (gpu < 0) return EINVAL;
    if (const int failed = step(static_cast<unsigned>(gpu)); failed != 0) return failed;
  }
  return 0;
}
int do_map(process& p, map_memory_args& a) {
  return for_gpus(p, a, [&](unsigned gpu) { return p.memory.map(a.handle, gpu); });
}
// Memory of a copy engine's queue stays mapped as long as that.
int do_unmap(process& p, map_memory_args& a) {
  return for_gpus(p, a, [&](unsigned gpu) {
    return p.is_of_queue(p.memory.base(a.handle), gpu) ? EBUSY : p.memory.unmap(a.handle, gpu);
  });
}

int do_dmabuf_info(process& p, dmabuf_info_args& a) {
  const auto kind = kind_of_file(static_cast<int>(a.fd));
  if (!kind || on(p, kind->gpu_id) < 0) return EINVAL;
  a.bytes = bytes_of_file(static_cast<int>(a.fd));
  a.gpu_id = kind->gpu_id;
  a.flags = kind->flags;
  a.metadata_bytes = 0;
  return 0;
}

int do_import(process& p, import_dmabuf_args& a) {
  const int gpu = on(p, a.gpu_id);
  if (gpu < 0) return EINVAL;
  if (!p.has_vm(static_cast<unsigned>(gpu))) return ENODEV;
  unique_fd file(fcntl(static_cast<int>(a.fd), F_DUPFD_CLOEXEC, 200));
  if (!file) return EBADF;
  const bool foreign = is_register_file(file.get());
  if (foreign && p.chosen.imports == "none") return EINVAL;  // no way from the GPU to the device
  // Cached as others' memory is: not on gfx942 (gmc_v9_0_get_coherence_flags).
  const u32 flags = in_gtt | writable | (p.chosen.target == "gfx942" ? uncached : 0u);
  return p.memory.adopt(std::move(file), a.va, static_cast<unsigned>(gpu), &a.handle, foreign ? flags : 0u);
}

int do_export(process& p, export_dmabuf_args& a) {
  const int file = p.memory.file(a.handle);
  if (p.chosen.kfd_minor < k_minor_dmabuf) return ENOTTY;
  if (file < 0) return EINVAL;
  const int fd = fcntl(file, (a.flags & O_CLOEXEC) != 0 ? F_DUPFD_CLOEXEC : F_DUPFD, 3);
  if (fd < 0) return errno;
  a.fd = static_cast<u32>(fd);
  return 0;
}

int do_ipc_export(process& p, ipc_export_args& a) {
  const int file = p.memory.file(a.handle);
  if (on(p, a.gpu_id) < 0 || file < 0) return EINVAL;
  name_for_others(file, a.share);
  return 0;
}

int do_ipc_import(process& p, ipc_import_args& a) {
  const int gpu = on(p, a.gpu_id);
  if (gpu < 0) return EINVAL;
  unique_fd file = open_by_name(a.share);
  if (!file) return EINVAL;
  const u32 flags = kind_of_file(file.get())->flags;
  if (const int failed = p.memory.adopt(std::move(file), a.va, static_cast<unsigned>(gpu), &a.handle); failed != 0)
    return failed;
  a.mmap_offset = memory_objects::offset_of(a.handle);
  // HsaMemFlags of libhsakmt: CoarseGrain 1 << 8, HostAccess 1 << 6 (hsakmttypes.h).
  a.flags = ((flags & coherent) == 0 ? 1u << 8 : 0) | 1u << 6;
  return 0;
}

int do_svm(process&, svm_args&) { return EINVAL; }  // a GPU without retries of page faults has none

int do_xnack(process&, xnack_args& a) {
  if (a.enabled > 0) return EPERM;
  a.enabled = 0;
  return 0;
}

int do_available(process& p, available_memory_args& a) {
  const int gpu = on(p, a.gpu_id);
  if (gpu < 0) return EINVAL;
  a.available = p.memory.available(static_cast<unsigned>(gpu));
  return 0;
}

int do_create_event(process& p, create_event_args& a) { return p.happenings.create(a); }
int do_destroy_event(process& p, event_args& a) { return p.happenings.destroy(a.event_id); }
int do_set_event(process& p, event_args& a) { return p.happenings.mark(a.event_id, true); }
int do_reset_event(process& p, event_args& a) { return p.happenings.mark(a.event_id, false); }
int do_wait_events(process& p, wait_events_args& a) { return p.happenings.wait(a); }

// Known, and nothing to do here: caches are not modelled, and no debugger is.
template <class Args>
int do_nothing_on_gpu(process& p, Args& a) {
  return on(p, a.gpu_id) < 0 ? EINVAL : 0;
}
int do_cu_mask(process& p, set_cu_mask_args& a) {
  return a.bits == 0 || a.bits % 32 != 0 ? EINVAL : p.gpus.knows(a.queue_id) ? 0 : EFAULT;
}
int do_gws(process& p, alloc_queue_gws_args& a) {
  a.first = 0;
  return p.gpus.knows(a.queue_id) ? 0 : EINVAL;
}

struct row {
  u32 number, bytes;
  const char* name;
  int (*act)(process&, void*);
};
template <class Args, int (*Do)(process&, Args&)>
constexpr row known(u32 number, const char* name) {
  return {number, sizeof(Args), name, [](process& p, void* a) { return Do(p, *static_cast<Args*>(a)); }};
}

constexpr row k_calls[] = {
    known<version_args, do_version>(get_version, "GET_VERSION"),
    known<create_queue_args, do_create_queue>(create_queue, "CREATE_QUEUE"),
    known<destroy_queue_args, do_destroy_queue>(destroy_queue, "DESTROY_QUEUE"),
    known<update_queue_args, do_update_queue>(update_queue, "UPDATE_QUEUE"),
    known<memory_policy_args, do_nothing_on_gpu>(set_memory_policy, "SET_MEMORY_POLICY"),
    known<clock_counters_args, do_clocks>(get_clock_counters, "GET_CLOCK_COUNTERS"),
    known<create_event_args, do_create_event>(create_event, "CREATE_EVENT"),
    known<event_args, do_destroy_event>(destroy_event, "DESTROY_EVENT"),
    known<event_args, do_set_event>(set_event, "SET_EVENT"),
    known<event_args, do_reset_event>(reset_event, "RESET_EVENT"),
    known<wait_events_args, do_wait_events>(wait_events, "WAIT_EVENTS"),
    known<scratch_va_args, do_nothing_on_gpu>(set_scratch_backing_va, "SET_SCRATCH_BACKING_VA"),
    known<tile_config_args, do_tiles>(get_tile_config, "GET_TILE_CONFIG"),
    known<trap_handler_args, do_nothing_on_gpu>(set_trap_handler, "SET_TRAP_HANDLER"),
    known<apertures_new_args, do_apertures>(get_process_apertures_new, "GET_PROCESS_APERTURES_NEW"),
    known<acquire_vm_args, do_acquire_vm>(acquire_vm, "ACQUIRE_VM"),
    known<alloc_memory_args, do_allocate>(alloc_memory, "ALLOC_MEMORY_OF_GPU"),
    known<free_memory_args, do_free>(free_memory, "FREE_MEMORY_OF_GPU"),
    known<map_memory_args, do_map>(map_memory, "MAP_MEMORY_TO_GPU"),
    known<map_memory_args, do_unmap>(unmap_memory, "UNMAP_MEMORY_FROM_GPU"),
    known<set_cu_mask_args, do_cu_mask>(set_cu_mask, "SET_CU_MASK"),
    known<dmabuf_info_args, do_dmabuf_info>(get_dmabuf_info, "GET_DMABUF_INFO"),
    known<import_dmabuf_args, do_import>(import_dmabuf, "IMPORT_DMABUF"),
    known<export_dmabuf_args, do_export>(export_dmabuf, "EXPORT_DMABUF"),
    known<alloc_queue_gws_args, do_gws>(alloc_queue_gws, "ALLOC_QUEUE_GWS"),
    known<svm_args, do_svm>(svm, "SVM"),
    known<xnack_args, do_xnack>(set_xnack_mode, "SET_XNACK_MODE"),
    known<available_memory_args, do_available>(available_memory, "AVAILABLE_MEMORY"),
    known<ipc_export_args, do_ipc_export>(ipc_export, "IPC_EXPORT_HANDLE"),
    known<ipc_import_args, do_ipc_import>(ipc_import, "IPC_IMPORT_HANDLE"),
};

}  // namespace

int kfd_ioctl(process& p, std::uint32_t request, void* argument) {
  const u32 number = request & 0xff, type = request >> 8 & 0xff, bytes = request >> 16 & 0x3fff;
  const auto* found =
      std::ranges::find_if(k_calls, [&](const row& r) { return r.number == number && type == k_ioctl_type; });
  if (found == std::end(k_calls)) {
    if (p.chosen.log >= 1) std::fprintf(stderr, "software AMD GPU: ioctl %#x is not known: ENOTTY\n", request);
    return ENOTTY;
  }
  if (argument == nullptr) return EFAULT;
  // As the kernel: what a caller of another version does not give is 0, and what he does not know is not written.
  alignas(8) unsigned char copy[256] = {};
  const u32 shared = std::min(bytes, found->bytes);
  std::memcpy(copy, argument, shared);
  const int failed = found->act(p, copy);
  std::memcpy(argument, copy, shared);
  if (p.chosen.log >= 3 || (failed != 0 && p.chosen.log >= 1))
    std::fprintf(stderr, "software AMD GPU: %s: %s\n", found->name, failed == 0 ? "done" : std::strerror(failed));
  return failed;
}

}  // namespace amdgpu
