// SPDX-License-Identifier: MIT
// Pages of registers and of the host's memory that kernels see; hip.hip and cuda.cu include it behind accelerator.hpp.
#pragma once

namespace xio::gpu {

// How long a caller that gives a page of registers back may wait for kernels.
constexpr std::uint64_t k_unmap_ms = 1000;

void* map_registers(void* page, std::size_t bytes, const register_export& as) {
  const on_device here;
  void* mapped = nullptr;
  std::string why;
  if (hw::map_io(page, bytes, as, &mapped, why)) return mapped;
  // Callers work without it, more slowly, and say so at their own level; this is for the machine.
  static std::atomic<bool> said{false};
  if (!said.exchange(true))
    log::warn("kernels cannot ring doorbells of NICs and drives, so a thread of the host does ({})", why);
  return nullptr;
}

bool unmap_registers(void* page) {
  return after_kernels_within(
      [page] {
        const on_device here;
        if (hw::wait_for_device() == hipSuccess)
          hw::unmap_io(page);
        else
          (void)hipGetLastError();
      },
      k_unmap_ms);
}

void* show_pages(void* base, std::size_t bytes) {
  const on_device here;
  if (hw::pin(base, bytes) != hipSuccess) {
    (void)hipGetLastError();
    return nullptr;
  }
  void* seen = nullptr;
  if (hw::device_address(&seen, base) == hipSuccess && seen != nullptr) return seen;
  (void)hipGetLastError();
  hide_pages(base);
  return nullptr;
}

bool hide_pages(void* base) {
  return after_kernels_within(
      [base] {
        const on_device here;
        if (hw::unpin(base) != hipSuccess) (void)hipGetLastError();
      },
      k_unmap_ms);
}

}  // namespace xio::gpu
