// SPDX-License-Identifier: MIT
// What the parts of tests/mpi/stream share.
#pragma once
#include <xio/stream.h>

#include "rig.hpp"

namespace stream_test {

using bytes_t = std::vector<unsigned char>;
constexpr size_t k_most = 300001;  // bytes of a block: several workgroups copy it
constexpr size_t k_guard = 64;

// Everything that the rows share.
struct place {
  const rig::team& t;
  xio_team_t team;
  unsigned char *dst, *src;  // symmetric, room for a block of each PE
  unsigned char* sums;       // behind a block of dst
  size_t* tables;            // of alltoallv
  uint64_t* sig;             // symmetric, zero between rows
  hipStream_t stream;
  xio_status_t* status;  // of the host, which kernels reach
  xio_stream_attr_t attr;

  int next() const { return t.right; }
  int last() const { return t.left; }
  size_t room() const { return static_cast<size_t>(t.n) * k_most + 1024; }
  void sync() const { MUST(hipStreamSynchronize(stream)); }
  // Block `to` of the source of PE `from`.
  static bytes_t block(int from, int to, size_t bytes) { return part(from, static_cast<size_t>(to) * bytes, bytes); }
  static bytes_t part(int from, size_t at, size_t bytes) {
    bytes_t out(bytes);
    for (size_t i = 0; i < bytes; ++i) out[i] = rig::pattern(from, at + i);
    return out;
  }
};

#define GIVE(call, ...) rig::expect_status(call(p.t.world(), p.t.ctx, __VA_ARGS__, p.stream, &p.attr), XIO_OK, #call)
#define GIVE_ALONE(call) rig::expect_status(call(p.t.world(), p.t.ctx, p.stream, &p.attr), XIO_OK, #call)

}  // namespace stream_test
