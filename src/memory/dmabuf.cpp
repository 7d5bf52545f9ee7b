// SPDX-License-Identifier: MIT
#include "memory/dmabuf.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "gpu/gpu.hpp"
#include "gpu/memory.hpp"
#include "gpu/memory_file.hpp"
#include "memory/blocks.hpp"
#include "memory/pages.hpp"

namespace xio::memory {
namespace {

constexpr const char* k_export = "xio_mem_export_dmabuf";
constexpr const char* k_close = "xio_mem_close_dmabuf";

// One allocation: pages of the next have nothing to do with it, and a dma-buf does not hold them.
void check_inside(void* address, std::size_t bytes, const void* base, std::size_t whole) {
  const auto offset =
      static_cast<std::uint64_t>(static_cast<unsigned char*>(address) - static_cast<const unsigned char*>(base));
  if (offset > whole || bytes > whole - offset)
    fail(XIO_ERR_ARG, "{}: {} bytes at {} leave the allocation of {} bytes at {}; export less", k_export, bytes,
         address, whole, base);
}

std::string target_of(int fd) {
  char target[64] = {};
  const ssize_t got = readlink(fmt::format("/proc/self/fd/{}", fd).c_str(), target, sizeof target - 1);
  return got < 0 ? "" : target;
}
// "/dmabuf:" and a name, and "anon_inode:dmabuf" before Linux 5.3 (drivers/dma-buf/dma-buf.c). Files may have the word
// in their paths.
bool is_dmabuf(std::string_view target) { return target.starts_with("/dmabuf:") || target == "anon_inode:dmabuf"; }

}  // namespace

dmabuf export_dmabuf(void* address, std::size_t bytes, unsigned flags) {
  if (address == nullptr) fail(XIO_ERR_ARG, "{}: address is null; give memory", k_export);
  if (bytes == 0) fail(XIO_ERR_ARG, "{}: bytes is 0; export one at least", k_export);
  if ((flags & ~unsigned{XIO_DMABUF_PCIE}) != 0)
    fail(XIO_ERR_ARG, "{}: flags {:#x} are not known; use 0 or XIO_DMABUF_PCIE", k_export, flags);
  const auto ours = blocks::all().find(address);
  if (ours) {
    check_inside(address, bytes, ours->base, ours->bytes);
  } else if (const gpu::location l = gpu::locate(address); l.base != nullptr) {
    check_inside(address, bytes, l.base, l.bytes);
  }
  dmabuf out;
  try {
    out.fd = gpu::export_dmabuf(ours ? &*ours : nullptr, address, bytes, (flags & XIO_DMABUF_PCIE) != 0, &out.offset);
  } catch (const error& e) {
    fail(e.status(), "{}: {}", k_export, e.what());
  }
  return out;
}

device_view view_for_device(void* base, std::size_t bytes) {
  device_view out;
  out.bytes = bytes;
  const auto ours = blocks::all().find(base);
  out.on_gpu = gpu::has_device_memory() && gpu::locate(base).where == gpu::residence::device;
  if (out.on_gpu) {
    const gpu::block* from = ours ? &*ours : nullptr;
    try {
      // As a device on PCI Express sees it, where the driver makes the difference.
      out.file = unique_fd(gpu::export_dmabuf(from, base, bytes, true, &out.offset));
    } catch (const error& e) {
      log::debug("{}", e.what());
      out.file = unique_fd(gpu::export_dmabuf(from, base, bytes, false, &out.offset));
    }
    return out;
  }
  const auto span = pages_of(reinterpret_cast<std::uint64_t>(base), bytes, gpu::page_size());
  auto place = span ? gpu::find_memory_file(reinterpret_cast<void*>(span->first), span->bytes) : std::nullopt;
  if (!place)
    fail(XIO_ERR_UNSUPPORTED,
         "the {} bytes at {} are host memory without a file, of which no dma-buf can be made for a drive; use the "
         "symmetric heap, or memory of the kind DEVICE_VMEM",
         bytes, base);
  // The program has mapped memory of another device, by the dma-buf that its driver gave.
  if (is_dmabuf(target_of(place->file.get()))) {
    out.file = std::move(place->file);
    out.offset = place->offset + span->offset;
    return out;
  }
  const std::uint64_t most = std::min(span->bytes, gpu::largest_udmabuf());
  out.file = gpu::make_udmabuf(place->file.get(), place->offset, most, base);
  out.offset = span->offset;
  out.bytes = std::min<std::size_t>(bytes, most - span->offset);
  return out;
}

void close_dmabuf(int fd) {
  const std::string target = target_of(fd);
  if (target.empty())
    fail(XIO_ERR_ARG, "{}: {} is no open file descriptor; give the one that {} made", k_close, fd, k_export);
  if (!is_dmabuf(target))
    fail(XIO_ERR_ARG, "{}: descriptor {} is '{}', no dma-buf; give the one that {} made", k_close, fd, target,
         k_export);
  if (close(fd) != 0) fail(XIO_ERR_IO, "{}: closing descriptor {}: {}", k_close, fd, errno_text(errno));
}

}  // namespace xio::memory
