// SPDX-License-Identifier: MIT
// How words that peers change are watched.
#pragma once
#include <type_traits>

#include "xio/device/impl/atomic.hpp"
#include "xio/device/impl/deadline.hpp"
#include "xio/device/impl/forms.hpp"
#include "xio/device/impl/hdp.hpp"
#include "xio/device/impl/own_queues.hpp"

namespace xio::dev {

// After flags that were looked at with direct::k_watch_load: what their writers did before is visible.
XIO_DEVICE void watched() {
  if constexpr (direct::k_watch_load == order::relaxed) fence<scope::system, order::acquire>();
}

// Polls until done() or the deadline; `c` is a ctx or its view, and `since` as for deadline::in. A flag that is on its
// way comes within the first few looks, so nothing stands between these. The clock costs more than a look, so it is
// read only now and then, first when the flag has not come for a while, and so is the HDP flushed, where the flag
// itself may wait. Every k_drain_ms drain(c) drains queues, unless it is no_queues: the word may wait for an op that
// has failed, and then the failure is the result. then() makes the result once the flag has come: at each way out of
// the loops, so that nothing asks afterwards which one it was; late(0) makes it where the deadline has passed, and no
// queue has failed. late(since) notes, now and then, that the wait lasts.
constexpr u64 k_drain_ms = 2;
struct no_record {
  XIO_DEVICE xio_status_t operator()(u64) const { return XIO_ERR_TIMEOUT; }
};
template <u32 InLine, class Ctx, class Drain, class Done, class Then, class Late>
XIO_DEVICE xio_status_t poll_since(const Ctx& c, u64* since, const Drain& drain, Done&& done, Then&& then,
                                   Late&& late) {
  constexpr u32 polls = 32;
  if constexpr (InLine != 0) {
    XIO_UNROLL for (u32 i = 0; i < InLine; ++i) if (done()) return then();
  }
  if constexpr (!k_pauses_at_once) {
    // A loop of its own: the less there is in it, the sooner the next look.
    XIO_ROLLED for (u32 i = 0; i < polls; ++i) if (done()) return then();
  }
  deadline end{};
  u64 drained = 0;
  XIO_ROLLED for (u32 round = 0;; ++round) {
    XIO_ROLLED for (u32 i = 0; i < polls; ++i) {
      if (done()) return then();
      pause();
    }
    if (round == 0) end = deadline::in(world_of(c), since, Drain::k_own_timeout ? own_timeout_of(c) : 0);
    if (const xio_status_t status = hdp_nudge(c); status != XIO_OK) return status;
    const bool over = round % 2 == 1 && !end.wait_more();
    const u64 now = wall_clock();
    if (round == 0) drained = now;
    if (over || now - drained > k_drain_ms * world_of(c).ticks_per_ms) {
      const bool notes = is_another_beat(drained, now);
      drained = now;
      if constexpr (!std::is_same_v<Drain, no_queues>)
        if (const xio_status_t failure = drain(c); failure != XIO_OK) return done() ? then() : failure;
      if (over || notes) {
        const xio_status_t status = late(over ? 0 : end.start);
        if (over) return status;
      }
    }
  }
}

// The only wait of its call.
template <u32 InLine = k_polls_in_line, class Ctx, class Done, class Then, class Late = no_record>
XIO_DEVICE xio_status_t poll_then(const Ctx& c, Done&& done, Then&& then, Late&& late = {}) {
  u64 since = 0;
  return poll_since<InLine>(c, &since, own_queues{}, done, then, late);
}

// The same, and then what its writer did before the flag.
template <class Drain, class Ctx, class Done, class Late = no_record>
XIO_DEVICE xio_status_t poll_flag_since(const Ctx& c, u64* since, const Drain& drain, Done&& done, Late&& late = {}) {
  const auto then = [] {
    watched();
    return XIO_OK;
  };
  return poll_since<k_polls_in_line>(c, since, drain, done, then, late);
}
template <class Ctx, class Done>
XIO_DEVICE xio_status_t poll_flag(const Ctx& c, Done&& done) {
  u64 since = 0;
  return poll_flag_since(c, &since, own_queues{}, done);
}

// And the data that came with it.
template <u32 InLine = k_polls_in_line, class Ctx, class Done, class Late = no_record>
XIO_DEVICE xio_status_t poll(const Ctx& c, Done&& done, Late&& late = {}) {
  return poll_then<InLine>(
      c, done,
      [&] {
        watched();
        return hdp_flush(c);
      },
      late);
}

template <class T>
constexpr bool k_is_watchable = (std::is_integral_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8) ||
                                std::is_same_v<T, float> || std::is_same_v<T, double>;

template <class T>
XIO_DEVICE bool holds(T found, int cmp, T value) {
  switch (cmp) {
    case XIO_CMP_EQ: return found == value;
    case XIO_CMP_NE: return found != value;
    case XIO_CMP_GT: return found > value;
    case XIO_CMP_GE: return found >= value;
    case XIO_CMP_LT: return found < value;
    default: return found <= value;
  }
}

template <class T>
XIO_DEVICE xio_status_t check_ivar(const xio_ctx_t& ctx, const T* ivar, int cmp) {
  static_assert(k_is_watchable<T>, "waits look at integers of 1, 2, 4 or 8 bytes, float and double");
  if (ctx.view == nullptr) return XIO_ERR_STATE;
  const bool known = cmp >= XIO_CMP_EQ && cmp <= XIO_CMP_LE;
  return ivar != nullptr && known && (reinterpret_cast<u64>(ivar) & (sizeof(T) - 1)) == 0 ? XIO_OK : XIO_ERR_ARG;
}

// The value that every element is compared with, or one for each.
template <class T>
struct one_for_all {
  T value;
  XIO_DEVICE T of(u64) const { return value; }
  XIO_DEVICE bool there() const { return true; }
};
template <class T>
struct one_for_each {
  const T* values;
  XIO_DEVICE T of(u64 i) const { return values[i]; }
  XIO_DEVICE bool there() const { return values != nullptr && (reinterpret_cast<u64>(values) & (sizeof(T) - 1)) == 0; }
};

// Elements to look at, and the comparison that each must pass.
template <class T, class Wanted = one_for_all<T>>
struct watch {
  const T* ivars;
  const int* status;
  u64 count;
  int cmp;
  Wanted wanted;

  XIO_DEVICE bool counts(u64 i) const { return status == nullptr || status[i] == 0; }
  XIO_DEVICE bool passes(u64 i) const {
    return holds(load<scope::system, direct::k_watch_load>(&ivars[i]), cmp, wanted.of(i));
  }
  XIO_DEVICE bool empty() const {
    for (u64 i = 0; i < count; ++i)
      if (counts(i)) return false;
    return true;
  }
  // From *from on; leaves *from at the first that does not pass.
  XIO_DEVICE bool all(u64* from) const {
    for (; *from < count; ++*from)
      if (counts(*from) && !passes(*from)) return false;
    return true;
  }
  XIO_DEVICE bool any(u64* index) const {
    for (u64 i = 0; i < count; ++i) {
      if (!counts(i) || !passes(i)) continue;
      *index = i;
      return true;
    }
    return false;
  }
  XIO_DEVICE bool some(size_t* indices, u64* found) const {
    *found = 0;
    for (u64 i = 0; i < count; ++i)
      if (counts(i) && passes(i)) indices[(*found)++] = i;
    return *found != 0;
  }
  XIO_DEVICE xio_status_t check(const xio_ctx_t& ctx) const {
    if (ctx.view != nullptr && count == 0) return XIO_OK;
    const xio_status_t checked = check_ivar(ctx, ivars, cmp);
    return checked == XIO_OK && !wanted.there() ? XIO_ERR_ARG : checked;
  }
};

template <class T>
XIO_DEVICE watch<T, one_for_each<T>> each_of(const T* ivars, const int* status, u64 count, int cmp, const T* values) {
  return {ivars, status, count, cmp, {values}};
}

// One look, or polling: what the two families differ in.
struct poll_once {
  static constexpr bool k_waits = false;
  template <class Done, class Late = no_record>
  XIO_DEVICE xio_status_t operator()(const xio_ctx_t& c, Done&& done, Late&& = {}) const {
    give_way();
    if (!done()) {
      // How often the caller looks is not known here, so every look that fails flushes.
      if (!hdp_is_on(c)) return XIO_PENDING;
      if (const xio_status_t status = hdp_flush(c); status != XIO_OK) return status;
      if (!done()) return XIO_PENDING;
    }
    watched();
    return hdp_flush(c);
  }
};
struct stay {
  static constexpr bool k_waits = true;
  template <class Done, class Late = no_record>
  XIO_DEVICE xio_status_t operator()(const xio_ctx_t& c, Done&& done, Late&& late = {}) const {
    return poll(c, done, late);
  }
};
// For several words: a look at them is a loop by itself.
struct stay_for_many {
  static constexpr bool k_waits = true;
  template <class Done, class Late = no_record>
  XIO_DEVICE xio_status_t operator()(const xio_ctx_t& c, Done&& done, Late&& late = {}) const {
    return poll<0>(c, done, late);
  }
};
// Takes the entry or value that is there now, for reads that compare nothing.
struct newest {
  template <class Done, class Late = no_record>
  XIO_DEVICE xio_status_t operator()(const xio_ctx_t& c, Done&& done, Late&& = {}) const {
    give_way();
    if (const xio_status_t status = hdp_flush(c); status != XIO_OK) return status;
    done();
    watched();
    return hdp_flush(c);
  }
};

// A value as a record keeps it.
template <class T>
XIO_DEVICE u64 recorded(T value) {
  if constexpr (std::is_integral_v<T>) return static_cast<u64>(value);
  return bit_copy<u64>(static_cast<double>(value));
}

// late() of words. Seldom, hence the second look at the word. Not where a queue of the ctx has failed with a
// timeout, too: the queue's own record says more.
template <class T>
XIO_DEVICE auto missed(const xio_ctx_t& ctx, call_kind kind, const T* first, u64 words, int cmp, T value) {
  return [=, &ctx](u64 since) {
    constexpr u32 type = !std::is_integral_v<T> ? k_compares_float : std::is_signed_v<T> ? k_compares_signed : 0;
    const T found = load<scope::system, direct::k_watch_load>(first);
    record_wait(
        {kind, k_no_pe, first, sizeof(T), static_cast<u32>(cmp) | type, words, recorded(value), recorded(found)},
        ctx_of(ctx), since);
    return XIO_ERR_TIMEOUT;
  };
}

template <class How, class T>
XIO_DEVICE xio_status_t until(const xio_ctx_t& ctx, const T* ivar, int cmp, T value, T* found, call_kind kind) {
  if (const xio_status_t status = check_ivar(ctx, ivar, cmp); status != XIO_OK) [[unlikely]]
    return refuse(ctx, status, call_of(kind, ivar, sizeof(T))).status;
  return How{}(
      ctx,
      [&] {
        const T now = load<scope::system, direct::k_watch_load>(ivar);
        if (found != nullptr) *found = now;
        return holds(now, cmp, value);
      },
      [&](u64 since) { return missed<T>(ctx, kind, ivar, 1, cmp, value)(since); });
}

template <class How, class T, class Wanted>
XIO_DEVICE xio_status_t until_all(const xio_ctx_t& ctx, const watch<T, Wanted>& w) {
  constexpr call_kind kind = How::k_waits ? call_kind::wait_until_all : call_kind::test_until;
  if (const xio_status_t status = w.check(ctx); status != XIO_OK)
    return refuse(ctx, status, call_of(kind, w.ivars, sizeof(T))).status;
  u64 from = 0;
  // late: the first that does not pass.
  return How{}(
      ctx, [&] { return w.all(&from); },
      [&](u64 since) { return missed<T>(ctx, kind, w.ivars + from, w.count - from, w.cmp, w.wanted.of(from))(since); });
}

template <class How, class T, class Wanted>
XIO_DEVICE xio_status_t until_any(const xio_ctx_t& ctx, const watch<T, Wanted>& w, size_t* index) {
  constexpr call_kind kind = How::k_waits ? call_kind::wait_until_any : call_kind::test_until;
  xio_status_t status = w.check(ctx);
  if (status == XIO_OK && index == nullptr) status = XIO_ERR_ARG;
  if (status != XIO_OK) return refuse(ctx, status, call_of(kind, w.ivars, sizeof(T))).status;
  u64 at = ~u64{0};
  const auto late = [&](u64 since) { return missed<T>(ctx, kind, w.ivars, w.count, w.cmp, w.wanted.of(0))(since); };
  if (!w.empty())
    status = How{}(
        ctx, [&] { return w.any(&at); }, late);
  *index = static_cast<size_t>(at);
  return status;
}

template <class How, class T, class Wanted>
XIO_DEVICE xio_status_t until_some(const xio_ctx_t& ctx, const watch<T, Wanted>& w, size_t* indices, size_t* count) {
  constexpr call_kind kind = How::k_waits ? call_kind::wait_until_some : call_kind::test_until;
  xio_status_t status = w.check(ctx);
  if (status == XIO_OK && (count == nullptr || (indices == nullptr && w.count != 0))) status = XIO_ERR_ARG;
  if (status != XIO_OK) return refuse(ctx, status, call_of(kind, w.ivars, sizeof(T))).status;
  u64 found = 0;
  const auto late = [&](u64 since) { return missed<T>(ctx, kind, w.ivars, w.count, w.cmp, w.wanted.of(0))(since); };
  if (!w.empty())
    status = How{}(
        ctx, [&] { return w.some(indices, &found); }, late);
  *count = static_cast<size_t>(found);
  return status;
}

}  // namespace xio::dev

// --- The calls ---------------------------------------------------------------------------------------

template <class T>
XIO_DEVICE xio_status_t xio_wait_until(const xio_ctx_t& ctx, const T* ivar, xio_cmp_t cmp,
                                       std::type_identity_t<T> value) {
  return xio::dev::until<xio::dev::stay, T>(ctx, ivar, cmp, value, nullptr, xio::dev::call_kind::wait_until);
}
template <class T>
XIO_DEVICE xio_status_t xio_test_until(const xio_ctx_t& ctx, const T* ivar, xio_cmp_t cmp,
                                       std::type_identity_t<T> value) {
  return xio::dev::until<xio::dev::poll_once, T>(ctx, ivar, cmp, value, nullptr, xio::dev::call_kind::test_until);
}

// Of several words: `turn` polls, or looks once; the last argument is the watch of them.
#define XIO_DEFINE_SEVERAL(all, any, some, turn, wanted, ...)                                                          \
  template <class T>                                                                                                   \
  XIO_DEVICE xio_status_t all(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status, xio_cmp_t cmp,    \
                              wanted) {                                                                                \
    return xio::dev::until_all<xio::dev::turn>(ctx, __VA_ARGS__);                                                      \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  XIO_DEVICE xio_status_t any(const xio_ctx_t& ctx, const T* ivars, size_t count, const int* status, xio_cmp_t cmp,    \
                              wanted, size_t* index) {                                                                 \
    return xio::dev::until_any<xio::dev::turn>(ctx, __VA_ARGS__, index);                                               \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  XIO_DEVICE xio_status_t some(const xio_ctx_t& ctx, const T* ivars, size_t count, size_t* indices, const int* status, \
                               xio_cmp_t cmp, wanted, size_t* found) {                                                 \
    return xio::dev::until_some<xio::dev::turn>(ctx, __VA_ARGS__, indices, found);                                     \
  }
XIO_DEFINE_SEVERAL(xio_wait_until_all, xio_wait_until_any, xio_wait_until_some, stay_for_many,
                   std::type_identity_t<T> value, xio::dev::watch<T>{ivars, status, count, cmp, {value}})
XIO_DEFINE_SEVERAL(xio_test_all, xio_test_any, xio_test_some, poll_once, std::type_identity_t<T> value,
                   xio::dev::watch<T>{ivars, status, count, cmp, {value}})
XIO_DEFINE_SEVERAL(xio_wait_until_all_vector, xio_wait_until_any_vector, xio_wait_until_some_vector, stay_for_many,
                   const T* values, xio::dev::each_of(ivars, status, count, cmp, values))
XIO_DEFINE_SEVERAL(xio_test_all_vector, xio_test_any_vector, xio_test_some_vector, poll_once, const T* values,
                   xio::dev::each_of(ivars, status, count, cmp, values))
#undef XIO_DEFINE_SEVERAL

XIO_DEVICE xio::dev::deadline xio_deadline(const xio_ctx_t& ctx) {
  return ctx.view == nullptr ? xio::dev::deadline{xio::dev::deadline_clock(), 0}
                             : xio::dev::deadline::in(xio::dev::world_of(ctx));
}
XIO_DEVICE bool xio_deadline_passed(const xio::dev::deadline& d) {
  xio::dev::give_way();
  return d.passed();
}
XIO_DEVICE bool xio_pause_until(const xio::dev::deadline& d) { return d.wait_more(); }
XIO_DEVICE xio_status_t xio_hdp_flush(const xio_ctx_t& ctx) {
  return ctx.view == nullptr ? XIO_ERR_STATE : xio::dev::hdp_flush(ctx);
}
XIO_DEVICE void xio_pause() { xio::dev::pause(); }
