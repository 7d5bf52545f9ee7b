// SPDX-License-Identifier: MIT
// Reads and writes of a drive: every group has one op in flight, so that there are as many as groups.
#include "tools/xio-perf/timing.hpp"

namespace xio::perf {
namespace {

// Group g's op number i is the (i * groups + g)-th one, and goes that many strides from the range's begin, around and
// around: no two groups are ever at the same piece. The host expects what this leaves behind.
template <class Scope, bool k_write>
__global__ void storage(work w) {
  const std::uint64_t group = group_index(Scope{});
  const std::uint64_t groups = group_count(Scope{});
  const std::uint64_t pieces = w.stored / w.bytes;
  char* buffer = w.dst + group * w.bytes;
  const auto g = Scope::group::here();
  span all{dev::wall_clock(), 0, stamp(), 0};
  std::uint64_t last = all.first;
  for (std::uint32_t i = 0; i < w.iterations; ++i) {
    const std::uint64_t offset = ((w.first + i) * groups + group) % pieces * w.stride % pieces;
    bool done = false;
    if constexpr (k_write) {
      done = keep(w, Scope::write(w, w.src + offset * w.bytes, offset * w.bytes));
    } else {
      done = keep(w, Scope::read(w, buffer, offset * w.bytes));
    }
    if (!done) break;
    const std::uint64_t now = stamp();
    if (g.leader()) w.samples[group * w.iterations + i] = now - last;
    last = now;
  }
  keep(w, xio_quiet_wg(w.ctx));
  all.last = last;
  all.end = dev::wall_clock();
  if (threadIdx.x == 0) w.spans[blockIdx.x] = all;
}

}  // namespace

void launch_storage(scope s, bool write, dim3 grid, dim3 block, const work& w) {
  if (write) {
    XIO_PERF_BY_SCOPE(s, grid, block, storage, true)
  } else {
    XIO_PERF_BY_SCOPE(s, grid, block, storage, false)
  }
}

}  // namespace xio::perf
