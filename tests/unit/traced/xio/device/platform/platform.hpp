// SPDX-License-Identifier: MIT
// The host's platform with the orders of a GPU's: accesses to flags are relaxed and fences order. Accesses and fences
// of system scope are written down, for passing_on.cpp, which looks through the list with the models' rules.
#pragma once
#include <sched.h>
#include <time.h>

#include <cstring>
#include <vector>

#include "xio/device/platform/host_exec.hpp"
#include "xio/status.h"

// As GPUs of AMD, and those of NVIDIA that have one-way fences, watch flags: by relaxed loads and one fence.
#define XIO_WATCHES_BY_FENCE 1

#define load host_load
#define store host_store
#define exchange host_exchange
#define compare_exchange host_compare_exchange
#define fetch_add host_fetch_add
#define add host_add
#define fence host_fence
#define fence_after_loads host_fence_after_loads
#define fence_before_stores host_fence_before_stores
#define k_acquire_by_fence k_host_acquire_by_fence
#define k_release_by_fence k_host_release_by_fence
#define store_word_if host_store_word_if
#define load_word_if host_load_word_if
#define store_pair host_store_pair
#define store_pair_if host_store_pair_if
#define load_pair host_load_pair
#include_next <xio/device/platform/platform.hpp>
#undef store_word_if
#undef load_word_if
#undef store_pair
#undef store_pair_if
#undef load_pair
#undef load
#undef store
#undef exchange
#undef compare_exchange
#undef fetch_add
#undef add
#undef fence
#undef fence_after_loads
#undef fence_before_stores
#undef k_acquire_by_fence
#undef k_release_by_fence

namespace xio::dev {

namespace traced {
enum class kind { load, store, change, fence, mark };
struct event {
  kind what;
  order how;
  std::uint64_t at, value;  // where, and what was stored or loaded; of a change what it left
  std::uint64_t before;     // of a change: what it found
};
inline thread_local std::vector<event>* events = nullptr;

template <scope S>
void note(const event& e) {
  if (S != scope::system || events == nullptr) return;
  // A loop that waits looks often, and nothing comes of what it has seen before.
  if (e.what == kind::load && !events->empty()) {
    const event& last = events->back();
    if (last.what == kind::load && last.at == e.at && last.value == e.value) return;
  }
  events->push_back(e);
}
template <class T>
std::uint64_t bits(const T& value) {
  std::uint64_t all = 0;
  std::memcpy(&all, &value, sizeof value);
  return all;
}
template <class T>
std::uint64_t place(const T* p) {
  return reinterpret_cast<std::uint64_t>(p);
}
}  // namespace traced

constexpr order k_acquire_by_fence = order::relaxed;
constexpr order k_release_by_fence = order::relaxed;

template <scope S, order O, class T>
T load(const T* p) {
  const T value = host_load<S, order::seq_cst>(p);
  traced::note<S>({traced::kind::load, O, traced::place(p), traced::bits(value), 0});
  return value;
}
template <scope S, order O, class T>
void store(T* p, T value) {
  // The event is noted before the store: a thread that sees the value must find the event's place in the list taken.
  traced::note<S>({traced::kind::store, O, traced::place(p), traced::bits(value), 0});
  host_store<S, order::seq_cst>(p, value);
}
template <scope S, order O, class T>
T exchange(T* p, T value) {
  const T old = host_exchange<S, order::seq_cst>(p, value);
  traced::note<S>({traced::kind::change, O, traced::place(p), traced::bits(value), traced::bits(old)});
  return old;
}
template <scope S, order O, class T>
bool compare_exchange(T* p, T& expected, T desired) {
  const bool done = host_compare_exchange<S, order::seq_cst>(p, expected, desired);
  if (done) traced::note<S>({traced::kind::change, O, traced::place(p), traced::bits(desired), traced::bits(expected)});
  return done;
}
template <scope S, order O, class T>
T fetch_add(T* p, T value) {
  const T old = host_fetch_add<S, order::seq_cst>(p, value);
  const T now = static_cast<T>(old + value);
  traced::note<S>({traced::kind::change, O, traced::place(p), traced::bits(now), traced::bits(old)});
  return old;
}
template <scope S, order O, class T>
void add(T* p, T value) {
  (void)fetch_add<S, O>(p, value);
}
template <scope S, order O>
void fence() {
  host_fence<S, order::seq_cst>();
  traced::note<S>({traced::kind::fence, O, 0, 0, 0});
}
template <scope S>
void fence_after_loads() {
  fence<S, order::acquire>();
}
template <scope S>
void fence_before_stores() {
  fence<S, order::release>();
}

// As plain.hpp has them, by the accesses above.
inline void store_word_if(bool good, u64* at, u64 value) {
  if (good) store<scope::system, k_release_by_fence>(at, value);
}
template <class T>
T load_word_if(bool good, const T* at) {
  return good ? load<scope::system, k_acquire_by_fence>(at) : T{};
}
inline void store_pair(u64* at, u64 a, u64 b) {
  store<scope::system, k_release_by_fence>(at, a);
  store<scope::system, k_release_by_fence>(at + 1, b);
}
inline void store_pair_if(bool good, u64* at, u64 a, u64 b) {
  if (good) store_pair(at, a, b);
}
inline void load_pair(const u64* at, u64& a, u64& b) {
  a = load<scope::system, k_acquire_by_fence>(at);
  b = load<scope::system, k_acquire_by_fence>(at + 1);
}

}  // namespace xio::dev
