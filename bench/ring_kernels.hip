// SPDX-License-Identifier: MIT
#include "ring_kernels.hpp"

#include "xio/hip.h"
#include "xio/xio_device.hpp"

namespace xio::bench {

namespace {

using namespace xio::dev;

__device__ bool is_storage(const ring_target& t) { return t.storage.view != nullptr; }

__device__ rdma::work write_of(const ring_target& t, u64 op) {
  return rdma::write_value(*t.ring, (op & (t.places - 1)) * 8, op, 8);
}

// False: the library refuses it.
__device__ bool read_of(const ring_target& t, u64 op, transfer* out) {
  const u64 at = (op & (t.places - 1)) * t.block_bytes;
  const asked_transfer a{wire::nvme::opcode::read, t.buffer + at, t.storage, at, t.block_bytes};
  return check_transfer(t.ctx, a, out) == XIO_OK;
}

__device__ xio_status_t post_read(const ring_target& t, u64 op, u64* ticket) {
  transfer what;
  if (!read_of(t, op, &what)) return XIO_ERR_ARG;
  const command all = command_of(what, only_piece(what));
  xio_status_t status = XIO_OK;
  for_each_key(reinterpret_cast<u64>(t.ring), [&](const lanes& group) {
    held_ring r = *t.ring;
    status = ring_post<nvme_codec>(group, r, *t.world, ring_claim{1, 0, t.block_bytes}, ticket,
                                   [&](u64 mine, bool) { write_command(r, mine, all); });
  });
  return status;
}

__device__ xio_status_t post(const ring_target& t, u64 op, u64* ticket) {
  if (is_storage(t)) return post_read(t, op, ticket);
  return rdma::post(*t.world, *t.ring, write_of(t, op), ticket);
}

__device__ xio_status_t quiet(const ring_target& t) {
  if (is_storage(t)) return ring_quiet<nvme_codec>(*t.ring, *t.world);
  return rdma::wait_below(*t.ring, load<scope::agent, order::relaxed>(&t.ring->state->issued), *t.world);
}

__global__ void post_kernel(ring_target t, unsigned iterations, bool wait, wave_times* result) {
  const u64 me = blockIdx.x * blockDim.x + threadIdx.x;
  const u64 all = u64{gridDim.x} * blockDim.x;
  wave_times w{};
  __syncthreads();
  w.start = wall_clock();
  for (unsigned i = 0; i < iterations; ++i) {
    u64 ticket = 0;
    const xio_status_t status = post(t, me + i * all, &ticket);
    if (status != XIO_OK) w.status = status;
  }
  __syncthreads();
  w.posted = wall_clock();
  if (wait) {
    const xio_status_t status = quiet(t);
    if (status != XIO_OK) w.status = status;
  }
  w.done = wall_clock();
  if (threadIdx.x == 0 || w.status != XIO_OK) result[blockIdx.x] = w;
}

__device__ xio_status_t wait_for(const ring_target& t, u64 ticket) {
  if (is_storage(t)) return nvme_codec::wait(*t.ring, *t.world, ticket);
  return rdma::wait_below(*t.ring, ticket + 1, *t.world);
}

__global__ void whole_ops(ring_target t, unsigned iterations, op_times* result) {
  op_times all{};
  const u64 start = wall_clock();
  for (unsigned i = 0; i < iterations && all.status == XIO_OK; ++i) {
    if (is_storage(t)) {
      const u64 at = (i & (t.places - 1)) * t.block_bytes;
      all.status = xio_read(t.ctx, t.buffer + at, t.storage, at, t.block_bytes);
      continue;
    }
    u64 ticket = 0;
    all.status = post(t, i, &ticket);
    if (all.status == XIO_OK) all.status = wait_for(t, ticket);
  }
  all.all = wall_clock() - start;
  *result = all;
}

// The steps of ring_post_batch for one lane.
template <class Codec, class Write, class Wait>
__device__ void split_op(const ring_target& t, op_times* sum, const ring_share& share, Write&& write, Wait&& wait) {
  held_ring r = *t.ring;
  u64 clock[parts + 1];
  clock[reserve] = wall_clock();
  ring_place taken{};
  sum->status = ring_reserve<Codec>(lanes{1}, r, *t.world, share, &taken);
  if (sum->status != XIO_OK) return;
  clock[fill] = wall_clock();
  write(taken.first);
  clock[announce] = wall_clock();
  ring_publish<Codec>(r, taken.first, share.slots, taken.turn);
  clock[complete] = wall_clock();
  sum->status = wait(taken.first);
  clock[parts] = wall_clock();
  for (int i = 0; i < parts; ++i) sum->part[i] += clock[i + 1] - clock[i];
}

__global__ void split_ops(ring_target t, unsigned iterations, op_times* result) {
  op_times sum{};
  const u64 start = wall_clock();
  for (unsigned i = 0; i < iterations && sum.status == XIO_OK; ++i) {
    if (is_storage(t)) {
      transfer what;
      if (!read_of(t, i, &what)) {
        sum.status = XIO_ERR_ARG;
        break;
      }
      const command one = command_of(what, only_piece(what));
      split_op<nvme_codec>(
          t, &sum, ring_share{1, 0, 0, 0, t.block_bytes}, [&](u64 at) { write_command(*t.ring, at, one); },
          [&](u64 at) { return wait_for(t, at); });
    } else {
      const rdma::work w = write_of(t, i);
      rdma::with_family(*t.ring, [&](auto family) {
        using codec = decltype(family);
        if constexpr (!k_ring_is_serial<codec>)
          split_op<codec>(
              t, &sum, ring_share{codec::slots(w), 0, 0, 0, 8}, [&](u64 at) { codec::encode(*t.ring, at, 0, true, w); },
              [&](u64 at) { return wait_for(t, at); });
      });
    }
  }
  sum.all = wall_clock() - start;
  *result = sum;
}

// A line of its own for each turn, or one store would wait for the one before.
__device__ void store_line(unsigned char* host, unsigned i) {
  entry64 e;
  for (u32& dw : e.dw) dw = i;
  store_entry(host + 4096 + (i & 1023) * 64, e);
}

__global__ void ping_pong_kernel(u64* ping, const u64* pong, u64* on_device, turn_steps steps, unsigned iterations,
                                 u64* ticks) {
  const u64 start = wall_clock();
  u64 turn = 0;
  for (unsigned i = 1; i <= iterations; ++i) {
    // Always 0, and what one finds is where the next one goes.
    u64 found = 0;
    for (unsigned a = 0; a < steps.atomics; ++a)
      found = fetch_add<scope::agent, order::relaxed>(on_device + found, found);
    const u64 number = i + found;
    if (steps.releases != 0) {
      store_line(reinterpret_cast<unsigned char*>(ping), static_cast<unsigned>(number));
      if (steps.releases > 1) store<scope::system, order::release>(ping + 128, number);
      store<scope::system, order::release>(ping, number);
    } else {
      store<scope::system, order::relaxed>(ping, number);
    }
    while (load<scope::system, order::relaxed>(pong) != i) {
      // A host that never replies ends the kernel, with no time at all.
      if (++turn > 100000000u) return;
      if constexpr (k_pauses_at_once) pause();
    }
  }
  *ticks = wall_clock() - start;
}

template <class Body>
__device__ u64 time_of(unsigned iterations, Body&& body) {
  const u64 start = wall_clock();
  for (unsigned i = 0; i < iterations; ++i) body(i);
  return wall_clock() - start;
}

// The value that one turn finds decides where the next looks, so that turns follow each other. Memory is all zero where
// it is loaded from.
__global__ void primitives_kernel(unsigned char* host, unsigned char* device, unsigned n, u64* ticks) {
  auto* on_device = reinterpret_cast<u64*>(device);
  auto* on_host = reinterpret_cast<u64*>(host);
  u64 at = 0, add = 0;
  ticks[0] = time_of(n, [&](unsigned) { at = load<scope::agent, order::relaxed>(on_device + at); });
  ticks[1] = time_of(n, [&](unsigned) { at = load<scope::agent, order::acquire>(on_device + at); });
  ticks[2] = time_of(n, [&](unsigned) { add = fetch_add<scope::agent, order::relaxed>(on_device + 64, add & 1); });
  ticks[3] = time_of(n, [&](unsigned) { add = fetch_add<scope::agent, order::acq_rel>(on_device + 64, add & 1); });
  ticks[4] = time_of(n, [&](unsigned) { at = load<scope::system, order::relaxed>(on_host + at); });
  ticks[5] = time_of(n, [&](unsigned) { at = load<scope::system, order::acquire>(on_host + at); });
  ticks[6] = time_of(n, [&](unsigned i) { store_line(host, i); });
  ticks[7] = time_of(n, [&](unsigned i) {
    store_line(host, i);
    store<scope::agent, order::release>(on_device + 128, u64{i});
  });
  ticks[8] = time_of(n, [&](unsigned i) {
    store_line(host, i);
    add = fetch_add<scope::agent, order::acq_rel>(on_device + 64, add & 1);
  });
  ticks[9] = time_of(n, [&](unsigned i) {
    store_line(host, i);
    store<scope::system, order::release>(on_host + 64, u64{i});
  });
  ticks[10] = time_of(n, [&](unsigned i) {
    store_line(host, i);
    store<scope::system, order::release>(on_host + 64, u64{i});
    store<scope::system, order::release>(on_host + 128, u64{i});
  });
  ticks[11] = time_of(n, [&](unsigned i) { store<scope::system, order::release>(on_host + 64, u64{i}); });
  on_device[192] = at + add;
}

bool ended() { return hipDeviceSynchronize() == hipSuccess; }

}  // namespace

bool post_ops(const ring_target& to, unsigned waves, unsigned lanes, unsigned iterations, bool wait,
              wave_times* result) {
  hipLaunchKernelGGL(post_kernel, dim3(waves), dim3(lanes), 0, nullptr, to, iterations, wait, result);
  return ended();
}

bool post_and_wait(const ring_target& to, unsigned iterations, bool split, op_times* result) {
  if (split) {
    hipLaunchKernelGGL(split_ops, dim3(1), dim3(1), 0, nullptr, to, iterations, result);
  } else {
    hipLaunchKernelGGL(whole_ops, dim3(1), dim3(1), 0, nullptr, to, iterations, result);
  }
  return ended();
}

bool ping_pong(std::uint64_t* ping, std::uint64_t* pong, std::uint64_t* on_device, turn_steps steps,
               unsigned iterations, std::uint64_t* ticks) {
  hipLaunchKernelGGL(ping_pong_kernel, dim3(1), dim3(1), 0, nullptr, ping, pong, on_device, steps, iterations, ticks);
  return ended();
}

bool time_primitives(unsigned char* host, unsigned char* device, unsigned iterations, std::uint64_t* ticks) {
  hipLaunchKernelGGL(primitives_kernel, dim3(1), dim3(1), 0, nullptr, host, device, iterations, ticks);
  return ended();
}

}  // namespace xio::bench
