// SPDX-License-Identifier: MIT
// What each party of each litmus test does. The register that a party returns is what count() of litmus.hpp judges.
#pragma once
#include "tools/xio-verify/litmus_access.hpp"

namespace xio::verify {

// The words of one instance.
struct litmus_cell {
  u64 *data, *flag, *second;
  u64 base;  // of what is written to data
};
XIO_HOST_DEVICE litmus_cell cell_of(const litmus_work& w, u32 instance) {
  u64* flag = w.flags + u64{instance} * 2 * k_words_per_line;
  return {w.data + u64{instance} * k_words_per_line, flag, flag + k_words_per_line, 1000 + u64{instance} * 16};
}

enum class publish { store, add, fence, unordered };

template <scope S, publish P>
XIO_HOST_DEVICE void raise(u64* flag) {
  if constexpr (P == publish::store) {
    store<S, order::release>(flag, 1);
  } else if constexpr (P == publish::add) {
    add<S, order::release>(flag, 1);
  } else {
    if constexpr (P == publish::fence) fence<S, order::release>();
    store<S, order::relaxed>(flag, 1);
  }
}

enum class observe { acquire, get, unordered };

template <scope S>
XIO_HOST_DEVICE bool await(const litmus_work& w, const u64* flag) {
  return wait_for(w, [&] { return load_relaxed<S>(flag) != 0; });
}
template <scope S, observe O>
XIO_HOST_DEVICE u64 look_behind(const litmus_cell& c) {
  if constexpr (O == observe::acquire) fence<S, order::acquire>();
  return count_old_words < O == observe::get ? loads::past_caches : loads::plain > (c.data, c.base);
}

// Brings the line into this party's caches before it changes.
XIO_HOST_DEVICE void warm(const litmus_work& w, const litmus_cell& c) {
  if (count_old_words<loads::plain>(c.data, c.base) == 0) store_relaxed(gave_up(w), 1);  // nobody has written yet
}

// Returns 1 + the register, or 0 if somebody did not come.
template <scope S, publish P, observe O>
XIO_HOST_DEVICE u64 pass(const litmus_work& w, const litmus_cell& c, u32 party) {
  if (party == 0) {
    write_entry(c.data, c.base);
    raise<S, P>(c.flag);
    return 1;
  }
  return await<S>(w, c.flag) ? 1 + look_behind<S, O>(c) : 0;
}

template <publish P, observe O>
XIO_HOST_DEVICE u64 pass_on(const litmus_work& w, const litmus_cell& c, u32 party) {
  constexpr scope S = scope::system;
  if (party != 1) return pass<S, P, O>(w, {c.data, party == 0 ? c.flag : c.second, nullptr, c.base}, party);
  if (!await<S>(w, c.flag)) return 0;
  if constexpr (O == observe::acquire) fence<S, order::acquire>();
  raise<S, P>(c.second);
  return 1;
}

template <bool Ordered>
XIO_HOST_DEVICE u64 buffer_stores(const litmus_cell& c, u32 party) {
  store_relaxed(party == 0 ? c.data : c.flag, 1);
  keep_program_order();
  if constexpr (Ordered) fence<scope::system, order::seq_cst>();
  return 1 + load_relaxed(party == 0 ? c.flag : c.data);
}

enum class after_load { ordered, dependent, unordered };

template <after_load How>
XIO_HOST_DEVICE u64 buffer_loads(const litmus_cell& c, u32 party) {
  const u64 found = load_relaxed(party == 0 ? c.flag : c.data);
  u64* to = party == 0 ? c.data : c.flag;
  if constexpr (How == after_load::ordered) {
    fence<scope::system, order::acquire>();
    store<scope::system, order::release>(to, 1);
  } else if constexpr (How == after_load::dependent) {
    // Never 2, which the compiler does not know.
    if (found != 2) store_relaxed(to, 1);
  } else {
    keep_program_order();
    store_relaxed(to, 1);
  }
  return 1 + found;
}

XIO_HOST_DEVICE u64 read_in_order(const litmus_cell& c, u32 party) {
  constexpr u32 steps = 16;
  if (party == 0) {
    for (u64 k = 1; k <= steps; ++k) store_relaxed(c.data, k);
    return 1;
  }
  u64 backwards = 0, last = 0;
  for (u32 k = 0; k < 4 * steps; ++k) {
    const u64 found = load_relaxed(c.data);
    backwards += found < last ? 1 : 0;
    last = found;
  }
  return 1 + backwards;
}

template <scope S>
XIO_HOST_DEVICE u64 add_up(const litmus_work& w, const litmus_cell& c, u32 party, u64 turn) {
  constexpr u32 times = 8, parties = 2;
  for (u32 k = 0; k < times; ++k) add<S, order::relaxed>(c.data, 1);
  fence<scope::system, order::seq_cst>();
  if (!pass_gate(w, party, parties, turn)) return 0;
  return load_relaxed<S>(c.data) == times * parties ? 1 : 2;
}

template <litmus T>
XIO_HOST_DEVICE u64 act(const litmus_work& w, const litmus_cell& c, u32 party, u64 turn) {
  using enum litmus;
  constexpr scope all = scope::system, one = scope::agent;
  if constexpr (T == pass_by_store) return pass<all, publish::store, observe::acquire>(w, c, party);
  if constexpr (T == pass_by_add) return pass<all, publish::add, observe::acquire>(w, c, party);
  if constexpr (T == pass_by_fence) return pass<all, publish::fence, observe::acquire>(w, c, party);
  if constexpr (T == pass_to_get) return pass<all, publish::store, observe::get>(w, c, party);
  if constexpr (T == pass_unordered) return pass<all, publish::unordered, observe::unordered>(w, c, party);
  if constexpr (T == pass_in_gpu_by_store) return pass<one, publish::store, observe::acquire>(w, c, party);
  if constexpr (T == pass_in_gpu_by_add) return pass<one, publish::add, observe::acquire>(w, c, party);
  if constexpr (T == litmus::pass_on) return verify::pass_on<publish::store, observe::acquire>(w, c, party);
  if constexpr (T == pass_on_unordered) return verify::pass_on<publish::unordered, observe::unordered>(w, c, party);
  if constexpr (T == store_buffering) return buffer_stores<true>(c, party);
  if constexpr (T == store_buffering_unordered) return buffer_stores<false>(c, party);
  if constexpr (T == load_buffering) return buffer_loads<after_load::ordered>(c, party);
  if constexpr (T == load_buffering_dependent) return buffer_loads<after_load::dependent>(c, party);
  if constexpr (T == load_buffering_unordered) return buffer_loads<after_load::unordered>(c, party);
  if constexpr (T == coherence) return read_in_order(c, party);
  if constexpr (T == adds) return add_up<all>(w, c, party, turn);
  if constexpr (T == adds_in_gpu) return add_up<one>(w, c, party, turn);
}

template <litmus T>
XIO_HOST_DEVICE void play_party(const litmus_work& w, u32 party, u32 parties) {
  constexpr bool reads_entry = T <= litmus::pass_on_unordered;
  for (u32 i = 0; i < w.instances; ++i) {
    const litmus_cell c = cell_of(w, i);
    if (reads_entry && party == parties - 1) warm(w, c);
    if (!pass_gate(w, party, parties, 2 * u64{i} + 1)) return;
    stagger(party, i);
    store_relaxed(w.registers + u64{party} * w.instances + i, act<T>(w, c, party, 2 * u64{i} + 2));
  }
  store_relaxed(w.gate + party * k_words_per_line, ~u64{0});
}

// Calls play_party for the test of that number.
template <int I = 0>
XIO_HOST_DEVICE void play_any(int test, const litmus_work& w, u32 party, u32 parties) {
  if (test == I) return play_party<static_cast<litmus>(I)>(w, party, parties);
  if constexpr (I + 1 < k_litmus_count) play_any<I + 1>(test, w, party, parties);
}

}  // namespace xio::verify
