// SPDX-License-Identifier: MIT
// What the engines of a relay did.
#pragma once
#include <string>

#include "job.hpp"

inline std::string engine_line(int me, const char* name, const xio_engine_stats_t& s) {
  char text[128];
  std::snprintf(text, sizeof text, "  PE %d %s %8llu ops %8llu doorbells %13llu bytes\n", me, name,
                static_cast<unsigned long long>(s.ops), static_cast<unsigned long long>(s.doorbells),
                static_cast<unsigned long long>(s.bytes));
  return text;
}

inline std::string engines(xio_world_t* world, int me, const job& j) {
  xio_engine_stats_t nvme = XIO_ENGINE_STATS_INIT, rdma = XIO_ENGINE_STATS_INIT, sdma = XIO_ENGINE_STATS_INIT;
  check(xio_storage_stats(world, j.file, &nvme), "statistics");
  check(xio_ctx_stats(world, j.rdma, XIO_ROUTE_RDMA, &rdma), "statistics");
  check(xio_ctx_stats(world, j.sdma, XIO_ROUTE_SDMA, &sdma), "statistics");
  return engine_line(me, "nvme", nvme) + engine_line(me, "rdma", rdma) + engine_line(me, "sdma", sdma);
}
