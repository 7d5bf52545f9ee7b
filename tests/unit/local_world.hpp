// SPDX-License-Identifier: MIT
// A world of this process alone by the C API, and what tests take from it in one line.
#pragma once
#include "../gtest.hpp"
#include "xio/memory.h"
#include "xio/xio.h"

namespace xio::test {

inline xio_world_t* start_world(std::size_t heap_bytes = 1 << 20, std::uint32_t timeout_ms = 0) {
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.bootstrap = "local";
  attr.heap_bytes = heap_bytes;
  attr.timeout_ms = timeout_ms;
  xio_world_t* w = nullptr;
  EXPECT_EQ(xio_init(&attr, &w), XIO_OK) << xio_last_error();
  return w;
}

inline xio_ctx_t start_ctx(xio_world_t* w, xio_route_t route) {
  xio_ctx_attr_t attr = XIO_CTX_ATTR_INIT;
  attr.route = route;
  xio_ctx_t c{};
  EXPECT_EQ(xio_ctx_create(w, &attr, &c), XIO_OK) << xio_last_error();
  return c;
}

inline void* take(xio_mem_kind_t kind, std::size_t bytes) {
  void* p = nullptr;
  EXPECT_EQ(xio_mem_alloc(kind, bytes, nullptr, &p), XIO_OK) << xio_last_error();
  return p;
}

}  // namespace xio::test
