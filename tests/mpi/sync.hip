// SPDX-License-Identifier: MIT
// Barriers, the wait_until and test families, contexts of workgroups, waits for signals that never come, software
// devices that rest, and kernels right behind what the program gives back.
#include <sys/resource.h>
#include <xio/team.h>

#include "rig.hpp"

using rig::scope;

namespace {

// --- Barrier -----------------------------------------------------------------------------------------

template <scope S>
__device__ xio_status_t barrier(const xio_ctx_t& ctx, bool quiet) {
  return quiet ? RIG_BY_SCOPE(S, xio_barrier_all, ctx) : RIG_BY_SCOPE(S, xio_sync_all, ctx);
}

// In every round each PE puts the round's number to everybody; after the barrier everybody must have all of them, and
// a second barrier keeps the next round's away until all have looked.
template <scope S>
__global__ void rounds(xio_ctx_t ctx, uint64_t* slots, uint64_t* out, uint32_t count, int me, int n, int* bad) {
  for (uint32_t round = 1; round <= count; ++round) {
    if (threadIdx.x == 0) *out = round;
    __syncthreads();
    for (int pe = static_cast<int>(threadIdx.x); pe < n; pe += static_cast<int>(blockDim.x))
      xio_put_nbi(ctx, slots + me, out, sizeof *out, pe);
    if (barrier<S>(ctx, true) != XIO_OK) *bad = 1;
    for (int pe = static_cast<int>(threadIdx.x); pe < n; pe += static_cast<int>(blockDim.x))
      if (*static_cast<volatile uint64_t*>(slots + pe) != round) *bad = 2;
    if (barrier<S>(ctx, false) != XIO_OK) *bad = 3;
  }
}

template <scope S>
void barriers(const rig::team& t) {
  auto* slots = t.symmetric<uint64_t>(static_cast<size_t>(t.n));
  auto* out = t.symmetric<uint64_t>(1);
  rig::expect_steps(t, rig::text("barrier by a %s", rig::k_scope_names[S]), rounds<S>, 1, rig::k_threads_of[S], t.ctx,
                    slots, out, 100u, t.me, t.n);
}

// --- Barriers by several queues ----------------------------------------------------------------------

constexpr size_t k_backlog = 2 << 20;

// PE 0's first flag waits behind its puts, and the next two overtake it by another ctx's queue. PE 1 comes to the last
// of the three when the first flag has arrived, which must not be later than the others.
__global__ void overtaken(xio_ctx_t ctx, unsigned char* to, const unsigned char* from, uint64_t* marker, int puts,
                          int me, int* bad) {
  xio_ctx_t own{};
  if (xio_ctx_create_wg(ctx, &own) != XIO_OK) *bad = 1;
  if (me == 0)
    for (int i = 0; i < puts; ++i) xio_put_nbi(ctx, to, from, k_backlog, 1);
  if (xio_sync_all(me == 0 ? ctx : own) != XIO_OK) *bad = 2;
  if (me == 0 && xio_p(ctx, marker, uint64_t{1}, 1) != XIO_OK) *bad = 3;
  if (xio_sync_all(own) != XIO_OK) *bad = 4;
  if (me == 1 && xio_wait_until(ctx, marker, XIO_CMP_EQ, 1) != XIO_OK) *bad = 5;
  if (xio_sync_all(own) != XIO_OK) *bad = 6;
  if (xio_ctx_destroy_wg(ctx, &own) != XIO_OK || xio_quiet(ctx) != XIO_OK) *bad = 7;
}

void barriers_by_several_queues(const rig::team& t) {
  auto* to = t.symmetric<unsigned char>(k_backlog);
  auto* from = t.symmetric<unsigned char>(k_backlog);
  auto* marker = t.symmetric<uint64_t>(1);
  const rig::device_array<int> bad(1);
  t.barrier();
  // By loads and stores nothing waits behind anything, and one thread's copies take minutes under a checker of memory.
  const int puts = t.route == "direct" ? 1 : 200;
  if (t.n > 1) RUN(overtaken, 1, 1, t.ctx, to, from, marker, puts, t.me, bad.data());
  rig::expect(bad.get()[0] == 0, "a barrier whose flag was overtaken: step %d failed", bad.get()[0]);
  t.barrier();
}

// --- wait_until, test --------------------------------------------------------------------------------

constexpr size_t k_words = 8;

template <class T>
struct wait_area {
  T words[k_words];
  uint64_t go;
};

// Sets the neighbour's words one by one when it says so.
template <class T>
__global__ void waits(xio_ctx_t ctx, wait_area<T>* a, const int* leave_out, int right, int left, int* bad) {
  size_t index = 0, count = 0, list[k_words];
  const auto next = [&](uint64_t step) {
    if (xio_signal_op(ctx, &a->go, step, XIO_SIGNAL_SET, left) != XIO_OK) *bad = 100;
  };
  const auto expect_value = [&](uint64_t step, size_t word, long value) {
    if (xio_signal_wait_until(ctx, &a->go, XIO_CMP_GE, step) != XIO_OK) *bad = 101;
    if (xio_p(ctx, &a->words[word], static_cast<T>(value), right) != XIO_OK) *bad = 102;
  };
  const auto check = [&](bool good, int step) {
    if (!good) *bad = step;
  };
  // Nothing has happened yet: all words are 0.
  check(xio_test_until(ctx, &a->words[0], XIO_CMP_NE, 0) == XIO_PENDING, 1);
  check(xio_test_until(ctx, &a->words[0], XIO_CMP_EQ, 0) == XIO_OK, 2);
  check(xio_test_all(ctx, a->words, k_words, leave_out, XIO_CMP_GT, 0) == XIO_PENDING, 3);
  check(xio_test_any(ctx, a->words, k_words, leave_out, XIO_CMP_GT, 0, &index) == XIO_PENDING, 4);
  check(xio_test_some(ctx, a->words, k_words, list, leave_out, XIO_CMP_GT, 0, &count) == XIO_PENDING && count == 0, 5);
  check(xio_wait_until_all(ctx, a->words, k_words, nullptr, XIO_CMP_EQ, 0) == XIO_OK, 6);
  // Nothing to wait for.
  check(xio_wait_until_all(ctx, a->words, 0, nullptr, XIO_CMP_EQ, 1) == XIO_OK, 7);
  check(xio_wait_until_any(ctx, a->words, 0, nullptr, XIO_CMP_EQ, 1, &index) == XIO_OK && index == ~size_t{0}, 8);
  check(xio_wait_until_some(ctx, a->words, 0, list, nullptr, XIO_CMP_EQ, 1, &count) == XIO_OK && count == 0, 9);
  // Word 5, which alone can end these.
  next(1), expect_value(1, 5, -3);
  check(xio_wait_until(ctx, &a->words[5], XIO_CMP_EQ, static_cast<T>(-3)) == XIO_OK, 10);
  check(xio_wait_until_any(ctx, a->words, k_words, leave_out, XIO_CMP_NE, 0, &index) == XIO_OK && index == 5, 11);
  check(xio_wait_until_some(ctx, a->words, k_words, list, leave_out, XIO_CMP_NE, 0, &count) == XIO_OK && count == 1 &&
            list[0] == 5,
        12);
  check(xio_test_all(ctx, a->words, k_words, leave_out, XIO_CMP_NE, 0) == XIO_PENDING, 13);
  check(xio_test_until(ctx, &a->words[5], XIO_CMP_LT, 0) ==
            (static_cast<T>(-1) < static_cast<T>(0) ? XIO_OK : XIO_PENDING),
        14);
  // Word 2 is left out; 7 comes.
  next(2), expect_value(2, 2, 50), expect_value(2, 7, 50);
  check(xio_wait_until(ctx, &a->words[7], XIO_CMP_GE, 50) == XIO_OK, 15);
  check(xio_wait_until(ctx, &a->words[2], XIO_CMP_LE, 50) == XIO_OK, 16);
  check(xio_wait_until(ctx, &a->words[2], XIO_CMP_NE, 0) == XIO_OK, 17);
  check(xio_wait_until_any(ctx, a->words, k_words, leave_out, XIO_CMP_EQ, 50, &index) == XIO_OK && index == 7, 18);
  check(xio_wait_until_some(ctx, a->words, k_words, list, leave_out, XIO_CMP_NE, 0, &count) == XIO_OK && count == 2 &&
            list[0] == 5 && list[1] == 7,
        19);
  check(xio_test_some(ctx, a->words, k_words, list, nullptr, XIO_CMP_EQ, 50, &count) == XIO_OK && count == 2 &&
            list[0] == 2 && list[1] == 7,
        20);
  // All but those left out.
  next(3);
  for (size_t i = 0; i < k_words; ++i)
    if (leave_out[i] == 0) expect_value(3, i, 99);
  check(xio_wait_until_all(ctx, a->words, k_words, leave_out, XIO_CMP_EQ, 99) == XIO_OK, 21);
  check(xio_test_all(ctx, a->words, k_words, leave_out, XIO_CMP_EQ, 99) == XIO_OK, 22);
  check(xio_test_all(ctx, a->words, k_words, nullptr, XIO_CMP_EQ, 99) == XIO_PENDING, 23);
  check(xio_test_any(ctx, a->words, k_words, nullptr, XIO_CMP_EQ, 99, &index) == XIO_OK && index == 1, 24);
  check(xio_quiet(ctx) == XIO_OK, 25);
  // Wrong arguments.
  check(xio_wait_until(ctx, static_cast<const T*>(nullptr), XIO_CMP_EQ, 0) == XIO_ERR_ARG, 26);
  check(xio_wait_until(ctx, &a->words[0], xio_cmp_t(6), 0) == XIO_ERR_ARG, 27);
  check(xio_wait_until(ctx, &a->words[0], xio_cmp_t(-1), 0) == XIO_ERR_ARG, 28);
  check(xio_wait_until_any(ctx, a->words, k_words, nullptr, XIO_CMP_EQ, 99, nullptr) == XIO_ERR_ARG, 29);
  check(xio_quiet(ctx) == XIO_ERR_ARG, 30);
  check(xio_quiet(ctx) == XIO_OK, 31);
}

// The forms with a value for each word. Words that count hold 99 at first.
template <class T>
__global__ void vector_waits(xio_ctx_t ctx, wait_area<T>* a, const int* leave_out, const T* wanted, int right, int left,
                             int* bad) {
  size_t index = 0, count = 0, list[k_words];
  const auto expect_value = [&](uint64_t step, size_t word, long value) {
    if (xio_signal_op(ctx, &a->go, step, XIO_SIGNAL_SET, left) != XIO_OK) *bad = 100;
    if (xio_signal_wait_until(ctx, &a->go, XIO_CMP_GE, step) != XIO_OK) *bad = 101;
    if (xio_p(ctx, &a->words[word], static_cast<T>(value), right) != XIO_OK) *bad = 102;
  };
  const auto check = [&](bool good, int step) {
    if (!good) *bad = step;
  };
  // wanted[i] is i + 1: nothing that counts has it yet.
  check(xio_test_all_vector(ctx, a->words, k_words, leave_out, XIO_CMP_EQ, wanted) == XIO_PENDING, 1);
  check(xio_test_any_vector(ctx, a->words, k_words, leave_out, XIO_CMP_EQ, wanted, &index) == XIO_PENDING, 2);
  check(xio_test_some_vector(ctx, a->words, k_words, list, leave_out, XIO_CMP_EQ, wanted, &count) == XIO_PENDING &&
            count == 0,
        3);
  check(xio_test_all_vector(ctx, a->words, k_words, leave_out, XIO_CMP_GT, wanted) == XIO_OK, 4);
  // Another word's value is not enough.
  expect_value(10, 4, 4);
  check(xio_wait_until(ctx, &a->words[4], XIO_CMP_EQ, 4) == XIO_OK, 5);
  check(xio_test_any_vector(ctx, a->words, k_words, leave_out, XIO_CMP_EQ, wanted, &index) == XIO_PENDING, 6);
  expect_value(11, 4, 5);
  check(
      xio_wait_until_any_vector(ctx, a->words, k_words, leave_out, XIO_CMP_EQ, wanted, &index) == XIO_OK && index == 4,
      7);
  expect_value(12, 7, 8);
  check(xio_wait_until(ctx, &a->words[7], XIO_CMP_EQ, 8) == XIO_OK, 8);
  check(xio_wait_until_some_vector(ctx, a->words, k_words, list, leave_out, XIO_CMP_EQ, wanted, &count) == XIO_OK &&
            count == 2 && list[0] == 4 && list[1] == 7,
        9);
  uint64_t step = 13;
  for (size_t i = 0; i < k_words; ++i)
    if (leave_out[i] == 0) expect_value(step++, i, static_cast<long>(i) + 1);
  check(xio_wait_until_all_vector(ctx, a->words, k_words, leave_out, XIO_CMP_EQ, wanted) == XIO_OK, 10);
  check(xio_test_all_vector(ctx, a->words, k_words, nullptr, XIO_CMP_EQ, wanted) == XIO_PENDING, 11);
  // Nothing to wait for needs no values; a null list of them is refused.
  check(xio_wait_until_all_vector<T>(ctx, a->words, 0, nullptr, XIO_CMP_EQ, nullptr) == XIO_OK, 12);
  check(xio_wait_until_all_vector<T>(ctx, a->words, 1, nullptr, XIO_CMP_EQ, nullptr) == XIO_ERR_ARG, 13);
  check(xio_test_any_vector(ctx, a->words, k_words, nullptr, xio_cmp_t(9), wanted, &index) == XIO_ERR_ARG, 14);
  check(xio_quiet(ctx) == XIO_ERR_ARG && xio_quiet(ctx) == XIO_OK, 15);
}

const std::vector<int> k_left_out = {1, 0, 1, 0, 0, 0, 0, 0};

template <class T>
void wait_family(const rig::team& t, const char* type) {
  auto* area = t.symmetric<wait_area<T>>(1);
  const rig::device_array<int> leave_out(k_left_out);
  rig::expect_steps(t, rig::text("waits on %s", type), waits<T>, 1, 1, t.ctx, area, leave_out.data(), t.right, t.left);
}

template <class T>
void vector_wait_family(const rig::team& t, const char* type) {
  auto* area = t.symmetric<wait_area<T>>(1);
  const rig::device_array<int> leave_out(k_left_out);
  rig::team::write(area->words, std::vector<T>{0, 99, 50, 99, 99, 99, 99, 99});
  std::vector<T> wanted(k_words);
  for (size_t i = 0; i < k_words; ++i) wanted[i] = static_cast<T>(i + 1);
  const rig::device_array<T> values(wanted);
  rig::expect_steps(t, rig::text("waits on %s, a value for each word", type), vector_waits<T>, 1, 1, t.ctx, area,
                    leave_out.data(), values.data(), t.right, t.left);
}

// --- Loops of one's own ------------------------------------------------------------------------------

// Looks at a word, by which a program may make a loop that does other work besides.
// clang-format off
constexpr const char* k_looks[] = {
    "xio_test_until", "xio_test_all", "xio_test_any", "xio_test_some", "xio_test_packet", "xio_signal_fetch", "xio_g",
    "xio_get", "xio_atomic_fetch", "xio_atomic_fetch_or", "xio_atomic_compare_swap", "xio_deadline_passed"};
// clang-format on
constexpr int k_look_kinds = sizeof k_looks / sizeof k_looks[0];
constexpr int k_most_looks = 1000000;

// xio_get and the loop's own look read the word by plain loads while another lane stores to it. For ThreadSanitizer
// that is a race, and it has lanes that are threads, which need not give way.
#ifdef __SANITIZE_THREAD__
constexpr bool k_races_count = true;
#else
constexpr bool k_races_count = false;
#endif
constexpr bool may_race(int kind) { return k_races_count && (kind == 7 || kind == 11); }

__device__ bool finds(int kind, const xio_ctx_t& ctx, uint64_t* word, uint64_t* into, xio_deadline_t end, int me) {
  size_t at, list[1];
  uint32_t four;
  if (kind == 0) return xio_test_until(ctx, word, XIO_CMP_NE, 0) == XIO_OK;
  if (kind == 1) return xio_test_all(ctx, word, 1, nullptr, XIO_CMP_NE, 0) == XIO_OK;
  if (kind == 2) return xio_test_any(ctx, word, 1, nullptr, XIO_CMP_NE, 0, &at) == XIO_OK;
  if (kind == 3) return xio_test_some(ctx, word, 1, list, nullptr, XIO_CMP_NE, 0, &at) == XIO_OK;
  if (kind == 4) return xio_test_packet(ctx, &four, word, 4, 1) == XIO_OK;
  if (kind == 5) return xio_signal_fetch(ctx, word) != 0;
  if (kind == 6) return xio_g(ctx, word, me) != 0;
  if (kind == 7) return xio_get(ctx, into, word, 8, me) == XIO_OK && *into != 0;
  if (kind == 8) return xio_atomic_fetch(ctx, word, me) != 0;
  if (kind == 9) return xio_atomic_fetch_or(ctx, word, 0, me) != 0;
  if (kind == 10) return xio_atomic_compare_swap(ctx, word, 7, 7, me) != 0;
  return xio_deadline_passed(end) || *static_cast<volatile uint64_t*>(word) != 0;
}

// A lane of the second wave sets the word for which the first wave loops.
__global__ void looks(xio_ctx_t ctx, int kind, uint64_t* words, uint32_t* four, int me, int wave, int* bad) {
  const int i = static_cast<int>(threadIdx.x);
  const xio_deadline_t end = xio_deadline(ctx);
  uint64_t* word = words + kind;
  if (i >= wave) {
    const xio_status_t s = kind == 4 ? xio_put_packet(ctx, word, four, 4, 1, me) : xio_p(ctx, word, uint64_t{1}, me);
    if (s != XIO_OK) *bad = 1;
    return;
  }
  int left = k_most_looks;
  while (!finds(kind, ctx, word, words + k_look_kinds + i, end, me) && --left != 0) {
  }
  if (left == 0 || xio_deadline_passed(end)) *bad = 2;
}

__global__ void tests_of_puts(xio_ctx_t ctx, char* to, const char* from, int pe, int* bad) {
  const xio_req_t request = xio_put_nbi(ctx, to + threadIdx.x * 512, from + threadIdx.x * 512, 512, pe);
  int left = k_most_looks;
  xio_status_t status = XIO_PENDING;
  while (status == XIO_PENDING && --left != 0) status = xio_test(ctx, request);
  if (status != XIO_OK) *bad = 1;
}

void loops(const rig::team& t) {
  hipDeviceProp_t properties;
  MUST(hipGetDeviceProperties(&properties, 0));
  const int wave = properties.warpSize;
  auto* words = t.symmetric<uint64_t>(k_look_kinds + static_cast<size_t>(wave));
  auto* from = t.symmetric<char>(65536);
  auto* to = t.symmetric<char>(65536);
  for (int kind = 0; kind < k_look_kinds; ++kind) {
    if (may_race(kind)) continue;
    rig::expect_steps(t, rig::text("a loop of %s", k_looks[kind]), looks, 1, wave + 1, t.ctx, kind, words,
                      reinterpret_cast<uint32_t*>(from), t.me, wave);
  }
  for (const int lanes : {2, 64, 100})
    rig::expect_steps(t, rig::text("loops of xio_test by %d lanes", lanes), tests_of_puts, 1, lanes, t.ctx, to, from,
                      t.right);
}

// --- Contexts of workgroups --------------------------------------------------------------------------

constexpr unsigned k_pool = 3;

// More workgroups than contexts: each takes one, puts through it and gives it back, or waits for its turn.
__global__ void own_contexts(xio_ctx_t ctx, uint64_t* slots, uint64_t* out, int pe, uint32_t* served, int* bad) {
  xio_ctx_t own{};
  xio_status_t status = XIO_ERR_NO_MEMORY;
  for (int turn = 0; turn < 1000000 && status == XIO_ERR_NO_MEMORY; ++turn) {
    status = xio_ctx_create_wg(ctx, &own);
    if (status == XIO_ERR_NO_MEMORY) xio::dev::pause();
  }
  if (status != XIO_OK) {
    *bad = 1;
    return;
  }
  const unsigned block = static_cast<unsigned>(blockIdx.x);
  if (threadIdx.x == 0) out[block] = 1000 + block;
  __syncthreads();
  if (xio_put_wg(own, slots + block, out + block, 8, pe) != XIO_OK) *bad = 2;
  if (xio_ctx_destroy_wg(ctx, &own) != XIO_OK) *bad = 3;
  if (own.view != nullptr || xio_put(own, slots, out, 8, pe) != XIO_ERR_STATE) *bad = 4;
  if (threadIdx.x == 0) atomicAdd(served, 1u);
}

// One workgroup takes them all; the next one is refused, as there are none.
__global__ void empty_pool(xio_ctx_t ctx, int* bad) {
  xio_ctx_t own[k_pool + 1];
  for (unsigned i = 0; i < k_pool; ++i)
    if (xio_ctx_create_wg(ctx, &own[i]) != XIO_OK) *bad = 1;
  if (xio_ctx_create_wg(ctx, &own[k_pool]) != XIO_ERR_NO_MEMORY || own[k_pool].view != nullptr) *bad = 2;
  for (unsigned i = 0; i < k_pool; ++i)
    for (unsigned k = 0; k < i; ++k)
      if (own[i].view == own[k].view) *bad = 3;
  for (unsigned i = 0; i < k_pool; ++i)
    if (xio_ctx_destroy_wg(ctx, &own[i]) != XIO_OK) *bad = 4;
  if (xio_ctx_create_wg(ctx, &own[0]) != XIO_OK || xio_ctx_destroy_wg(ctx, &own[0]) != XIO_OK) *bad = 5;
  xio_quiet_wg(ctx);  // forgets that the pool was empty
}

void workgroup_contexts(const rig::team& t) {
  constexpr unsigned blocks = 8;
  auto* slots = t.symmetric<uint64_t>(blocks);
  auto* out = t.symmetric<uint64_t>(blocks);
  const rig::device_array<uint32_t> served(1);
  const rig::device_array<int> bad(1), bad_empty(1);
  t.barrier();
  RUN(own_contexts, blocks, 32, t.ctx, slots, out, t.right, served.data(), bad.data());
  t.barrier();
  RUN(empty_pool, 1, 96, t.ctx, bad_empty.data());
  rig::expect(bad.get()[0] == 0 && served.get()[0] == blocks, "contexts of workgroups: step %d failed, %u served",
              bad.get()[0], served.get()[0]);
  rig::expect(bad_empty.get()[0] == 0, "an empty pool: step %d failed", bad_empty.get()[0]);
  const std::vector<uint64_t> got = rig::team::read(slots, blocks);
  for (unsigned i = 0; i < blocks; ++i) rig::expect(got[i] == 1000 + i, "workgroup %u put %llu", i, rig::ull(got[i]));
  t.barrier();
}

// --- No signal comes ---------------------------------------------------------------------------------

// The device's deadline alone is short: the host's exchanges of the same world keep their time.
__global__ void nobody_signals(xio_ctx_t ctx, uint64_t* words, int me, int n, int* bad) {
  size_t index = 0, list[2], count = 0;
  xio::dev::world_view& w = *xio::dev::ctx_of(ctx).world;
  const auto usual = w.timeout_ticks;
  w.timeout_ticks = w.ticks_per_ms * 100;
  if (xio_wait_until(ctx, words, XIO_CMP_EQ, 1) != XIO_ERR_TIMEOUT) *bad = 1;
  if (xio_signal_wait_until(ctx, words, XIO_CMP_GT, 0) != XIO_ERR_TIMEOUT) *bad = 2;
  if (xio_wait_until_any(ctx, words, 2, nullptr, XIO_CMP_EQ, 1, &index) != XIO_ERR_TIMEOUT) *bad = 3;
  if (xio_wait_until_some(ctx, words, 2, list, nullptr, XIO_CMP_EQ, 1, &count) != XIO_ERR_TIMEOUT) *bad = 4;
  if (xio_wait_until_all(ctx, words, 2, nullptr, XIO_CMP_EQ, 1) != XIO_ERR_TIMEOUT) *bad = 5;
  if (xio_wait_counter(ctx, words, 1) != XIO_ERR_TIMEOUT) *bad = 6;
  const uint64_t each[2] = {1, 2};
  if (xio_wait_until_all_vector(ctx, words, 2, nullptr, XIO_CMP_EQ, each) != XIO_ERR_TIMEOUT) *bad = 9;
  // PE 0 alone comes to a barrier. Last: its epoch is one ahead from here on.
  if (me == 0 && n > 1 && xio_barrier_all(ctx) != XIO_ERR_TIMEOUT) *bad = 7;
  w.timeout_ticks = usual;
  if (xio_quiet(ctx) != XIO_OK) *bad = 8;
}

// The last wait of a kernel, on a float of 0.25 that should have become at least 1.5.
__global__ void float_that_stays(xio_ctx_t ctx, float* word, int* bad) {
  xio::dev::world_view& w = *xio::dev::ctx_of(ctx).world;
  const auto usual = w.timeout_ticks;
  w.timeout_ticks = w.ticks_per_ms * 50;
  if (xio_wait_until(ctx, word, XIO_CMP_GE, 1.5f) != XIO_ERR_TIMEOUT) *bad = 1;
  w.timeout_ticks = usual;
}

void float_in_a_sentence(const rig::team& t) {
  auto* word = t.symmetric<float>(1);
  rig::team::write(word, std::vector<float>{0.25f});
  const int bad = rig::result_of(float_that_stays, 1, 1, t.ctx, word);
  const xio_error_info_t info = rig::error_of(t);
  rig::expect(bad == 0 && std::strstr(info.sentence, ">= 1.5 ") && std::strstr(info.sentence, "held 0.25;"),
              "a wait for a float: \"%s\"", info.sentence);
  t.barrier();
}

void timeouts(const rig::team& t) {
  auto* words = t.symmetric<uint64_t>(2);
  rig::expect_steps(t, "waits for signals that never come", nobody_signals, 1, 1, t.ctx, words, t.me, t.n);
}

// --- Software devices that rest ----------------------------------------------------------------------

#if defined(XIO_ON_HOST)
__global__ void put_word(xio_ctx_t ctx, uint64_t* word, uint64_t value, int pe, int* bad) {
  if (xio_p(ctx, word, value, pe) != XIO_OK || xio_quiet(ctx) != XIO_OK) *bad = 1;
}

long sleeps_until_now() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return u.ru_nvcsw;
}

// Threads of devices sleep while there is nothing to do, wake for each op, and lose none: what is lost is found when
// they look the next time, after 200 ms.
void rests(const rig::team& t) {
  const int turns = 6 * t.n;
  auto* word = t.symmetric<uint64_t>(1);
  const rig::device_array<int> bad(1);
  int late = 0;
  for (int round = 1; round <= turns; ++round) {
    t.barrier();
    usleep(25000 + 1000 * static_cast<unsigned>(round));
    const auto begin = rig::clock_type::now();
    if (round % t.n == t.me) RUN(put_word, 1, 1, t.ctx, word, static_cast<uint64_t>(round), t.right, bad.data());
    late += rig::ms_since(begin) > 90;
    t.barrier();
    const bool mine = (round + 1) % t.n == t.me;
    rig::expect(bad.get()[0] == 0 && (!mine || rig::team::read(word, 1)[0] == static_cast<uint64_t>(round)),
                "a put to a PE that rests, round %d", round);
  }
  rig::expect(late <= turns / t.n / 2, "%d of %d puts to PEs that rest waited for them to look by themselves", late,
              turns / t.n);
  t.barrier();
  // A simulated device that is preloaded has threads of its own.
  if (std::getenv("LD_PRELOAD") != nullptr) return;
  usleep(100000);
  const long before = sleeps_until_now();
  usleep(500000);
  const long slept = sleeps_until_now() - before;
  rig::expect(slept <= 60, "a PE that has nothing to do woke %ld times in 0.5 s", slept);
  t.barrier();
}
#endif

// --- What is given back ------------------------------------------------------------------------------

__global__ void put_word_by_engine(xio_ctx_t ctx, uint64_t* words, int pe, int* bad) {
  if (xio_put(ctx, words, words + 1, sizeof *words, pe) != XIO_OK || xio_quiet(ctx) != XIO_OK) *bad = 1;
}

// Memory that is freed behind a kernel must not wait for the next one, too: CUDA keeps out the threads of software
// devices meanwhile, for which that kernel waits.
void gives_back(const rig::team& t) {
  auto* words = t.symmetric<uint64_t>(2);
  const rig::device_array<int> bad(1);
  for (int round = 0; round < 30; ++round) {
    xio_team_t alone{};
    xio_ctx_t second{};
    MUST(xio_team_create(t.world(), &t.me, 1, &alone));
    MUST(xio_ctx_create(t.world(), nullptr, &second));
    hipLaunchKernelGGL(put_word_by_engine, dim3(1), dim3(1), 0, nullptr, t.ctx, words, t.right, bad.data());
    MUST(xio_team_destroy(t.world(), alone));
    MUST(xio_ctx_destroy(t.world(), second));
    MUST(hipDeviceSynchronize());
    RUN(put_word_by_engine, 1, 1, t.ctx, words, t.right, bad.data());
  }
  rig::expect(bad.get()[0] == 0, "a put behind what was given back failed");
  t.barrier();
}

}  // namespace

int main() {
  const rig::team t({.pool = k_pool});
  barriers<rig::thread>(t);
  barriers<rig::wave>(t);
  barriers<rig::workgroup>(t);
  barriers_by_several_queues(t);
  wait_family<int>(t, "int"), wait_family<uint64_t>(t, "uint64_t");
  wait_family<signed char>(t, "signed char"), wait_family<uint16_t>(t, "uint16_t");
  wait_family<float>(t, "float");
  vector_wait_family<int>(t, "int");
  vector_wait_family<double>(t, "double");
  loops(t);
  workgroup_contexts(t);
  timeouts(t);
  float_in_a_sentence(t);
#if defined(XIO_ON_HOST)
  rests(t);
#endif
  gives_back(t);
  return rig::verdict("sync", t);
}
