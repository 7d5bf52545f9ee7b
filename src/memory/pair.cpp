// SPDX-License-Identifier: MIT
#include "memory/pair.hpp"
#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "memory/blocks.hpp"
#include "memory/kinds.hpp"

namespace xio::memory {
namespace {

// Both sides are live and as large as the pair says, even if the caller has changed the struct.
void check(const xio_mem_pair_t& pair, const char* function) {
  const gpu::block host = blocks::all().at(pair.host, function);
  const gpu::block device = blocks::all().at(pair.device, function);
  if (!on_host(host.kind) || on_host(device.kind) || pair.bytes > host.bytes || pair.bytes > device.bytes)
    fail(XIO_ERR_ARG, "{}: {} bytes at {} and {} are no pair of xio_mem_pair_alloc; give it as it was returned",
         function, pair.bytes, pair.host, pair.device);
}

}  // namespace

xio_mem_pair_t make_pair(xio_mem_kind_t host, xio_mem_kind_t device, std::size_t bytes, std::size_t alignment) {
  constexpr const char* function = "xio_mem_pair_alloc";
  check_kind(host, function);
  check_kind(device, function);
  if (!on_host(host) || on_host(device))
    fail(XIO_ERR_ARG, "{}: {} and {}: give a kind of the host, then one of the device", function,
         xio_mem_kind_name(host), xio_mem_kind_name(device));
  xio_mem_pair_t p{nullptr, nullptr, bytes};
  p.host = blocks::all().allocate(host, bytes, alignment, function);
  try {
    p.device = blocks::all().allocate(device, bytes, alignment, function);
  } catch (...) {
    blocks::all().release(p.host, function);
    throw;
  }
  return p;
}

void mirror(const xio_mem_pair_t& pair, direction way, std::size_t offset, std::size_t bytes) {
  const bool out = way == direction::to_device;
  const char* function = out ? "xio_mem_pair_to_device" : "xio_mem_pair_to_host";
  check(pair, function);
  if (offset > pair.bytes || bytes > pair.bytes - offset)
    fail(XIO_ERR_ARG, "{}: {} bytes from offset {} leave the pair's {}; copy less", function, bytes, offset,
         pair.bytes);
  auto* host = static_cast<unsigned char*>(pair.host) + offset;
  auto* device = static_cast<unsigned char*>(pair.device) + offset;
  gpu::copy(out ? device : host, out ? host : device, bytes);
}

void free_pair(xio_mem_pair_t& pair) {
  constexpr const char* function = "xio_mem_pair_free";
  if (pair.host == nullptr && pair.device == nullptr) return;
  check(pair, function);
  blocks::all().release(pair.host, function);
  blocks::all().release(pair.device, function);
  pair = {};
}

}  // namespace xio::memory
