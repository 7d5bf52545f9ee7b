// SPDX-License-Identifier: MIT
// Two PEs in turn. A sample is a round trip.
#include "tools/xio-perf/timing.hpp"

namespace xio::perf {
namespace {

XIO_DEVICE xio_status_t await(const work& w, place& at, std::uint64_t value) {
  return xio_signal_wait_until(w.ctx, &at.flag, XIO_CMP_EQ, value);
}

// One thing after the other each turn, if the first went well. Where a turn's words lie is found once, as a program
// that has a word of its own would.
template <class First, class Second>
XIO_DEVICE xio_status_t each_turn(const work& w, First&& first, Second&& second) {
  words* const shared = in_register(w.shared);
  const std::uint64_t base = in_register(w.base);
  return timed(w, [&](std::uint32_t i) {
    const std::uint64_t value = base + i + 1;
    place& at = *held(&shared->of(value));
    if (const xio_status_t status = first(at, value); status != XIO_OK) return status;
    return second(at, value);
  });
}

// PE 0 calls, the other one replies: no reply comes before its call. Each has a loop of its own, with nothing
// in it that asks whose turn it is.
template <class Call, class Wait>
XIO_DEVICE xio_status_t in_turn(const work& w, Call&& call, Wait&& wait) {
  return w.me == 0 ? each_turn(w, call, wait) : each_turn(w, wait, call);
}

__global__ void p_pingpong(work w) {
  const int peer = in_register(w.peer);
  keep(w, in_turn(
              w, [&](place& at, std::uint64_t v) { return xio_p<std::uint64_t>(w.ctx, &at.flag, v, peer); },
              [&](place& at, std::uint64_t v) { return await(w, at, v); }));
  keep(w, xio_quiet(w.ctx));
}

__global__ void signal_pingpong(work w) {
  const int peer = in_register(w.peer);
  keep(w, in_turn(
              w, [&](place& at, std::uint64_t v) { return xio_signal_op(w.ctx, &at.flag, v, XIO_SIGNAL_SET, peer); },
              [&](place& at, std::uint64_t v) { return await(w, at, v); }));
  keep(w, xio_quiet(w.ctx));
}

// The flag is the number of the turn; what comes is compared. Messages of a size that the compiler knows, as most
// programs send, never leave the registers.
template <std::uint32_t Bytes>
__global__ void packet_pingpong(work w) {
  constexpr std::uint32_t words = Bytes / 4;
  const int peer = in_register(w.peer);
  std::uint32_t wrong = 0;  // reported at the end: nothing of it is between a call and its reply
  const xio_status_t status = in_turn(
      w,
      [&](place& at, std::uint64_t v) {
        std::uint32_t out[words];
        XIO_UNROLL for (std::uint32_t i = 0; i < words; ++i) out[i] = static_cast<std::uint32_t>(v) * 17 + i;
        return xio_put_packet(w.ctx, at.packet, out, Bytes, static_cast<std::uint32_t>(v), peer);
      },
      [&](place& at, std::uint64_t v) {
        std::uint32_t in[words] = {};
        const xio_status_t came = xio_wait_packet(w.ctx, in, at.packet, Bytes, static_cast<std::uint32_t>(v));
        if (came != XIO_OK) return came;
        XIO_UNROLL for (std::uint32_t i = 0; i < words; ++i) wrong |= in[i] ^ (static_cast<std::uint32_t>(v) * 17 + i);
        return XIO_OK;
      });
  keep(w, status);
  if (wrong != 0) *w.bad += 1;
  keep(w, xio_quiet(w.ctx));
}

// The failure of a request that may yet be under way, if it is known.
XIO_DEVICE xio_status_t failure_of(xio_req_t request) {
  return dev::is_failed_request(request) ? dev::failed_request_status(request) : XIO_OK;
}

// One thread of the group runs the body for all, and all return its status. Unlike by_leader it has no barrier in
// front: that of the copy or of the turn's other half has passed. A second barrier between this status and the next one
// is not needed, either, as every body has a word of its own.
template <class Group, class Body>
XIO_DEVICE xio_status_t by_one(const Group& g, Body&& body) {
  xio_status_t status = XIO_OK;
  if (g.leader()) status = body();
  if constexpr (std::is_same_v<Group, dev::workgroup_group>) {
#if defined(XIO_ON_CUDA)
    if (!dev::sync_workgroup_any(status != XIO_OK)) return XIO_OK;
#endif
    XIO_SHARED(xio_status_t, heard);
    if (g.leader()) heard = status;
    g.sync();
    return heard;
  } else {
    return g.broadcast(dev::posted{0, status}).status;
  }
}

template <class Scope>
__global__ void put_pingpong(work w) {
  const auto g = Scope::group::here();
  const operands o = operands::of(w);
  keep(w, in_turn(
              w,
              [&](place& at, std::uint64_t v) {
                const xio_status_t put = failure_of(Scope::put_nbi(w, o));
                if (put != XIO_OK) return put;
                return by_one(g, [&] {
                  const xio_status_t fence = xio_fence(w.ctx);
                  return fence == XIO_OK ? xio_p<std::uint64_t>(w.ctx, &at.flag, v, w.peer) : fence;
                });
              },
              [&](place& at, std::uint64_t v) { return by_one(g, [&] { return await(w, at, v); }); }));
  keep(w, Scope::quiet(w));
}

template <class Scope>
__global__ void put_signal_pingpong(work w) {
  const auto g = Scope::group::here();
  const operands o = operands::of(w);
  keep(w, in_turn(
              w, [&](place& at, std::uint64_t v) { return failure_of(Scope::put_signal_nbi(w, o, at, v)); },
              [&](place& at, std::uint64_t v) { return by_one(g, [&] { return await(w, at, v); }); }));
  keep(w, Scope::quiet(w));
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
  XIO_PERF_BY_SCOPE(s, dim3(1), threads_of(s, threads), put_pingpong)
}

void launch_put_signal_pingpong(scope s, unsigned threads, const work& w) {
  XIO_PERF_BY_SCOPE(s, dim3(1), threads_of(s, threads), put_signal_pingpong)
}

}  // namespace xio::perf
