// SPDX-License-Identifier: MIT
// Kernels that hold a ctx which was destroyed, or whose world was finalized: each call of the device API returns
// XIO_ERR_STATE, on every route. Loads and stores of the kernel itself ask nobody (docs/ordering.md, Contexts that are
// gone), and the quiet behind them says so.
#include <xio/team.h>

#include "rig.hpp"

namespace {

// The values that a kernel holds from before.
struct held {
  xio_ctx_t ctx;
  xio_team_t team;
  xio_storage_t storage;
  xio_req_t put, write;
  uint64_t* words;  // symmetric: 64, zero but for word 1
  float* floats;    // symmetric, 128
  int to;
};

// The calls, by the numbers that rma(), together() and alone() have.
// clang-format off
constexpr const char* k_names[] = {
    "xio_put", "xio_put_nbi", "xio_put_wg", "xio_get", "xio_get_nbi", "xio_p", "xio_iput", "xio_iget", "xio_put_2d",
    "xio_get_2d", "xio_atomic_set", "xio_atomic_add", "xio_atomic_add of float", "xio_put_signal",
    "xio_put_signal_nbi", "xio_signal_op", "xio_put_counter", "xio_put_signal_counter", "xio_put_packet",
    "xio_team_sync", "xio_team_barrier_wg", "xio_broadcast_wg", "xio_reduce_wg", "xio_sync_all", "xio_put_imm",
    "xio_imm_test", "xio_barrier_all", "xio_barrier_all_wg", "xio_quiet", "xio_quiet_wg", "xio_quiet_pe", "xio_fence",
    "xio_fence_pe", "xio_read", "xio_write_nbi", "xio_storage_sync", "xio_ctx_create_wg", "xio_ctx_destroy_wg",
    "xio_wait of a put", "xio_test of a put", "xio_wait_until", "xio_signal_wait_until", "xio_wait_until_any",
    "xio_wait_packet", "xio_g", "xio_atomic_fetch_add", "xio_atomic_compare_swap"};
// clang-format on
constexpr int k_count = sizeof k_names / sizeof k_names[0];
static_assert(k_count == 47);
// By loads and stores a call may succeed that touches the memory of the heap, which GPUs do not have any more once the
// world is finalized; all others are XIO_ERR_STATE, and all are by engines.
bool touches_heap(int f) { return f < 24 || f == 38 || f == 39 || f > 43; }

__device__ xio_status_t rma(int f, const held& h) {
  uint64_t* at = h.words + 8;
  uint64_t* from = h.words + 16;
  switch (f) {
    case 0: return xio_put(h.ctx, at, from, 64, h.to);
    case 1: return xio_wait(h.ctx, xio_put_nbi(h.ctx, at, from, 64, h.to));
    case 2: return xio_put_wg(h.ctx, at, from, 64, h.to);
    case 3: return xio_get(h.ctx, from, at, 64, h.to);
    case 4: return xio_wait(h.ctx, xio_get_nbi(h.ctx, from, at, 64, h.to));
    case 5: return xio_p(h.ctx, at, uint64_t{1}, h.to);
    case 6: return xio_iput(h.ctx, at, from, 2, 1, 4, h.to);
    case 7: return xio_iget(h.ctx, from, at, 2, 1, 4, h.to);
    case 8: return xio_put_2d(h.ctx, at, 32, from, 16, 8, 2, h.to);
    case 9: return xio_get_2d(h.ctx, from, 32, at, 16, 8, 2, h.to);
    case 10: return xio_atomic_set(h.ctx, at, uint64_t{1}, h.to);
    case 11: return xio_atomic_add(h.ctx, at, uint64_t{1}, h.to);
    case 12: return xio_atomic_add(h.ctx, h.floats, 1.0f, h.to);
    case 13: return xio_put_signal(h.ctx, at, from, 8, at + 1, 1, XIO_SIGNAL_SET, h.to);
    case 14: return xio_wait(h.ctx, xio_put_signal_nbi(h.ctx, at, from, 8, at + 1, 1, XIO_SIGNAL_ADD, h.to));
    case 15: return xio_signal_op(h.ctx, at, 1, XIO_SIGNAL_ADD, h.to);
    case 16: return xio_put_counter(h.ctx, at, from, 8, from + 1, h.to);
    case 17: return xio_put_signal_counter(h.ctx, at, from, 8, at + 1, 1, XIO_SIGNAL_SET, from + 1, h.to);
    default: return xio_put_packet(h.ctx, at, from, 8, 1, h.to);
  }
}

__device__ xio_status_t together(int f, const held& h) {
  uint64_t* at = h.words + 8;
  uint64_t* from = h.words + 16;
  uint32_t immediate = 0;
  // A call that fails may leave its channel broken.
  const auto channel = static_cast<uint32_t>(f) % 4;
  switch (f) {
    case 19: return xio_team_sync(h.ctx, xio_team_channel(h.team, channel));
    case 20: return xio_team_barrier_wg(h.ctx, xio_team_channel(h.team, channel));
    case 21: return xio_broadcast_wg(h.ctx, xio_team_channel(h.team, channel), at, from, 64, 0);
    case 22:
      return xio_reduce_wg<xio_reduction::sum>(h.ctx, xio_team_channel(h.team, channel), h.floats + 64, h.floats, 16);
    case 23: return xio_sync_all(h.ctx);
    case 24: return xio_put_imm(h.ctx, at, from, 8, 1, h.to);
    case 25: return xio_imm_test(h.ctx, &immediate, h.to);
    case 26: return xio_barrier_all(h.ctx);
    default: return xio_barrier_all_wg(h.ctx);
  }
}

__device__ xio_status_t alone(int f, const held& h) {
  uint64_t* from = h.words + 16;
  xio_ctx_t own = h.ctx;
  size_t index = 0;
  uint64_t old = 0;
  switch (f) {
    case 28: return xio_quiet(h.ctx);
    case 29: return xio_quiet_wg(h.ctx);
    case 30: return xio_quiet_pe(h.ctx, h.to);
    case 31: return xio_fence(h.ctx);
    case 32: return xio_fence_pe(h.ctx, h.to);
    case 33: return h.storage.view == nullptr ? XIO_ERR_STATE : xio_read(h.ctx, from, h.storage, 0, 512);
    case 34:
      return h.storage.view == nullptr ? XIO_ERR_STATE : xio_wait(h.ctx, xio_write_nbi(h.ctx, from, h.storage, 0, 512));
    case 35: return h.storage.view == nullptr ? XIO_ERR_STATE : xio_storage_sync(h.ctx, h.storage);
    case 36: return xio_ctx_create_wg(h.ctx, &own);
    case 37: return xio_ctx_destroy_wg(h.ctx, &own);
    case 38: return xio_wait(h.ctx, h.put);
    case 39: return xio_test(h.ctx, h.put);
    case 40: return xio_wait_until(h.ctx, h.words, XIO_CMP_NE, 0);
    case 41: return xio_signal_wait_until(h.ctx, h.words, XIO_CMP_NE, 0);
    case 42: return xio_wait_until_any(h.ctx, h.words, 1, nullptr, XIO_CMP_NE, 0, &index);
    case 43: return xio_wait_packet(h.ctx, from, h.words, 8, 77);
    case 44: old = xio_g(h.ctx, h.words + 8, h.to); break;
    case 45: old = xio_atomic_fetch_add(h.ctx, h.words + 8, 1, h.to); break;
    default: old = xio_atomic_compare_swap(h.ctx, h.words + 8, 1, 2, h.to); break;
  }
  // These have no status.
  const xio_status_t said = xio_quiet(h.ctx);
  return said == XIO_OK && old != ~uint64_t{0} ? XIO_ERR_INTERNAL : said;
}

__global__ void use(held h, int f, int* status, int* quiet) {
  *status = f < 19 ? rma(f, h) : f < 28 ? together(f, h) : alone(f, h);
  *quiet = xio_quiet(h.ctx);
}

__global__ void leave_a_put(held h, xio_req_t* request) {
  *request = xio_put_nbi(h.ctx, h.words + 24, h.words + 16, 64, h.to);
  xio_quiet(h.ctx);
}

bool on_host_platform() {
#if defined(XIO_ON_HOST)
  return true;
#else
  return false;
#endif
}

void use_all(const held& h, bool by_loads, const char* when, bool finalized) {
  for (int f = 0; f < k_count; ++f) {
    const bool heap = by_loads && touches_heap(f);
    // There the words that calls wait for are no memory any more.
    if (finalized && !on_host_platform() && (by_loads || (f >= 19 && f < 24) || (f >= 40 && f < 44))) continue;
    const rig::device_array<int> out(2);
    RUN(use, 1, 1, h, f, out.data(), out.data() + 1);
    const auto status = static_cast<xio_status_t>(out.get()[0]);
    rig::expect(status == XIO_ERR_STATE || (heap && status == XIO_OK), "%s after its %s: %s", k_names[f], when,
                xio_status_name(status));
    rig::expect_status(out.get()[1], XIO_ERR_STATE, "quiet behind it");
  }
}

// Other contexts do not take the place of one that was destroyed a moment ago.
void many(xio_world_t* world, const held& h) {
  xio_ctx_t one{};
  for (int i = 0; i < 100; ++i) {
    MUST(xio_ctx_create(world, nullptr, &one));
    rig::expect(one.view != h.ctx.view, "the view of a ctx that was destroyed is used again after %d", i);
    MUST(xio_ctx_destroy(world, one));
  }
}

}  // namespace

int main() {
  xio_init_attr_t init = XIO_INIT_ATTR_INIT;
  xio_world_t* world = nullptr;
  MUST(xio_init(&init, &world));
  const int me = xio_my_pe(world), n = xio_n_pes(world);
  held h{};
  h.to = (me + 1) % n;
  MUST(xio_ctx_create(world, nullptr, &h.ctx));
  MUST(xio_team_world(world, &h.team));
  void* memory = nullptr;
  MUST(xio_calloc(world, 128, 8, &memory));
  h.words = static_cast<uint64_t*>(memory);
  h.floats = reinterpret_cast<float*>(h.words + 64);
  const std::string path = "/tmp/xio_gone_" + std::to_string(getpid());
  xio_storage_attr_t drive = XIO_STORAGE_ATTR_INIT;
  drive.flags = XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE;
  drive.bytes = 1 << 20;
  if (xio_storage_open(world, ("file:" + path).c_str(), &drive, &h.storage) != XIO_OK) h.storage = {};
  const std::string route = xio_route_name(world, h.ctx, 8, h.to);
  const rig::device_array<xio_req_t> request(1);
  RUN(leave_a_put, 1, 1, h, request.data());
  h.put = request.get()[0];
  MUST(xio_host_barrier(world));
  MUST(xio_ctx_destroy(world, h.ctx));
  use_all(h, route == "direct", "end", false);
  MUST(xio_host_barrier(world));
  many(world, h);
  MUST(xio_finalize(world));
  use_all(h, route == "direct", "world's end", true);
  unlink(path.c_str());
  return rig::verdict(rig::text("gone: PE %d of %d, route %s", me, n, route.c_str()).c_str());
}
