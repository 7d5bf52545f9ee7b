// SPDX-License-Identifier: MIT
#include "amdgpu/driver/memory_objects.hpp"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "amdgpu/driver/descriptors.hpp"
#include "amdgpu/driver/kfd_uapi.hpp"
#include "amdgpu/driver/topology.hpp"

namespace amdgpu {
namespace {

constexpr std::uint64_t k_page = 4096;
constexpr std::uint64_t k_user_end = std::uint64_t{1} << 47;

bool is_range(std::uint64_t va, std::uint64_t bytes) {
  return bytes != 0 && va % k_page == 0 && bytes % k_page == 0 && va < k_user_end && bytes <= k_user_end - va;
}

// Reports stores to another device's registers, and by an odd address a mapping's begin and end, to its own library.
struct foreign_device final : register_file {
  explicit foreign_device(std::uint64_t file) : of(file) { written(1, 1); }
  ~foreign_device() override { written(1, 0); }
  void written(std::uint64_t address, std::uint64_t value) override {
    static const auto pass = reinterpret_cast<int (*)(std::uint64_t, std::uint64_t, std::uint64_t)>(
        dlsym(RTLD_DEFAULT, "xio_registers_written"));
    if (pass == nullptr || pass(of, address % k_page, value) == 0) return;
    std::fprintf(stderr, "software AMD GPU: registers that their device has taken back are still mapped\n");
    std::abort();
  }
  const std::uint64_t of;
};

// A library that hooks mmap may keep the call from us: then the host has written to the descriptor's own file, at the
// offset of the object.
void take_over(int from, off_t first, std::uint64_t bytes, int to) {
  if (from < 0) return;
  const off_t end = first + static_cast<off_t>(bytes);
  std::array<char, 65536> part;
  for (off_t at = first; (at = lseek(from, at, SEEK_DATA)) >= 0 && at < end;) {
    const auto most = static_cast<std::size_t>(std::min<off_t>(end - at, part.size()));
    const ssize_t got = pread(from, part.data(), most, at);
    if (got <= 0 || pwrite(to, part.data(), static_cast<std::size_t>(got), at - first) != got) return;
    at += got;
  }
}

}  // namespace

memory_objects::memory_objects(const settings& s, gate& g, std::vector<page_table>& tables, listener l)
    : settings_(s), gate_(g), tables_(tables), listener_(std::move(l)), used_(s.nodes()) {}

std::uint64_t memory_objects::keep(object&& o) {
  const std::uint64_t handle = next_++;
  objects_.emplace(handle, std::move(o));
  return handle;
}

int memory_objects::allocate(const request& r, int doorbells, std::uint64_t* handle) {
  const std::uint32_t kind = r.flags & uapi::k_memory_kinds;
  // libhsakmt may ask for less than a page of what it will map by pages.
  request rounded = r;
  rounded.bytes = (r.bytes + k_page - 1) & ~(k_page - 1);
  if (r.bytes == 0 || rounded.bytes < r.bytes || (kind & (kind - 1)) != 0 || kind == 0) return EINVAL;
  if (rounded.bytes > offset_of(1)) return ENOMEM;
  if (r.va != 0 && !is_range(r.va, rounded.bytes)) return EINVAL;
  if (kind == uapi::userptr && (r.user % k_page != 0 || r.user == 0)) return EINVAL;
  object o;
  o.of = rounded;
  o.file_bytes = rounded.bytes;
  const std::lock_guard hold(lock_);
  if (kind == uapi::in_vram) {
    if (rounded.bytes > (settings_.memory_mib << 20) - used_[r.gpu]) return ENOMEM;
    used_[r.gpu] += rounded.bytes;
    o.counted = true;
  }
  if (kind == uapi::doorbell) {
    o.file = unique_fd(dup(doorbells));
    o.file_bytes = bytes_of_file(doorbells);
  } else if (kind != uapi::userptr) {
    o.file = make_memory_file({gpu_id_of(r.gpu), r.flags}, rounded.bytes);
  }
  if (kind != uapi::userptr && !o.file) {
    if (o.counted) used_[r.gpu] -= rounded.bytes;
    return ENOMEM;
  }
  *handle = keep(std::move(o));
  return 0;
}

int memory_objects::adopt(unique_fd file, std::uint64_t va, unsigned gpu, std::uint64_t* handle,
                          std::uint32_t foreign_flags) {
  const bool foreign = foreign_flags != 0 && is_register_file(file.get());
  const auto kind = foreign ? memory_kind_of_file{0, foreign_flags} : kind_of_file(file.get());
  const std::uint64_t bytes = bytes_of_file(file.get());
  if (!kind || (va != 0 && !is_range(va, bytes))) return EINVAL;
  object o;
  o.of = {va, bytes, kind->flags, gpu};
  if (foreign) o.device = std::make_unique<foreign_device>(number_of_file(file.get()));
  o.file = std::move(file);
  o.file_bytes = bytes;
  o.adopted = true;
  const std::lock_guard hold(lock_);
  *handle = keep(std::move(o));
  return 0;
}

mapping memory_objects::mapping_of(const object& o, unsigned gpu) const {
  mapping m;
  m.base = o.of.va;
  m.bytes = o.of.bytes;
  m.host = o.of.user != 0 ? o.of.user : o.of.va;
  m.owner = o.of.gpu;
  m.device = o.device.get();
  m.writable = (o.of.flags & uapi::writable) != 0;
  if ((o.of.flags & uapi::mmio_remap) != 0)
    m.where = mapping::place::registers;
  else if ((o.of.flags & uapi::doorbell) != 0)
    m.where = mapping::place::doorbell;
  else if ((o.of.flags & uapi::in_vram) != 0)
    m.where = o.of.gpu == gpu ? mapping::place::local : mapping::place::peer;
  else
    m.where = mapping::place::host;
  // Extended coherence, which is HIP's uncached memory on gfx942, is CC or UC there: no L2 keeps it (linux amdgpu,
  // gmc_v9_0_get_coherence_flags).
  if ((o.of.flags & (uapi::uncached | uapi::extended_coherent)) != 0 || m.where == mapping::place::doorbell ||
      m.where == mapping::place::registers)
    m.how = mapping::caching::uncached;
  else if ((o.of.flags & uapi::coherent) != 0)
    m.how = mapping::caching::fine;
  // Another process's L2, which is not here, has it where two share a GPU.
  if (o.adopted && m.where == mapping::place::local && m.how != mapping::caching::uncached)
    m.how = settings_.target == "gfx942" ? mapping::caching::uncached : mapping::caching::fine;
  return m;
}

// The process sees an object's memory at the GPU's address.
int memory_objects::show(std::uint64_t handle, object& o) {
  if (o.in_process || !o.file) return 0;
  for (const int kept : kept_device_files())
    take_over(kept, static_cast<off_t>(offset_of(handle)), o.of.bytes, o.file.get());
  if (map_at(o.of.va, std::min(o.of.bytes, o.file_bytes), PROT_READ | PROT_WRITE, o.file.get(), 0) == nullptr)
    return ENOMEM;
  o.in_process = true;
  return 0;
}

int memory_objects::map(std::uint64_t handle, unsigned gpu, std::uint64_t va, std::uint32_t flags) {
  const change now(gate_);
  const std::lock_guard hold(lock_);
  const auto found = objects_.find(handle);
  if (found == objects_.end()) return EINVAL;
  object& o = found->second;
  if (o.of.va == 0 && is_range(va, o.of.bytes)) o.of.va = va, o.of.flags |= flags;
  if (o.of.va == 0) return EINVAL;
  if ((o.gpus >> gpu & 1) != 0) return 0;
  if (const int failed = show(handle, o); failed != 0) return failed;
  const mapping m = mapping_of(o, gpu);
  if (!tables_[gpu].add(m)) return EINVAL;
  o.gpus |= std::uint64_t{1} << gpu;
  listener_(gpu, m, true);
  return 0;
}

int memory_objects::unmap(std::uint64_t handle, unsigned gpu) {
  const change now(gate_);
  const std::lock_guard hold(lock_);
  const auto found = objects_.find(handle);
  if (found == objects_.end()) return EINVAL;
  object& o = found->second;
  if ((o.gpus >> gpu & 1) == 0) return 0;
  tables_[gpu].remove(o.of.va);
  o.gpus &= ~(std::uint64_t{1} << gpu);
  listener_(gpu, mapping_of(o, gpu), false);
  return 0;
}

void memory_objects::unmap_all(object& o) {
  for (unsigned gpu = 0; gpu < tables_.size(); ++gpu) {
    if ((o.gpus >> gpu & 1) == 0) continue;
    tables_[gpu].remove(o.of.va);
    listener_(gpu, mapping_of(o, gpu), false);
  }
  o.gpus = 0;
}

void memory_objects::lose(std::uint64_t at, std::uint64_t bytes) {
  const auto is_lost = [&](const auto& entry) {
    const request& r = entry.second.of;
    return (r.flags & uapi::userptr) != 0 && entry.second.gpus != 0 && r.user < at + bytes && at < r.user + r.bytes;
  };
  {
    // Most calls have nothing to do with a GPU: they wait for no kernel.
    const std::lock_guard hold(lock_);
    if (std::ranges::none_of(objects_, is_lost)) return;
  }
  const change now(gate_);
  const std::lock_guard hold(lock_);
  for (auto& entry : objects_)
    if (is_lost(entry)) unmap_all(entry.second);
}

int memory_objects::free(std::uint64_t handle) {
  const change now(gate_);
  const std::lock_guard hold(lock_);
  const auto found = objects_.find(handle);
  if (found == objects_.end()) return EINVAL;
  object& o = found->second;
  if (o.gpus != 0) return EBUSY;
  if (o.counted) used_[o.of.gpu] -= o.of.bytes;
  objects_.erase(found);
  return 0;
}

std::uint64_t memory_objects::base(std::uint64_t handle) const {
  const std::lock_guard hold(lock_);
  const auto found = objects_.find(handle);
  return found == objects_.end() ? 0 : found->second.of.va;
}

int memory_objects::file(std::uint64_t handle) const {
  const std::lock_guard hold(lock_);
  const auto found = objects_.find(handle);
  return found == objects_.end() ? -1 : found->second.file.get();
}

int memory_objects::file_at(std::uint64_t va, std::uint64_t bytes, std::uint64_t* offset) const {
  const std::lock_guard hold(lock_);
  for (const auto& [handle, o] : objects_) {
    if (va < o.of.va || va - o.of.va >= o.of.bytes || bytes > o.of.bytes - (va - o.of.va) || !o.file) continue;
    *offset = va - o.of.va;
    return o.file.get();
  }
  return -1;
}

std::uint64_t memory_objects::available(unsigned gpu) const {
  const std::lock_guard hold(lock_);
  return (settings_.memory_mib << 20) - used_[gpu];
}

void* memory_objects::mmap(void* at, std::uint64_t bytes, int protection, int flags, std::uint64_t offset) {
  const std::lock_guard hold(lock_);
  const auto found = objects_.find(offset >> k_offset_shift);
  const std::uint64_t inside = offset & (offset_of(1) - 1);
  if (found == objects_.end() || !found->second.file || inside % k_page != 0 || bytes == 0 ||
      inside + bytes > ((found->second.file_bytes + k_page - 1) & ~(k_page - 1))) {
    errno = EINVAL;
    return nullptr;
  }
  object& o = found->second;
  void* there = (flags & MAP_FIXED) == 0
                    ? map_anywhere(bytes, o.file.get())
                    : map_at(reinterpret_cast<std::uint64_t>(at), bytes, protection, o.file.get(), inside);
  if (reinterpret_cast<std::uint64_t>(there) == o.of.va && there != nullptr && bytes >= o.of.bytes)
    o.in_process = (protection & PROT_WRITE) != 0;
  return there;
}

}  // namespace amdgpu
