// SPDX-License-Identifier: MIT
// The kernels of bench/ring. A device compiler need not read fmt. All times are ticks of wall_clock().
#pragma once
#include <cstdint>

#include "xio/device/impl/view.hpp"
#include "xio/xio.h"

namespace xio::bench {

// A ring and what an op on it needs. Pointers are the GPU's.
struct ring_target {
  const dev::world_view* world;
  const dev::ring_view* ring;
  // NVMe: reads of one block each into the buffer, block after block. RDMA: storage.view is null, and 8 bytes that
  // travel in the entry go to words of the remote memory.
  xio_ctx_t ctx;
  xio_storage_t storage;
  unsigned char* buffer;
  std::uint32_t block_bytes;
  std::uint32_t places;  // a power of two: words of the remote memory, or blocks of the buffer
};

struct wave_times {
  std::uint64_t start, posted, done;
  int status;
};

// Every lane of `waves` workgroups of `lanes` posts `iterations` ops; if `wait`, then waits for all. False: the kernel
// failed.
bool post_ops(const ring_target& to, unsigned waves, unsigned lanes, unsigned iterations, bool wait,
              wave_times* result);

// One lane posts one op and waits for it, again and again.
enum part { reserve, fill, announce, complete, parts };
struct op_times {
  std::uint64_t part[parts];
  std::uint64_t all;
  int status;
};
// split: with a clock between the parts, which costs some time itself.
bool post_and_wait(const ring_target& to, unsigned iterations, bool split, op_times* result);

// The steps before the store of a ping-pong's number.
struct turn_steps {
  // In GPU memory, one behind the other: 2 where several may post, for a free slot and whose turn it is to ring, and
  // then for the place in the order.
  unsigned atomics;
  // 0, the number alone; 1, each time after 64 bytes more and a release, as a queue with a doorbell in host memory asks
  // for; 2, after a word more and a release of its own, too, as a doorbell record asks for.
  unsigned releases;
};

// The GPU counts `ping` up, the host replies in `pong`: no more than a post and its completion must do. `ticks` for
// all. near: GPU memory, a word of 0.
bool ping_pong(std::uint64_t* ping, std::uint64_t* pong, std::uint64_t* on_device, turn_steps steps,
               unsigned iterations, std::uint64_t* ticks);

// The primitives of a ring's steps, each `iterations` times by one lane: see primitive_names.
constexpr unsigned k_primitives = 12;
inline constexpr const char* primitive_names[k_primitives] = {
    "load, GPU memory",
    "load acquire, GPU memory, agent",
    "add, GPU memory, agent",
    "add acquire-release, GPU memory, agent",
    "load, host memory",
    "load acquire, host memory, system",
    "store of 64 bytes, host memory",
    "the same, release store, GPU memory, agent",
    "the same, add acquire-release, GPU memory, agent",
    "the same, release store, host memory, system",
    "the same, two release stores, host memory, system",
    "release store, host memory, system, and nothing before it",
};
bool time_primitives(unsigned char* host, unsigned char* device, unsigned iterations, std::uint64_t* ticks);

}  // namespace xio::bench
