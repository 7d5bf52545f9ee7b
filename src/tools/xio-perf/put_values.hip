// SPDX-License-Identifier: MIT
// Streams of single values. A file of its own because for NVIDIA GPUs it is compiled to be linked (module.am).
#include "tools/xio-perf/timing.hpp"

namespace xio::perf {
namespace {

template <class T>
XIO_DEVICE void put_value(const work& w, std::size_t e, T value) {
  xio_p<T>(w.ctx, values<T>(w.dst) + e, value, w.peer);
}

// Four values are loaded before the first is stored.
template <class T>
__global__ void put_scalar_bandwidth(work w) {
  const std::size_t count = w.bytes / sizeof(T);
  const std::size_t step = group_count(by_thread{});
  streamed(w, [&](std::uint32_t) {
    std::size_t e = group_index(by_thread{});
    for (; e + 3 * step < count; e += 4 * step) {
      const T* src = values<T>(w.src) + e;
      const T first = src[0], second = src[step], third = src[2 * step], fourth = src[3 * step];
      put_value(w, e, first);
      put_value(w, e + step, second);
      put_value(w, e + 2 * step, third);
      put_value(w, e + 3 * step, fourth);
    }
    for (; e < count; e += step) put_value(w, e, values<T>(w.src)[e]);
  });
}

}  // namespace

void launch_put_scalar_bandwidth(dim3 grid, dim3 block, const work& w) {
  XIO_PERF_BY_ANY_SIZE(put_scalar_bandwidth, grid, block)
}

}  // namespace xio::perf
