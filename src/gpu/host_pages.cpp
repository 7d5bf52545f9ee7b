// SPDX-License-Identifier: MIT
#include "gpu/host_pages.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <fstream>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory_group.hpp"
#include "memory/pages.hpp"

namespace xio::gpu {

namespace {

struct machine_memory {
  std::uint64_t available = 0, swap = 0;  // bytes
};

machine_memory read_meminfo() {
  std::ifstream in("/proc/meminfo");
  std::string key, rest;
  machine_memory found;
  for (std::uint64_t value = 0; in >> key >> value;) {
    std::getline(in, rest);
    if (key == "MemAvailable:") found.available = value * 1024;
    if (key == "SwapFree:") found.swap = value * 1024;
  }
  return found;
}

}  // namespace

void check_available(std::size_t bytes, const char* what, const char* cure) {
  const machine_memory m = read_meminfo();
  if (const std::uint64_t have = m.available + m.swap; have != 0 && bytes > have)
    fail(XIO_ERR_NO_MEMORY, "{} bytes of {}: the machine has {} bytes available; {}", bytes, what, have, cure);
  // How much a group may swap out has limits of its own; what the machine could take is no reason to refuse.
  if (const auto group = tightest_memory_group(); group && bytes > group->left && bytes - group->left > m.swap)
    fail(XIO_ERR_NO_MEMORY, "{} bytes of {}: {} leaves {} bytes of {}; raise it, or {}", bytes, what, group->limit_file,
         group->left, group->limit, cure);
}

void* reserve_pages(std::size_t bytes, std::size_t alignment, const char* what) {
  // A page has room for itself; a stricter alignment gets room to move, which is unmapped again.
  const std::size_t spare = alignment > page_size() ? alignment : 0;
  if (bytes > SIZE_MAX - spare)
    fail(XIO_ERR_NO_MEMORY, "{} bytes of {}, aligned to {}, are more than an address can count; ask for less", bytes,
         what, alignment);
  void* got = mmap(nullptr, bytes + spare, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (got == MAP_FAILED)
    fail(XIO_ERR_NO_MEMORY, "{} bytes of {}: the system has no addresses for it ({}); ask for less", bytes, what,
         errno_text(errno));
  if (spare == 0) return got;
  const auto start = reinterpret_cast<std::uintptr_t>(got);
  const auto at = memory::align_up(start, alignment).value_or(start);
  unmap_pages(got, at - start);
  unmap_pages(reinterpret_cast<void*>(at + bytes), start + spare - at);
  return reinterpret_cast<void*>(at);
}

void fill_pages(void* at, std::size_t bytes, const char* what) {
  check_available(bytes, what);
  if (mmap(at, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
    fail(XIO_ERR_NO_MEMORY, "{} bytes of {}: {}; ask for less", bytes, what, errno_text(errno));
}

void unmap_pages(void* at, std::size_t bytes) noexcept {
  if (bytes != 0 && munmap(at, bytes) != 0) log::warn("unmapping {} bytes at {}: {}", bytes, at, errno_text(errno));
}

}  // namespace xio::gpu
