// SPDX-License-Identifier: MIT
#include "memory/where.hpp"

#include <algorithm>
#include <cstdio>

#include "base/error.hpp"
#include "memory/blocks.hpp"
#include "memory/kinds.hpp"
#include "memory/pages.hpp"

namespace xio::memory {
namespace {

bool all_locked(const std::vector<mapping>& mapped) {
  return !mapped.empty() && std::ranges::all_of(mapped, [](const mapping& m) { return m.locked; });
}

bool of_our_file(const std::vector<mapping>& mapped) {
  return std::ranges::all_of(mapped, [](const mapping& m) { return m.name.rfind("/memfd:xio-vmem", 0) == 0; });
}

std::string host_block(const gpu::block& b, const evidence& e) {
  if (e.runtime.where == gpu::residence::device)
    return fmt::format("it is in the memory of device {}", e.runtime.device);
  if (e.runtime.where == gpu::residence::both) return "it is managed memory, which moves between host and device";
  if (b.kind == XIO_MEM_HOST_PLAIN) return "";
  if (e.has_device_memory) return e.runtime.registered ? "" : "the GPU's runtime does not hold it";
  if (b.kind == XIO_MEM_HOST_PINNED && !all_locked(e.mapped)) return "it is not locked in memory, or not all of it";
  return "";
}

std::string device_block(const gpu::block& b, const evidence& e) {
  switch (e.runtime.where) {
    case gpu::residence::unknown: return "the GPU's runtime does not know the address";
    case gpu::residence::host: return "it is in host memory";
    case gpu::residence::both: return "it is managed memory, which moves between host and device";
    case gpu::residence::device: break;
  }
  if (e.runtime.device == b.device) return "";
  return fmt::format("it is in the memory of device {}, not {}", e.runtime.device, b.device);
}

gpu::residence residence_of(const evidence& e, std::uint64_t at) {
  if (e.runtime.where != gpu::residence::unknown) return e.runtime.where;
  for (const mapping& m : e.mapped)
    if (m.begin <= at && at < m.end && m.readable) return gpu::residence::host;
  return gpu::residence::unknown;
}

template <std::size_t n>
void put_text(char (&out)[n], const std::string& text) {
  std::snprintf(out, n, "%s", text.c_str());
}

// Of the block, the runtime's allocation or the kernel's mapping, in this order.
void put_range(xio_mem_place_t& out, const std::optional<gpu::block>& ours, const evidence& e, std::uint64_t at) {
  if (ours) {
    out.base = ours->base;
    out.bytes = ours->bytes;
  } else if (e.runtime.base != nullptr) {
    out.base = e.runtime.base;
    out.bytes = e.runtime.bytes;
  }
  for (const mapping& m : e.mapped) {
    if (at < m.begin || at >= m.end || out.side != XIO_MEM_ON_HOST) continue;
    out.page_bytes = m.page_bytes;
    if (out.base != nullptr) continue;
    out.base = reinterpret_cast<void*>(static_cast<std::uintptr_t>(m.begin));
    out.bytes = m.end - m.begin;
  }
}

}  // namespace

std::string not_as_asked(const gpu::block& b, const evidence& e) {
  const std::uint64_t first = number(b.base);
  if (e.has_device_memory && !on_host(b.kind)) return device_block(b, e);
  if (!cover(e.mapped, first, first + b.bytes)) return "part of it is no longer mapped";
  if (on_host(b.kind)) return host_block(b, e);
  if (b.kind == XIO_MEM_DEVICE_VMEM && !of_our_file(e.mapped)) return "something else is mapped over it";
  return "";
}

xio_mem_place_t where(const void* address) {
  const std::uint64_t at = number(address);
  const auto ours = blocks::all().find(address);
  evidence e;
  e.has_device_memory = gpu::has_device_memory();
  e.runtime = gpu::locate(address);
  const std::uint64_t first = ours ? number(ours->base) : at;
  // The last address of all lies in no mapping of a process.
  e.mapped = mappings_of(first, ours ? first + ours->bytes : std::max(at + 1, at));

  xio_mem_place_t out = XIO_MEM_PLACE_INIT;
  switch (residence_of(e, at)) {
    case gpu::residence::unknown: break;
    case gpu::residence::host: out.side = XIO_MEM_ON_HOST; break;
    case gpu::residence::device: out.side = XIO_MEM_ON_DEVICE; break;
    case gpu::residence::both: out.side = XIO_MEM_ON_BOTH; break;
  }
  put_range(out, ours, e, at);
  if (out.side == XIO_MEM_ON_HOST) {
    e.page = state_of_page(at);
    out.resident = e.page.resident;
    out.numa_node = e.page.numa_node;
    out.locked = e.runtime.registered || (cover(e.mapped, first, first + 1) && all_locked(e.mapped));
  }
  if (out.side == XIO_MEM_ON_DEVICE || out.side == XIO_MEM_ON_BOTH) {
    out.device = e.runtime.device;
    put_text(out.bus_id, gpu::bus_id_of(out.device));
  }
  if (ours) {
    out.kind = ours->kind;
    const std::string why = not_as_asked(*ours, e);
    out.placed_as_requested = why.empty();
    put_text(out.reason, why);
  }
  return out;
}

}  // namespace xio::memory
