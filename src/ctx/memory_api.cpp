// SPDX-License-Identifier: MIT
// The C boundary of xio/memory.h, but for what a world is asked (api.cpp).

#include "ctx/attributes.hpp"
#include "ctx/entry.hpp"
#include "memory/blocks.hpp"
#include "memory/dmabuf.hpp"
#include "memory/kinds.hpp"
#include "memory/pair.hpp"
#include "memory/where.hpp"

using xio::entry;
using xio::not_null;
using xio::memory::blocks;

namespace {

std::size_t alignment_of(const xio_mem_attr_t* attr) { return xio::read_attr(attr, "xio_mem_attr_t").alignment; }

}  // namespace

extern "C" {

xio_status_t xio_mem_supports(xio_mem_kind_t kind) {
  return entry(__func__, [&, function = __func__] { xio::memory::check_kind(kind, function); });
}

xio_status_t xio_mem_alloc(xio_mem_kind_t kind, size_t bytes, const xio_mem_attr_t* attr, void** out) {
  return entry(__func__, [&, function = __func__] {
    not_null(out, function, "out");
    *out = nullptr;
    xio::process::claim();
    *out = blocks::all().allocate(kind, bytes, alignment_of(attr), function);
  });
}

xio_status_t xio_mem_free(void* block) {
  return entry(__func__, [&, function = __func__] {
    if (block != nullptr) blocks::all().release(block, function);
  });
}

xio_status_t xio_mem_pair_alloc(xio_mem_kind_t host, xio_mem_kind_t device, size_t bytes, const xio_mem_attr_t* attr,
                                xio_mem_pair_t* out) {
  return entry(__func__, [&, function = __func__] {
    not_null(out, function, "out");
    *out = {};
    xio::process::claim();
    *out = xio::memory::make_pair(host, device, bytes, alignment_of(attr));
  });
}

xio_status_t xio_mem_pair_to_device(const xio_mem_pair_t* pair, size_t offset, size_t bytes) {
  return entry(__func__, [&, function = __func__] {
    not_null(pair, function, "pair");
    xio::memory::mirror(*pair, xio::memory::direction::to_device, offset, bytes);
  });
}

xio_status_t xio_mem_pair_to_host(const xio_mem_pair_t* pair, size_t offset, size_t bytes) {
  return entry(__func__, [&, function = __func__] {
    not_null(pair, function, "pair");
    xio::memory::mirror(*pair, xio::memory::direction::to_host, offset, bytes);
  });
}

xio_status_t xio_mem_pair_free(xio_mem_pair_t* pair) {
  return entry(__func__, [&, function = __func__] {
    not_null(pair, function, "pair");
    xio::memory::free_pair(*pair);
  });
}

xio_status_t xio_mem_where(const void* address, xio_mem_place_t* out) {
  return entry(__func__, [&, function = __func__] {
    not_null(out, function, "out");
    xio::write_out(out, xio::memory::where(address), "xio_mem_place_t");
  });
}

xio_status_t xio_mem_export_dmabuf(void* address, size_t bytes, unsigned flags, int* fd, uint64_t* offset) {
  return entry(__func__, [&, function = __func__] {
    not_null(fd, function, "fd");
    not_null(offset, function, "offset");
    *fd = -1;
    *offset = 0;
    const auto made = xio::memory::export_dmabuf(address, bytes, flags);
    *fd = made.fd;
    *offset = made.offset;
  });
}

xio_status_t xio_mem_close_dmabuf(int fd) {
  return entry(__func__, [&] { xio::memory::close_dmabuf(fd); });
}

}  // extern "C"
