// SPDX-License-Identifier: MIT
#include "ring_stress.hpp"

#include <xio/hip.h>

#include "xio/device/impl/ring.hpp"

namespace xio::test {
namespace {

using namespace xio::dev;
using u32 = dev::u32;
using u64 = dev::u64;

// Time for the others to come in between.
__device__ void dawdle(u32 turns) {
  for (u32 i = 0; i < turns; ++i) xio::dev::pause();
}

struct test_codec {
  static constexpr bool k_in_order = true;
  XIO_DEVICE static void announce(const ring_view& r, u64 from, u64 to) {
    auto* words = reinterpret_cast<shared_words*>(r.rdma.completions);
    const u64 before = load<scope::system, order::relaxed>(&words->doorbell);
    if (before != from || to <= from || to - from > r.depth)
      fetch_add<scope::agent, order::relaxed>(words->bad_doorbells, 1u);
    store<scope::system, order::release>(&words->doorbell, to);
    dawdle(mix(static_cast<u32>(to)) % 4);
  }
  XIO_DEVICE static u64 drain(const ring_view& r, u64 completed) {
    const auto* words = reinterpret_cast<const shared_words*>(r.rdma.completions);
    const u32 fence = load<scope::system, order::acquire>(&words->fence);
    const u32 ahead = fence - static_cast<u32>(completed);
    dawdle(mix(fence) % 4);
    if (ahead != 0) ring_complete(r, completed, completed + ahead);
    return completed + ahead;
  }
};

__global__ void post_kernel(const job* j) {
  const u32 lane = workgroup_index() * workgroup_size() + thread_in_workgroup();
  for (u32 i = 0; i < j->ops; ++i) {
    const u32 op = lane * j->ops + i;
    const u32 luck = mix(op + 0x9e3779b9u);
    if (luck % 4 == 0) dawdle(luck % 7);
    const ring_view& r = j->rings[ring_of(op, j->rings_used)];
    const u32 slots = slots_of(op, j->most_slots);
    xio_status_t status = XIO_OK;
    u64 ticket = 0;
    u64 first = ~u64{0};
    for_each_key(reinterpret_cast<u64>(&r), [&](const lanes& group) {
      status = ring_post<test_codec>(group, r, *j->world, ring_claim{slots, 0, 5}, &ticket, [&](u64 at, bool last) {
        first = at;
        for (u32 s = 0; s < slots; ++s) {
          entry64 e;
          e.dw[0] = static_cast<u32>(at + s);
          e.dw[1] = static_cast<u32>((at + s) >> 32);
          e.dw[2] = op;
          e.dw[3] = last && s + 1 == slots ? k_ends_batch : 0;
          for (u32 k = 4; k < 16; ++k) e.dw[k] = filler(at + s, k);
          if (luck % 16 == 1) dawdle(luck % 5);  // a hole for the others
          store_entry(ring_slot(r, at + s, sizeof e), e);
        }
      });
    });
    bool good = status == XIO_OK && ticket == first + slots - 1;
    if (good && luck % 8 == 3) good = ring_wait_below<test_codec>(r, ticket + 1, *j->world) == XIO_OK;
    if (!good) fetch_add<scope::agent, order::relaxed>(j->failures, 1u);
  }
  for (u32 k = 0; k < j->rings_used; ++k) {
    if (ring_quiet<test_codec>(j->rings[k], *j->world) != XIO_OK)
      fetch_add<scope::agent, order::relaxed>(j->failures, 1u);
  }
}

}  // namespace

bool post_from_kernel(const job* j, u32 groups, u32 lanes_each) {
  hipLaunchKernelGGL(post_kernel, dim3(groups), dim3(lanes_each), 0, nullptr, j);
  return hipDeviceSynchronize() == hipSuccess;
}

}  // namespace xio::test
