// SPDX-License-Identifier: MIT
// Single values: p and g of 2, 4 and 8 bytes, atomics of 4 and 8; streams of p are in put_values.hip. The effect of an
// op on a word does not depend on the sign.
//
// An op that fetches returns a value and no status: 0 if it failed, and then quiet says why. So a wrong value
// ends the measurement, and quiet is called after it.
#include "tools/xio-perf/timing.hpp"

namespace xio::perf {
namespace {

// Op number k on a word; returns the bits that are wrong in the value fetched, 0 if none. `wrong` is the result of
// earlier ops: the compiler does not know that it is 0 in every lane, and so does not join the lanes' adds to one,
// which takes longer than the add of one lane.
template <atomic_op Op, class T>
XIO_DEVICE T change(const work& w, T* word, std::uint64_t k, T wrong) {
  constexpr T bits = static_cast<T>(0x5a5a5a5a5a5a5a5aULL);
  constexpr T base = static_cast<T>(k_word_base);
  const T now = static_cast<T>(base + static_cast<T>(k));
  const T next = static_cast<T>(now + 1);
  T old = value_after<T>(Op, base, k);
  const T expected = old;
  switch (Op) {
    case atomic_op::inc: xio_atomic_inc<T>(w.ctx, word, w.peer); break;
    case atomic_op::add: xio_atomic_add<T>(w.ctx, word, T{3}, w.peer); break;
    case atomic_op::set: xio_atomic_set<T>(w.ctx, word, next, w.peer); break;
    case atomic_op::bit_and: xio_atomic_and<T>(w.ctx, word, bits, w.peer); break;
    case atomic_op::bit_or: xio_atomic_or<T>(w.ctx, word, bits, w.peer); break;
    case atomic_op::bit_xor: xio_atomic_xor<T>(w.ctx, word, bits, w.peer); break;
    case atomic_op::fetch: old = xio_atomic_fetch<T>(w.ctx, word, w.peer); break;
    case atomic_op::swap: old = xio_atomic_swap<T>(w.ctx, word, next, w.peer); break;
    case atomic_op::compare_swap: old = xio_atomic_compare_swap<T>(w.ctx, word, now, next, w.peer); break;
    case atomic_op::fetch_inc: old = xio_atomic_fetch_inc<T>(w.ctx, word, w.peer); break;
    case atomic_op::fetch_add: old = xio_atomic_fetch_add<T>(w.ctx, word, static_cast<T>(T{3} + wrong), w.peer); break;
    case atomic_op::fetch_and: old = xio_atomic_fetch_and<T>(w.ctx, word, bits, w.peer); break;
    case atomic_op::fetch_or: old = xio_atomic_fetch_or<T>(w.ctx, word, bits, w.peer); break;
    case atomic_op::fetch_xor: old = xio_atomic_fetch_xor<T>(w.ctx, word, bits, w.peer); break;
  }
  return static_cast<T>(old ^ expected);
}

XIO_DEVICE void count_wrong(const work& w, bool bad) {
  if (bad) dev::fetch_add<dev::scope::agent, dev::order::relaxed>(w.bad, std::uint64_t{1});
}

constexpr bool fetches(atomic_op op) { return op >= atomic_op::fetch; }

// Calls body with the op as a type: what is measured is the op, not the choice among fourteen.
template <atomic_op Op>
struct fixed {
  static constexpr atomic_op op = Op;
};
template <class Body>
XIO_DEVICE void with_op(atomic_op op, Body&& body) {
  switch (op) {
    case atomic_op::inc: return body(fixed<atomic_op::inc>{});
    case atomic_op::add: return body(fixed<atomic_op::add>{});
    case atomic_op::set: return body(fixed<atomic_op::set>{});
    case atomic_op::bit_and: return body(fixed<atomic_op::bit_and>{});
    case atomic_op::bit_or: return body(fixed<atomic_op::bit_or>{});
    case atomic_op::bit_xor: return body(fixed<atomic_op::bit_xor>{});
    case atomic_op::fetch: return body(fixed<atomic_op::fetch>{});
    case atomic_op::swap: return body(fixed<atomic_op::swap>{});
    case atomic_op::compare_swap: return body(fixed<atomic_op::compare_swap>{});
    case atomic_op::fetch_inc: return body(fixed<atomic_op::fetch_inc>{});
    case atomic_op::fetch_add: return body(fixed<atomic_op::fetch_add>{});
    case atomic_op::fetch_and: return body(fixed<atomic_op::fetch_and>{});
    case atomic_op::fetch_or: return body(fixed<atomic_op::fetch_or>{});
    case atomic_op::fetch_xor: return body(fixed<atomic_op::fetch_xor>{});
  }
}

template <class T>
__global__ void put_scalar_latency(work w) {
  const operands o = operands::of(w);
  const std::size_t count = o.bytes / sizeof(T);
  keep(w, timed(w, [&](std::uint32_t) {
         for (std::size_t e = threadIdx.x; e < count; e += blockDim.x)
           xio_p<T>(w.ctx, values<T>(o.dst) + e, values<T>(o.src)[e], o.peer);
         return xio_quiet_wg(w.ctx);
       }));
}

template <class T>
__global__ void get_scalar_latency(work w) {
  T sum = 0;
  const T* const word = values<T>(in_register(w.src));
  const xio_status_t status = timed(w, [&](std::uint32_t) {
    const T value = xio_g<T>(w.ctx, word, w.peer);
    sum ^= value;
    // The pattern's first value is never 0.
    return value != T{0} ? XIO_OK : XIO_PENDING;
  });
  if (status != XIO_OK) {
    // A 0 for which quiet knows no reason is wrong data.
    if (keep(w, xio_quiet(w.ctx))) *w.bad += 1;
    return;
  }
  // One value was fetched again and again: an odd number of times leaves it, an even one nothing.
  const bool odd = ((w.warm_up + w.iterations) & 1) != 0;
  T value = xio_g<T>(w.ctx, values<T>(w.src), w.peer);
  values<T>(w.dst)[0] = value;
  if (sum != (odd ? value : T{0})) *w.bad += 1;
  keep(w, xio_quiet(w.ctx));
}

template <class T>
__global__ void atomic_latency(work w) {
  with_op(w.atomic, [&](auto with) {
    constexpr atomic_op op = decltype(with)::op;
    T wrong = 0;
    T* const word = values<T>(in_register(w.dst));
    const std::uint64_t first = in_register(w.first);
    const xio_status_t status = timed(w, [&](std::uint32_t i) {
      // The result of the ops before: no check of this op's value is waited for, the next op uses it.
      const T before = wrong;
      wrong |= change<op>(w, word, first + i, wrong);
      if constexpr (fetches(op)) {
        return before == 0 ? XIO_OK : XIO_PENDING;
      } else {
        return xio_quiet(w.ctx);
      }
    });
    if (!fetches(op)) keep(w, status);
    count_wrong(w, wrong != 0);
  });
  keep(w, xio_quiet(w.ctx));
}

template <class T>
__global__ void get_scalar_bandwidth(work w) {
  const std::size_t count = w.bytes / sizeof(T);
  streamed(w, [&](std::uint32_t) {
    for (std::size_t e = group_index(by_thread{}); e < count; e += group_count(by_thread{}))
      values<T>(w.dst)[e] = xio_g<T>(w.ctx, values<T>(w.src) + e, w.peer);
  });
}

template <class T>
__global__ void atomic_bandwidth(work w) {
  const std::size_t count = w.bytes / sizeof(T);
  with_op(w.atomic, [&](auto with) {
    T wrong = 0;
    streamed(w, [&](std::uint32_t i) {
      for (std::size_t e = group_index(by_thread{}); e < count; e += group_count(by_thread{}))
        wrong |= change<decltype(with)::op>(w, values<T>(w.dst) + e, w.first + i, wrong);
    });
    count_wrong(w, wrong != 0);
  });
}

}  // namespace

void launch_scalar_latency(bool fetching, unsigned threads, const work& w) {
  if (fetching) {
    XIO_PERF_BY_ANY_SIZE(get_scalar_latency, dim3(1), dim3(1))
  } else {
    XIO_PERF_BY_ANY_SIZE(put_scalar_latency, dim3(1), dim3(threads))
  }
}

void launch_atomic_latency(const work& w) { XIO_PERF_BY_SIZE(atomic_latency, dim3(1), dim3(1)) }

void launch_get_scalar_bandwidth(dim3 grid, dim3 block, const work& w) {
  XIO_PERF_BY_ANY_SIZE(get_scalar_bandwidth, grid, block)
}

void launch_atomic_bandwidth(dim3 grid, dim3 block, const work& w) { XIO_PERF_BY_SIZE(atomic_bandwidth, grid, block) }

}  // namespace xio::perf
