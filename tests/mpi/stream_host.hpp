// SPDX-License-Identifier: MIT
// Calls of the host (xio/host.h), which are made on streams of the library.
#pragma once
#include <thread>

#include "stream_failures.hpp"

namespace stream_test {

// --- Calls of the host -------------------------------------------------------------------------------

inline bool passes(xio_status_t status, const char* call) {
  rig::expect(status == XIO_OK, "%s: %s", call, xio_last_error());
  return status == XIO_OK;
}
#define BY_HOST(call, ...) passes(call(p.t.world(), p.t.ctx, __VA_ARGS__), #call)

// Each PE changes a word of the next PE, which nobody else changes.
inline void change_words(const place& p) {
  uint64_t* const word = p.sig;
  const int pe = p.next();
  uint64_t old = 0;
  const auto expect_old = [&](uint64_t wanted, const char* what) {
    rig::expect(old == wanted, "%s: the word was %llu", what, rig::ull(old));
  };
  BY_HOST(xio_host_atomic_set, word, 5, pe);
  BY_HOST(xio_host_atomic_fetch_add, word, 3, pe, &old);
  expect_old(5, "fetch_add");
  BY_HOST(xio_host_atomic_swap, word, uint64_t{1} << 40, pe, &old);
  expect_old(8, "swap");
  BY_HOST(xio_host_atomic_compare_swap, word, uint64_t{1} << 40, 7, pe, &old);
  expect_old(uint64_t{1} << 40, "compare_swap");
  BY_HOST(xio_host_atomic_compare_swap, word, 8, 9, pe, &old);
  expect_old(7, "compare_swap of another value");
  BY_HOST(xio_host_atomic_fetch, word, pe, &old);
  expect_old(7, "fetch");
  p.t.barrier();
  BY_HOST(xio_host_signal_wait, word, XIO_CMP_EQ, 7, 0);
  p.t.barrier();
  BY_HOST(xio_host_atomic_set, word, 0, pe);
  p.t.barrier();
  // Threads beside each other, each in a stream of its own.
  constexpr int k_threads = 4, k_adds = 20;
  std::vector<std::thread> threads;
  std::vector<std::string> failures(k_threads);
  for (int k = 0; k < k_threads; ++k)
    threads.emplace_back([&, k] {
      for (int i = 0; i < k_adds; ++i)
        if (xio_host_atomic_fetch_add(p.t.world(), p.t.ctx, word, 1, 0, nullptr) != XIO_OK)
          failures[static_cast<size_t>(k)] += std::to_string(i) + ": " + xio_last_error() + "; ";
    });
  for (std::thread& one : threads) one.join();
  for (const std::string& f : failures) rig::expect(f.empty(), "a thread's adds: %s", f.c_str());
  p.t.barrier();
  BY_HOST(xio_host_atomic_fetch, word, 0, &old);
  expect_old(static_cast<uint64_t>(k_threads * k_adds * p.t.n), "adds of all threads");
  p.t.barrier();
  BY_HOST(xio_host_atomic_set, word, 0, p.t.me);
  p.t.barrier();
}

inline void call_from_host(const place& p) {
  for (const size_t bytes : {size_t{0}, size_t{8}, size_t{1001}, k_most}) {
    rig::team::write(p.dst, bytes_t(p.room(), rig::k_poison));
    p.t.barrier();
    BY_HOST(xio_host_put, p.dst, p.src, bytes, p.next());
    rig::expect_status(xio_host_quiet(p.t.world(), p.t.ctx), XIO_OK, "xio_host_quiet");
    BY_HOST(xio_host_put_signal, p.dst + k_most, p.src, bytes, p.sig, 3, XIO_SIGNAL_ADD, p.next());
    BY_HOST(xio_host_signal_op, p.sig, 2, XIO_SIGNAL_ADD, p.next());
    BY_HOST(xio_host_signal_wait, p.sig, XIO_CMP_GE, 5, 0);
    BY_HOST(xio_host_get, p.dst + k_most, p.dst, bytes, p.t.me);
    p.t.barrier();
    bytes_t wanted = place::block(p.last(), 0, bytes);
    wanted.resize(k_most, rig::k_poison);
    const bytes_t first = wanted;
    wanted.insert(wanted.end(), first.begin(), first.end());
    wanted.resize(p.room(), rig::k_poison);
    rig::expect_same(rig::team::read(p.dst, p.room()), wanted, ("by the host, " + std::to_string(bytes)).c_str());
    BY_HOST(xio_host_atomic_set, p.sig, 0, p.t.me);
    p.t.barrier();
  }
  change_words(p);
}

// A failure of the host's is its own, and the next call is made; one of calls on streams does not end the host's.
inline void fail_from_host(const place& p) {
  xio_world_t* w = p.t.world();
  const xio_ctx_t& c = p.t.ctx;
  uint64_t own[2] = {};
  const std::vector<refusal> table = {
      {XIO_ERR_ARG, "world is null", [&] { return xio_host_quiet(nullptr, c); }},
      {XIO_ERR_ARG, "the ctx is empty", [&] { return xio_host_quiet(w, xio_ctx_t{}); }},
      {XIO_ERR_PE, "xio_host_put: PE", [&] { return xio_host_put(w, c, p.dst, p.src, 8, p.t.n); }},
      {XIO_ERR_NOT_SYMMETRIC, "dst", [&] { return xio_host_put(w, c, own, p.src, 8, 0); }},
      {XIO_ERR_ARG, "old is null", [&] { return xio_host_atomic_fetch(w, c, p.sig, 0, nullptr); }},
      {XIO_ERR_NOT_SYMMETRIC, "sig", [&] { return xio_host_atomic_set(w, c, own, 1, 0); }},
      {XIO_ERR_TIMEOUT,
       "xio_host_signal_wait: ", [&] { return xio_host_signal_wait(w, c, p.sig, XIO_CMP_EQ, 9, 300); }},
  };
  for (const refusal& r : table) {
    xio_status_t got = XIO_OK;
    const double took = seconds_of([&] { got = r.call(); });
    rig::expect_status(got, r.status, r.part);
    rig::expect(std::strstr(xio_last_error(), r.part) != nullptr, "'%s' has no '%s'", xio_last_error(), r.part);
    rig::expect(took < 5 && (took > 0.2) == (r.status == XIO_ERR_TIMEOUT), "%s took %.2f s", r.part, took);
  }
  expect_first(p, XIO_OK, "after failures of the host's calls");
  BY_HOST(xio_host_put, p.dst, p.src, 8, p.t.me);
  xio_stream_attr_t soon = XIO_STREAM_ATTR_INIT;
  soon.timeout_ms = 100;
  rig::expect_status(xio_signal_wait_on_stream(w, c, p.sig, XIO_CMP_EQ, 9, p.stream, &soon), XIO_OK, "a wait in vain");
  p.sync();
  expect_first(p, XIO_ERR_TIMEOUT, "a wait in vain");
  BY_HOST(xio_host_put, p.dst, p.src, 8, p.t.me);
  MUST(xio_ctx_clear(w, c));
  p.t.barrier();
}

}  // namespace stream_test
