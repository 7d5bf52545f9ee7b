// SPDX-License-Identifier: MIT
// A call on a stream as libxio's kernels get it, and how they are launched.
#pragma once
#include <cstddef>
#include <cstdint>

#include "xio/stream.h"

namespace xio::stream {

enum class call : std::uint32_t {
  report,  // what became of the launches before it
  // clang-format off
  put, get, put_signal, signal_op, signal_wait, signal_take, atomic_fetch, atomic_set, atomic_fetch_add,
  atomic_swap, atomic_compare_swap, quiet, barrier_all, sync_all, team_barrier, team_sync, alltoall, alltoallv,
  fcollect, collect, broadcast, reduce, reduce_scatter, read, write, storage_sync
  // clang-format on
};

struct job {
  call what;
  std::int32_t pe;    // or the root
  std::uint32_t how;  // xio_signal_op_t, xio_cmp_t, or the kind of a reduce (xio/device/impl/kinds.hpp)
  void* dst;
  const void* src;
  std::uint64_t bytes;  // or what a compare_swap expects
  std::uint64_t* sig;
  std::uint64_t value;
  const std::size_t* tables[4];  // of alltoallv, as its parameters come
  xio_storage_t storage;         // `value` is the place in it
  std::uint32_t* failed;         // the ctx's word on the host, for its first failure; null: a call of the host
  std::uint32_t* mark;           // of a call of the host, for its own failure
  xio_status_t* status;          // may be null
};

// A kernel and where it goes. Of several workgroups each makes a part of the copy, or of the collective.
struct launch {
  xio_ctx_t ctx;
  xio_team_t team;
  job what;
  std::uint32_t workgroups;
  xio_stream_t stream;
};

// Why the runtime does not take it; null: it does.
const char* refusal_of(const launch& l);
// Makes a stream that does not wait for the default one. Why there is none; null: *out is it.
const char* make_stream(xio_stream_t* out);
// Loads every kernel. Why that cannot be; null: they are there.
const char* load_kernels();
// How many workgroups share a large copy at most: a part of the GPU.
std::uint32_t most_workgroups();

}  // namespace xio::stream
