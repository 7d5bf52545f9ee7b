// SPDX-License-Identifier: MIT
// Many workgroups that put or get parts of one buffer again and again, and wait for the end only.
#include "tools/xio-perf/timing.hpp"

namespace xio::perf {
namespace {

// The caller's part of w.bytes: whole cache lines, so that no line has two writers.
template <class Scope>
XIO_DEVICE operands part_of(const work& w) {
  const std::size_t count = group_count(Scope{});
  const std::size_t each = ((w.bytes + count - 1) / count + 127) / 128 * 128;
  const std::size_t at = each * group_index(Scope{});
  if (at >= w.bytes) return {w.dst, w.src, 0, w.peer};
  return {w.dst + at, w.src + at, w.bytes - at < each ? w.bytes - at : each, w.peer};
}

template <class Scope>
__global__ void put_bandwidth(work w) {
  const operands o = part_of<Scope>(w);
  streamed(w, [&](std::uint32_t) { Scope::put_nbi(w, o); });
}

template <class Scope>
__global__ void get_bandwidth(work w) {
  const operands o = part_of<Scope>(w);
  streamed(w, [&](std::uint32_t) { Scope::get_nbi(w, o); });
}

__global__ void fetch(work w) { keep(w, xio_get(w.ctx, w.dst, w.src, w.bytes, w.peer)); }

}  // namespace

void launch_put_bandwidth(scope s, dim3 grid, dim3 block, const work& w) {
  XIO_PERF_BY_SCOPE(s, grid, block, put_bandwidth)
}

void launch_get_bandwidth(scope s, dim3 grid, dim3 block, const work& w) {
  XIO_PERF_BY_SCOPE(s, grid, block, get_bandwidth)
}

void launch_fetch(const work& w) { hipLaunchKernelGGL(fetch, dim3(1), dim3(1), 0, nullptr, w); }

}  // namespace xio::perf
