// SPDX-License-Identifier: MIT
// Two PEs in turn, and barriers of all. A sample is a round trip.
#include <type_traits>

#include "tools/xio-perf/timing.hpp"

namespace xio::perf {

namespace {

XIO_DEVICE bool await(const work& w, std::uint64_t value) {
  return keep(w, xio_signal_wait_until(w.ctx, &w.shared->of(value).flag, XIO_CMP_EQ, value));
}

// PE 0 calls, the other one answers. Both say whether it went well: nobody answers a call that was not made.
template <class Call, class Wait>
XIO_DEVICE void in_turn(const work& w, Call&& call, Wait&& wait) {
  timed(w, [&](std::uint32_t i) {
    const std::uint64_t value = w.base + i + 1;
    if (w.me == 0) return call(value) && wait(value);
    return wait(value) && call(value);
  });
}

__global__ void p_pingpong(work w) {
  in_turn(
      w, [&](std::uint64_t v) { return keep(w, xio_p<std::uint64_t>(w.ctx, &w.shared->of(v).flag, v, w.peer)); },
      [&](std::uint64_t v) { return await(w, v); });
  keep(w, xio_quiet(w.ctx));
}

__global__ void signal_pingpong(work w) {
  in_turn(
      w,
      [&](std::uint64_t v) { return keep(w, xio_signal_op(w.ctx, &w.shared->of(v).flag, v, XIO_SIGNAL_SET, w.peer)); },
      [&](std::uint64_t v) { return await(w, v); });
  keep(w, xio_quiet(w.ctx));
}

// The flag is the number of the turn; what comes is compared. Messages of a size that the compiler knows, as most
// programs send, never leave the registers.
template <std::uint32_t Bytes>
__global__ void packet_pingpong(work w) {
  constexpr std::uint32_t words = Bytes / 4;
  in_turn(
      w,
      [&](std::uint64_t v) {
        std::uint32_t out[words];
        XIO_UNROLL for (std::uint32_t i = 0; i < words; ++i) out[i] = static_cast<std::uint32_t>(v) * 17 + i;
        return keep(w,
                    xio_put_packet(w.ctx, w.shared->of(v).packet, out, Bytes, static_cast<std::uint32_t>(v), w.peer));
      },
      [&](std::uint64_t v) {
        std::uint32_t in[words] = {};
        if (!keep(w, xio_wait_packet(w.ctx, in, w.shared->of(v).packet, Bytes, static_cast<std::uint32_t>(v))))
          return false;
        std::uint32_t wrong = 0;
        XIO_UNROLL for (std::uint32_t i = 0; i < words; ++i) wrong |= in[i] ^ (static_cast<std::uint32_t>(v) * 17 + i);
        if (wrong != 0) *w.bad += 1;
        return true;
      });
  keep(w, xio_quiet(w.ctx));
}

// Whether it went well with a request that may yet be under way.
XIO_DEVICE bool keep_request(const work& w, xio_req_t request) {
  return !dev::is_failed_request(request) || keep(w, dev::failed_request_status(request));
}

// What one of the group does for all, and all hear whether it went well. Unlike by_leader without a barrier in front:
// that of the copy or of the turn's other half has passed. It also stands between what a workgroup is told here and
// what it is told next, as every body has a word of its own.
template <class Group, class Body>
XIO_DEVICE bool by_one(const Group& g, Body&& body) {
  const bool good = !g.leader() || body();
  if constexpr (std::is_same_v<Group, dev::workgroup_group>) {
#if defined(XIO_ON_CUDA)
    return !dev::sync_workgroup_any(!good);
#else
    XIO_SHARED(bool, heard);
    if (g.leader()) heard = good;
    g.sync();
    return heard;
#endif
  } else {
    return g.broadcast(dev::posted{0, good ? XIO_OK : XIO_ERR_TRANSPORT}).status == XIO_OK;
  }
}

template <class Scope>
__global__ void put_pingpong(work w) {
  const auto g = Scope::group::here();
  in_turn(
      w,
      [&](std::uint64_t v) {
        if (!keep_request(w, Scope::put_nbi(w, 0, w.bytes))) return false;
        return by_one(g, [&] {
          return keep(w, xio_fence(w.ctx)) && keep(w, xio_p<std::uint64_t>(w.ctx, &w.shared->of(v).flag, v, w.peer));
        });
      },
      [&](std::uint64_t v) { return by_one(g, [&] { return await(w, v); }); });
  keep(w, Scope::quiet(w));
}

template <class Scope>
__global__ void put_signal_pingpong(work w) {
  const auto g = Scope::group::here();
  in_turn(
      w, [&](std::uint64_t v) { return keep_request(w, Scope::put_signal_nbi(w, v)); },
      [&](std::uint64_t v) { return by_one(g, [&] { return await(w, v); }); });
  keep(w, Scope::quiet(w));
}

constexpr std::uint64_t k_checked_barriers = 8;

template <class Scope>
__global__ void barrier(work w) {
  if (!timed(w, [&](std::uint32_t) { return keep(w, Scope::barrier(w)); })) return;
  // Whether they are barriers: what was put before one is there after it.
  const auto g = Scope::group::here();
  for (std::uint64_t i = 1; i <= k_checked_barriers; ++i) {
    if (g.leader()) keep(w, xio_p<std::uint64_t>(w.ctx, &w.shared->mark, w.base + i, w.peer));
    if (!keep(w, Scope::barrier(w))) return;
    const auto seen = dev::load<dev::scope::system, dev::order::relaxed>(&w.shared->mark);
    if (g.leader() && seen != w.base + i) *w.bad += 1;
    if (!keep(w, Scope::barrier(w))) return;
  }
}

}  // namespace

void launch_flag_pingpong(bool signal, const work& w) {
  if (signal) {
    hipLaunchKernelGGL(signal_pingpong, dim3(1), dim3(1), 0, nullptr, w);
  } else {
    hipLaunchKernelGGL(p_pingpong, dim3(1), dim3(1), 0, nullptr, w);
  }
}

void launch_packet_pingpong(const work& w) {
  switch (w.bytes) {
    case 4: hipLaunchKernelGGL(packet_pingpong<4>, dim3(1), dim3(1), 0, nullptr, w); break;
    case 8: hipLaunchKernelGGL(packet_pingpong<8>, dim3(1), dim3(1), 0, nullptr, w); break;
    case 16: hipLaunchKernelGGL(packet_pingpong<16>, dim3(1), dim3(1), 0, nullptr, w); break;
    case 32: hipLaunchKernelGGL(packet_pingpong<32>, dim3(1), dim3(1), 0, nullptr, w); break;
    default: hipLaunchKernelGGL(packet_pingpong<64>, dim3(1), dim3(1), 0, nullptr, w); break;
  }
}

void launch_put_pingpong(scope s, unsigned threads, const work& w) {
  switch (s) {
    case scope::thread: hipLaunchKernelGGL(put_pingpong<by_thread>, dim3(1), dim3(1), 0, nullptr, w); break;
    case scope::wave: hipLaunchKernelGGL(put_pingpong<by_wave>, dim3(1), dim3(threads), 0, nullptr, w); break;
    case scope::block: hipLaunchKernelGGL(put_pingpong<by_block>, dim3(1), dim3(threads), 0, nullptr, w); break;
  }
}

void launch_put_signal_pingpong(scope s, unsigned threads, const work& w) {
  switch (s) {
    case scope::thread: hipLaunchKernelGGL(put_signal_pingpong<by_thread>, dim3(1), dim3(1), 0, nullptr, w); break;
    case scope::wave: hipLaunchKernelGGL(put_signal_pingpong<by_wave>, dim3(1), dim3(threads), 0, nullptr, w); break;
    case scope::block: hipLaunchKernelGGL(put_signal_pingpong<by_block>, dim3(1), dim3(threads), 0, nullptr, w); break;
  }
}

void launch_barrier(scope s, unsigned threads, const work& w) {
  switch (s) {
    case scope::thread: hipLaunchKernelGGL(barrier<by_thread>, dim3(1), dim3(1), 0, nullptr, w); break;
    case scope::wave: hipLaunchKernelGGL(barrier<by_wave>, dim3(1), dim3(threads), 0, nullptr, w); break;
    case scope::block: hipLaunchKernelGGL(barrier<by_block>, dim3(1), dim3(threads), 0, nullptr, w); break;
  }
}

}  // namespace xio::perf
