// SPDX-License-Identifier: MIT
// The C boundary of xio/host.h: each call goes into a stream of the library's own, and is waited for.
#include "xio/host.h"

#include "base/error.hpp"
#include "stream/checks.hpp"

namespace xio::stream {
namespace {

// A stream of the library's own with one call of the host in it, and the words by which its end is seen.
class own_stream {
 public:
  // Out of those that are kept; makes one where all are in use.
  own_stream() {
    {
      kept& k = all();
      const std::lock_guard hold(k.lock);
      if (!k.free.empty()) {
        parts_ = std::move(k.free.back());
        k.free.pop_back();
      }
    }
    if (parts_.stream == nullptr) {
      parts_.words = gpu::buffer(2 * sizeof(std::uint64_t), gpu::place::shared);
      parts_.mark = gpu::buffer(sizeof(std::uint32_t), gpu::place::device);
      if (const char* why = make_stream(&parts_.stream))
        fail(XIO_ERR_IO, "the runtime makes no stream for calls of the host: {}", why);
    }
    *status() = XIO_PENDING;
  }
  own_stream& operator=(own_stream&&) = delete;
  // Keeps it for another call, unless its work has not ended: then it is lost, for that work stores to its words.
  ~own_stream() {
    if (parts_.stream == nullptr) return;
    kept& k = all();
    const std::lock_guard hold(k.lock);
    (given_ && !ended_ ? k.lost : k.free).push_back(std::move(parts_));
  }

  xio_stream_t handle() const { return parts_.stream; }
  xio_status_t* status() const { return parts_.words.as<xio_status_t>(); }
  // Where kernels store a word that the call returns.
  std::uint64_t* value() const { return parts_.words.as<std::uint64_t>() + 1; }
  // In the place of the ctx's word for the first failure: this call's failure is its own.
  std::uint32_t* mark() const { return parts_.mark.as<std::uint32_t>(); }

  // The call is in the stream. Waits for its status; XIO_PENDING: not there after timeout_ms (0: for ever).
  xio_status_t wait(std::uint64_t timeout_ms) {
    using clock = std::chrono::steady_clock;
    constexpr unsigned k_yields = 2000;
    given_ = true;
    const auto begin = clock::now();
    for (unsigned turn = 0;; ++turn) {
      const auto found = static_cast<xio_status_t>(__atomic_load_n(reinterpret_cast<int*>(status()), __ATOMIC_ACQUIRE));
      if (found != XIO_PENDING) {
        ended_ = true;
        if (found != XIO_OK) gpu::fill_zero(parts_.mark.data(), parts_.mark.size());
        return found;
      }
      if (turn < k_yields) {
        std::this_thread::yield();
        continue;
      }
      if (timeout_ms != 0 && clock::now() - begin > std::chrono::milliseconds(timeout_ms)) return XIO_PENDING;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

 private:
  struct parts {
    xio_stream_t stream = nullptr;
    gpu::buffer words;  // the host's: the status, and a value of 8 bytes
    gpu::buffer mark;   // the device's; zero between calls
  };
  struct kept {
    std::mutex lock;
    std::vector<parts> free, lost;
  };
  // Never destroyed: threads may call while the process ends, and the GPU's runtime may be gone by then.
  static kept& all() {
    static auto* one = new kept;
    return *one;
  }

  parts parts_;
  bool given_ = false, ended_ = false;
};

}  // namespace
}  // namespace xio::stream

namespace {

using xio::in_world;
using xio::not_null;
using xio::stream::call;
using xio::stream::job;
using xio::stream::order;
using xio::stream::own_stream;

constexpr std::uint64_t k_slack_ms = 1000;       // for the launch
constexpr std::uint64_t k_bytes_of_a_ms = 8192;  // of the slowest link that is waited for

// Twice the deadline of kernels, and the time that the bytes take.
std::uint64_t patience(const xio::world& w, std::uint32_t timeout_ms, std::uint64_t bytes) {
  const std::uint64_t world_ms = w.members().timeout_ms();
  if (world_ms == 0 || timeout_ms == UINT32_MAX) return 0;
  return 2 * std::max<std::uint64_t>(world_ms, timeout_ms) + k_slack_ms + bytes / k_bytes_of_a_ms;
}

[[noreturn]] void fail_late(const char* function, std::uint64_t ms) {
  xio::fail(
      XIO_ERR_TIMEOUT,
      "{}: the GPU has not run it within {} ms, since other work keeps it; end kernels that wait for something, and "
      "leave the call's memory as it is",
      function, ms);
}

[[noreturn]] void fail_as_ctx_says(const xio::world& w, const char* function, xio_ctx_t ctx, xio_status_t status) {
  const xio_error_info_t info = w.ctx_error(ctx);
  if (info.status == status) xio::fail(status, "{}: {}", function, info.sentence);
  xio::fail(status, "{}: {}", function, xio_status_name(status));
}

// check(order, job) checks the arguments and fills in the job. Returns what a kernel left in the stream's word.
template <class Check>
std::uint64_t carry_out(xio::world& w, const char* function, xio_ctx_t ctx, std::uint32_t timeout_ms, call what,
                        Check&& check) {
  own_stream s;
  const xio_stream_attr_t attr{sizeof(xio_stream_attr_t), s.status(), timeout_ms, 0, 0};
  order o(w, function, ctx, s.handle(), &attr);
  o.fails_alone(s.mark());
  job j{};
  j.dst = s.value();
  check(o, j);
  if (what >= call::put && what <= call::put_signal)
    o.copy(what, j);
  else
    o.give(what, j);
  const std::uint64_t ms = patience(w, timeout_ms, what <= call::put_signal ? j.bytes : 0);
  const xio_status_t status = s.wait(ms);
  if (status == XIO_PENDING) fail_late(function, ms);
  if (status != XIO_OK) fail_as_ctx_says(w, function, ctx, status);
  return *s.value();
}

// An atomic on a word of PE `pe`: what it was.
struct word_change {
  std::uint64_t* word;
  int pe;
  std::uint64_t value, expected;
};
std::uint64_t change(xio::world& w, const char* function, xio_ctx_t ctx, call what, const word_change& c) {
  return carry_out(w, function, ctx, 0, what, [&](const order& o, job& j) {
    o.pe(c.pe);
    o.word(c.word);
    j.pe = c.pe;
    j.sig = c.word;
    j.value = c.value;
    j.bytes = c.expected;
  });
}

}  // namespace

extern "C" {

#define XIO_HOST_CALL(what, timeout_ms, ...)                                \
  in_world(world, __func__, [&, function = __func__](xio::world& w) {       \
    (void)carry_out(w, function, ctx, timeout_ms, call::what, __VA_ARGS__); \
  })

xio_status_t xio_host_put(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes, int pe) {
  return XIO_HOST_CALL(put, 0, [&](const order& o, job& j) { fill_put(o, j, dst, src, bytes, pe); });
}

xio_status_t xio_host_get(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes, int pe) {
  return XIO_HOST_CALL(get, 0, [&](const order& o, job& j) { fill_get(o, j, dst, src, bytes, pe); });
}

xio_status_t xio_host_put_signal(xio_world_t* world, xio_ctx_t ctx, void* dst, const void* src, size_t bytes,
                                 uint64_t* sig, uint64_t value, xio_signal_op_t op, int pe) {
  return XIO_HOST_CALL(put_signal, 0, [&](const order& o, job& j) {
    fill_put(o, j, dst, src, bytes, pe);
    fill_signal(o, j, sig, value, op, pe);
  });
}

xio_status_t xio_host_signal_op(xio_world_t* world, xio_ctx_t ctx, uint64_t* sig, uint64_t value, xio_signal_op_t op,
                                int pe) {
  return XIO_HOST_CALL(signal_op, 0, [&](const order& o, job& j) { fill_signal(o, j, sig, value, op, pe); });
}

xio_status_t xio_host_signal_wait(xio_world_t* world, xio_ctx_t ctx, const uint64_t* sig, xio_cmp_t cmp, uint64_t value,
                                  uint32_t timeout_ms) {
  return XIO_HOST_CALL(signal_wait, timeout_ms, [&](const order& o, job& j) { fill_wait(o, j, sig, cmp, value); });
}

xio_status_t xio_host_quiet(xio_world_t* world, xio_ctx_t ctx) {
  return XIO_HOST_CALL(quiet, 0, [](const order&, job&) {});
}

#undef XIO_HOST_CALL

xio_status_t xio_host_atomic_fetch(xio_world_t* world, xio_ctx_t ctx, const uint64_t* word, int pe, uint64_t* old) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    not_null(old, function, "old");
    *old = change(w, function, ctx, call::atomic_fetch, {const_cast<uint64_t*>(word), pe, 0, 0});
  });
}

xio_status_t xio_host_atomic_set(xio_world_t* world, xio_ctx_t ctx, uint64_t* word, uint64_t value, int pe) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    (void)change(w, function, ctx, call::atomic_set, {word, pe, value, 0});
  });
}

xio_status_t xio_host_atomic_fetch_add(xio_world_t* world, xio_ctx_t ctx, uint64_t* word, uint64_t value, int pe,
                                       uint64_t* old) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    const std::uint64_t was = change(w, function, ctx, call::atomic_fetch_add, {word, pe, value, 0});
    if (old != nullptr) *old = was;
  });
}

xio_status_t xio_host_atomic_swap(xio_world_t* world, xio_ctx_t ctx, uint64_t* word, uint64_t value, int pe,
                                  uint64_t* old) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    const std::uint64_t was = change(w, function, ctx, call::atomic_swap, {word, pe, value, 0});
    if (old != nullptr) *old = was;
  });
}

xio_status_t xio_host_atomic_compare_swap(xio_world_t* world, xio_ctx_t ctx, uint64_t* word, uint64_t expected,
                                          uint64_t value, int pe, uint64_t* old) {
  return in_world(world, __func__, [&, function = __func__](xio::world& w) {
    const std::uint64_t was = change(w, function, ctx, call::atomic_compare_swap, {word, pe, value, expected});
    if (old != nullptr) *old = was;
  });
}

}  // extern "C"
