// SPDX-License-Identifier: MIT
// Calls on a stream that the host refuses, and failures, of which the first ends all later calls.
#pragma once
#include <xio/host.h>

#include <chrono>
#include <functional>
#include <vector>

#include "stream_moves.hpp"

namespace stream_test {

// --- What is refused ---------------------------------------------------------------------------------

struct refusal {
  xio_status_t status;
  const char* part;  // of the sentence
  std::function<xio_status_t()> call;
};

inline bool on_host() {
#if defined(XIO_ON_HOST)
  return true;
#else
  return false;
#endif
}

// A stream of another GPU, where there is one. HIP before 6 does not say whose a stream is.
inline void refuse_elsewhere(const place& p) {
  int device = 0, devices = 0;
  MUST(hipGetDevice(&device));
  MUST(hipGetDeviceCount(&devices));
#if defined(XIO_ON_HIP)
  if (HIP_VERSION_MAJOR < 6) return;
#endif
  if (devices < 2) return;
  hipStream_t stream;
  MUST(hipSetDevice((device + 1) % devices));
  MUST(hipStreamCreate(&stream));
  rig::expect_status(xio_sync_all_on_stream(p.t.world(), p.t.ctx, stream, nullptr), XIO_ERR_ARG,
                     "another GPU's stream");
  rig::expect(std::strstr(xio_last_error(), "this PE's is") != nullptr, "'%s'", xio_last_error());
  MUST(hipStreamDestroy(stream));
  MUST(hipSetDevice(device));
}

inline void refuse_all(const place& p) {
  xio_world_t* w = p.t.world();
  xio_ctx_t other = p.t.ctx;
  other.view = nullptr;
  xio_ctx_t gone{}, none{};
  MUST(xio_ctx_create(w, nullptr, &gone));
  MUST(xio_ctx_destroy(w, gone));
  xio_team_t changed = p.team;
  ++changed.n_pes;
  xio_stream_attr_t flags = XIO_STREAM_ATTR_INIT, many = XIO_STREAM_ATTR_INIT, unsized{};
  flags.flags = 1;
  many.workgroups = 5000;
  hipStream_t ended;
  MUST(hipStreamCreate(&ended));
  MUST(hipStreamDestroy(ended));
  const xio_ctx_t& c = p.t.ctx;
  const xio_stream_t s = p.stream;
  uint64_t own[16] = {};
  const size_t huge = SIZE_MAX / 2;
  const std::vector<refusal> table = {
      {XIO_ERR_ARG, "world is null", [&] { return xio_put_on_stream(nullptr, c, p.dst, p.src, 8, 0, s, nullptr); }},
      {XIO_ERR_ARG, "the ctx is empty", [&] { return xio_put_on_stream(w, none, p.dst, p.src, 8, 0, s, nullptr); }},
      {XIO_ERR_STATE, "was destroyed already", [&] { return xio_quiet_on_stream(w, gone, s, nullptr); }},
      {XIO_ERR_ARG, "give that value, unchanged", [&] { return xio_quiet_on_stream(w, other, s, nullptr); }},
      {XIO_ERR_PE, "not one of this world's",
       [&] { return xio_put_on_stream(w, c, p.dst, p.src, 8, p.t.n, s, nullptr); }},
      {XIO_ERR_PE, "PE -1 is not", [&] { return xio_get_on_stream(w, c, p.dst, p.src, 8, -1, s, nullptr); }},
      {XIO_ERR_ARG, "dst is null", [&] { return xio_put_on_stream(w, c, nullptr, p.src, 8, 0, s, nullptr); }},
      {XIO_ERR_ARG, "src is null", [&] { return xio_put_on_stream(w, c, p.dst, nullptr, 8, 0, s, nullptr); }},
      {XIO_ERR_NOT_SYMMETRIC, "dst", [&] { return xio_put_on_stream(w, c, own, p.src, 8, 0, s, nullptr); }},
      {XIO_ERR_NOT_SYMMETRIC, "src", [&] { return xio_get_on_stream(w, c, p.dst, own, 8, 0, s, nullptr); }},
      {XIO_ERR_NOT_SYMMETRIC, "XIO_HEAP_SIZE",
       [&] { return xio_put_on_stream(w, c, p.dst, p.src, huge, 0, s, nullptr); }},
      {XIO_ERR_ARG, "8-byte aligned",
       [&] {
         return xio_signal_wait_on_stream(w, c, reinterpret_cast<uint64_t*>(p.dst + 4), XIO_CMP_EQ, 0, s, nullptr);
       }},
      {XIO_ERR_NOT_SYMMETRIC, "sig", [&] { return xio_signal_take_on_stream(w, c, own, 1, s, nullptr); }},
      {XIO_ERR_ARG, "op is 7",
       [&] { return xio_signal_op_on_stream(w, c, p.sig, 1, static_cast<xio_signal_op_t>(7), 0, s, nullptr); }},
      {XIO_ERR_ARG, "cmp is 6",
       [&] { return xio_signal_wait_on_stream(w, c, p.sig, static_cast<xio_cmp_t>(6), 0, s, nullptr); }},
      {XIO_ERR_STATE, "the team is empty", [&] { return xio_team_sync_on_stream(w, c, xio_team_t{}, s, nullptr); }},
      {XIO_ERR_ARG, "the team is not as", [&] { return xio_team_barrier_on_stream(w, c, changed, s, nullptr); }},
      {XIO_ERR_ARG, "more than a size can say",
       [&] { return xio_alltoall_on_stream(w, c, p.team, p.dst, p.src, huge + 1, s, nullptr); }},
      {XIO_ERR_ARG, "root is",
       [&] { return xio_broadcast_on_stream(w, c, p.team, p.dst, p.src, 8, p.t.n, s, nullptr); }},
      {XIO_ERR_ARG, "more than a size can say",
       [&] {
         return xio_reduce_on_stream(w, c, p.team, XIO_REDUCE_SUM, XIO_DOUBLE, p.dst, p.src, SIZE_MAX / 4, s, nullptr);
       }},
      {XIO_ERR_ARG, "for integers",
       [&] { return xio_reduce_on_stream(w, c, p.team, XIO_REDUCE_XOR, XIO_FLOAT, p.dst, p.src, 1, s, nullptr); }},
      {XIO_ERR_ARG, "type is 12",
       [&] {
         return xio_reduce_on_stream(w, c, p.team, XIO_REDUCE_SUM, static_cast<xio_type_t>(12), p.dst, p.src, 1, s,
                                     nullptr);
       }},
      {XIO_ERR_CONFIG, "xio_stream_attr_t.size", [&] { return xio_quiet_on_stream(w, c, s, &unsized); }},
      {XIO_ERR_CONFIG, "flags", [&] { return xio_quiet_on_stream(w, c, s, &flags); }},
      {XIO_ERR_CONFIG, "at most 1024", [&] { return xio_quiet_on_stream(w, c, s, &many); }},
      {XIO_ERR_ARG, "first is null", [&] { return xio_ctx_failed(w, c, nullptr); }},
  };
  for (const refusal& r : table) {
    rig::expect_status(r.call(), r.status, r.part);
    rig::expect(std::strstr(xio_last_error(), r.part) != nullptr, "'%s' has no '%s'", xio_last_error(), r.part);
  }
  refuse_elsewhere(p);
  // HIP and CUDA follow such a pointer.
  if (on_host())
    rig::expect_status(xio_quiet_on_stream(w, c, ended, nullptr), XIO_ERR_IO, "a stream that was destroyed");
  // On the host platform kernels reach all memory.
  if (p.t.route != "direct" || !on_host())
    rig::expect_status(xio_put_on_stream(w, c, p.dst, own, 8, p.next(), s, nullptr), XIO_ERR_NOT_REGISTERED,
                       "a source that neither kernels nor engines reach");
  p.sync();
}

// --- Failures ----------------------------------------------------------------------------------------

template <class Body>
inline double seconds_of(Body&& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline void expect_first(const place& p, xio_status_t wanted, const char* what) {
  xio_status_t first = XIO_PENDING;
  MUST(xio_ctx_failed(p.t.world(), p.t.ctx, &first));
  rig::expect_status(first, wanted, what);
}

// One call waits in vain, and 99 others end with it: well before two deadlines. Or earlier, where a NIC reports why.
inline void fail_once(place& p, const char* what, bool has_nic, const std::function<void()>& give) {
  p.attr.timeout_ms = 400;
  const double took = seconds_of([&] {
    for (int i = 0; i < 100; ++i) give();
    p.sync();
  });
  p.attr.timeout_ms = 0;
  const xio_status_t found = *static_cast<volatile xio_status_t*>(p.status);
  const xio_status_t wanted = has_nic && found == XIO_ERR_TRANSPORT ? found : XIO_ERR_TIMEOUT;
  rig::expect(took < 5 && (took > 0.3 || found == XIO_ERR_TRANSPORT), "%s: 100 calls took %.2f s", what, took);
  rig::expect_status(found, wanted, what);
  expect_first(p, wanted, what);
  const xio_error_info_t info = rig::error_of(p.t);
  rig::expect(info.status == wanted && info.sentence[0] != 0, "%s: xio_ctx_error has '%s'", what, info.sentence);
}

// A ctx that has failed, and a team that nobody has used: a collective of several kernels does nothing at all.
inline void leave_out_large(place& p) {
  xio_team_t fresh;
  MUST(xio_team_world(p.t.world(), &fresh));
  const bytes_t poison(p.room(), rig::k_poison);
  rig::team::write(p.dst, poison);
  p.t.barrier();
  p.attr.workgroups = 3;
  const double took = seconds_of([&] {
    GIVE(xio_fcollect_on_stream, fresh, p.dst, p.src, k_most);
    p.sync();
  });
  p.attr.workgroups = 0;
  rig::expect_status(*static_cast<volatile xio_status_t*>(p.status), XIO_ERR_TIMEOUT, "a large collective behind it");
  rig::expect(took < 5, "a large collective behind a failure took %.2f s", took);
  p.t.barrier();
  rig::expect_same(rig::team::read(p.dst, p.room()), poison, "a large collective behind a failure");
  MUST(xio_team_destroy(p.t.world(), fresh));
}

inline void fail_all(place& p) {
  expect_first(p, XIO_OK, "nothing");
  fail_once(p, "a signal that nobody sends", false, [&] { GIVE(xio_signal_wait_on_stream, p.sig, XIO_CMP_EQ, 77); });
  leave_out_large(p);
  // Another thread sees it, and clears it.
  std::thread([&] {
    expect_first(p, XIO_ERR_TIMEOUT, "another thread");
    MUST(xio_ctx_clear(p.t.world(), p.t.ctx));
  }).join();
  expect_first(p, XIO_OK, "after xio_ctx_clear");
  const xio_error_info_t info = rig::error_of(p.t);
  rig::expect_status(info.status, XIO_OK, "xio_ctx_error after xio_ctx_clear");
  p.t.barrier();
  expect_moved(p, k_rows[0], 1001);
}

}  // namespace stream_test
