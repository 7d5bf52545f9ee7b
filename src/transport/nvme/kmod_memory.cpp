// SPDX-License-Identifier: MIT
#include "transport/nvme/kmod_memory.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "memory/dmabuf.hpp"

namespace xio::nvme {

// The queues have ended: no command names anything.
kmod_memory::~kmod_memory() {
  for (const pinned& p : pinned_) module_.release(p.handle);
  for (const leaving& l : leaving_) module_.release(l.handle);
}

// Kernels compute bus addresses: what they name lies in one piece.
std::uint64_t kmod_memory::contiguous(const kmod_module::pin& pin, std::uint64_t offset, std::size_t bytes,
                                      const void* base) const {
  for (const kmod_module::run& r : pin.runs) {
    if (offset < r.offset || offset - r.offset >= r.bytes) continue;
    if (bytes <= r.bytes - (offset - r.offset)) return r.address + (offset - r.offset);
    fail(XIO_ERR_UNSUPPORTED,
         "{}: the {} bytes at {} lie in pieces on the bus, {} of them in the buffer; let the IOMMU translate for the "
         "drive (no iommu=pt, no passthrough), which makes one piece of them, or register less at a time",
         name_, bytes, base, pin.runs.size());
  }
  fail(XIO_ERR_IO, "{}: the kernel module pinned a buffer that ends before the {} bytes at {}; register it again",
       name_, bytes, base);
}

std::uint64_t kmod_memory::map(void* base, std::size_t bytes) {
  const std::lock_guard hold(lock_);
  release_unused();
  for (pinned& p : pinned_) {
    if (p.base != base || p.bytes != bytes) continue;
    ++p.users;
    return p.address;
  }
  const memory::device_view view = memory::view_for_device(base, bytes);
  const kmod_module::pin pin = module_.pin_dmabuf(view.file.get(), view.on_gpu);
  try {
    pinned_.push_back({base, bytes, pin.handle, contiguous(pin, view.offset, bytes, base), 1});
  } catch (...) {
    module_.release(pin.handle);
    throw;
  }
  return pinned_.back().address;
}

void kmod_memory::unmap(void* base, std::size_t bytes, std::function<bool()> in_use) {
  const std::lock_guard hold(lock_);
  const auto found =
      std::find_if(pinned_.begin(), pinned_.end(), [&](const pinned& p) { return p.base == base && p.bytes == bytes; });
  if (found == pinned_.end() || --found->users > 0) return;
  leaving_.push_back({found->handle, std::move(in_use)});
  pinned_.erase(found);
  release_unused();
}

void kmod_memory::release_unused() {
  std::erase_if(leaving_, [&](const leaving& l) {
    if (l.in_use()) return false;
    module_.release(l.handle);
    return true;
  });
}

std::size_t kmod_memory::waiting() const {
  const std::lock_guard hold(lock_);
  return leaving_.size();
}

}  // namespace xio::nvme
