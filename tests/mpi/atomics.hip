// SPDX-License-Identifier: MIT
// Atomics: the arithmetic of every op and type, by one thread; and atomicity, by every thread of every PE at once.
#include <limits>

#include "rig.hpp"

namespace {

// --- One thread: old values and results --------------------------------------------------------------

constexpr int k_integer_steps = 14;
constexpr int k_any_steps = 5;

// The values of the word before each step, as the fetching forms return them, and its value at the end.
template <class T>
__global__ void integers(xio_ctx_t ctx, T* word, T a, T b, int pe, T* old, int* bad) {
  int k = 0, failed = 0;
  old[k++] = xio_atomic_swap(ctx, word, a, pe);
  failed |= xio_atomic_add(ctx, word, b, pe);
  failed |= xio_quiet(ctx);
  old[k++] = xio_atomic_fetch_inc(ctx, word, pe);
  failed |= xio_atomic_inc(ctx, word, pe);
  failed |= xio_quiet(ctx);
  old[k++] = xio_atomic_fetch_add(ctx, word, b, pe);
  old[k++] = xio_atomic_fetch_and(ctx, word, static_cast<T>(~b), pe);
  old[k++] = xio_atomic_fetch_or(ctx, word, b, pe);
  old[k++] = xio_atomic_fetch_xor(ctx, word, a, pe);
  failed |= xio_atomic_and(ctx, word, static_cast<T>(a | b), pe);
  failed |= xio_quiet(ctx);
  old[k++] = xio_atomic_fetch(ctx, word, pe);
  failed |= xio_atomic_or(ctx, word, static_cast<T>(a ^ b), pe);
  failed |= xio_quiet(ctx);
  old[k++] = xio_atomic_fetch(ctx, word, pe);
  failed |= xio_atomic_xor(ctx, word, static_cast<T>(~T{0}), pe);
  failed |= xio_quiet(ctx);
  old[k++] = xio_atomic_compare_swap(ctx, word, static_cast<T>(a ^ 12345), b, pe);  // differs: stays
  old[k++] = xio_atomic_fetch(ctx, word, pe);
  failed |= xio_atomic_set(ctx, word, a, pe);
  failed |= xio_quiet(ctx);
  old[k++] = xio_atomic_compare_swap(ctx, word, a, b, pe);  // equal: changes
  old[k++] = xio_atomic_compare_swap(ctx, word, a, a, pe);  // differs again
  old[k++] = xio_atomic_fetch_add(ctx, word, a, pe);
  old[k++] = xio_atomic_fetch(ctx, word, pe);
  if (failed != 0) *bad = 1;
}

template <class T>
std::vector<T> integers_wanted(T before, T a, T b) {
  using U = std::make_unsigned_t<T>;
  std::vector<T> old;
  U w = static_cast<U>(before);
  const U ua = static_cast<U>(a), ub = static_cast<U>(b);
  const auto keep_old = [&] { old.push_back(static_cast<T>(w)); };
  keep_old(), w = ua;
  w += ub;
  keep_old(), ++w;
  ++w;
  keep_old(), w += ub;
  keep_old(), w &= static_cast<U>(~ub);
  keep_old(), w |= ub;
  keep_old(), w ^= ua;
  w &= ua | ub;
  keep_old();
  w |= ua ^ ub;
  keep_old();
  w ^= static_cast<U>(~U{0});
  keep_old();
  keep_old();
  w = ua;
  keep_old(), w = ub;
  keep_old();
  keep_old(), w += ua;
  keep_old();
  return old;
}

template <class T>
void integer_type(const rig::team& t, unsigned char* area, const char* type) {
  const T before = static_cast<T>(77), guard = static_cast<T>(0x5a5a5a5a5a5a5a5aull);
  const T most = std::numeric_limits<T>::max(), b = static_cast<T>(0x0f0f3355u + static_cast<unsigned>(t.n));
  for (const T a : {static_cast<T>(0x12345678u), most, static_cast<T>(most / 3 + t.me)}) {
    const std::vector<T> start = {guard, before, guard};
    T* words = reinterpret_cast<T*>(area);
    rig::team::write(words, start);
    const rig::device_array<T> old(k_integer_steps);
    rig::expect_steps(t, type, integers<T>, 1, 1, t.ctx, words + 1, a, b, t.right, old.data());
    const std::vector<T> got = old.get(), wanted = integers_wanted(before, a, b);
    for (int k = 0; k < k_integer_steps; ++k)
      rig::expect(got[k] == wanted[k], "%s, result %d: %llx, expected %llx", type, k, rig::ull(got[k]),
                  rig::ull(wanted[k]));
    const std::vector<T> left = rig::team::read(words, 3);
    rig::expect(left[0] == guard && left[2] == guard, "%s: a neighbour of the word has changed", type);
  }
  t.barrier();
}

template <class T>
__global__ void any(xio_ctx_t ctx, T* word, T a, T b, int pe, T* old, int* bad) {
  old[0] = xio_atomic_fetch(ctx, word, pe);
  int failed = xio_atomic_set(ctx, word, a, pe);
  failed |= xio_quiet(ctx);
  old[1] = xio_atomic_swap(ctx, word, b, pe);
  old[2] = xio_atomic_fetch(ctx, word, pe);
  failed |= xio_atomic_set(ctx, word, a, pe);
  failed |= xio_atomic_add(ctx, word, T(2.5), pe);
  failed |= xio_quiet(ctx);
  old[3] = xio_atomic_fetch_add(ctx, word, T(-8), pe);
  old[4] = xio_atomic_fetch(ctx, word, pe);
  failed |= xio_atomic_set(ctx, word, b, pe);
  failed |= xio_quiet(ctx);
  if (failed != 0) *bad = 1;
}

template <class T>
void floating_type(const rig::team& t, unsigned char* area, const char* type) {
  T* words = reinterpret_cast<T*>(area);
  rig::team::write(words, std::vector<T>{T(-0.5), T(3.25), T(7)});
  const rig::device_array<T> old(k_any_steps);
  const T a = T(-1) / T(3), b = std::numeric_limits<T>::infinity();
  rig::expect_steps(t, type, any<T>, 1, 1, t.ctx, words + 1, a, b, t.right, old.data());
  const std::vector<T> got = old.get(), left = rig::team::read(words, 3);
  const T sum = a + T(2.5), rest = sum + T(-8);
  rig::expect(got == std::vector<T>{T(3.25), a, b, sum, rest}, "%s: fetch, set, swap, add, fetch_add: %g %g %g %g %g",
              type, static_cast<double>(got[0]), static_cast<double>(got[1]), static_cast<double>(got[2]),
              static_cast<double>(got[3]), static_cast<double>(got[4]));
  rig::expect(left == std::vector<T>{T(-0.5), b, T(7)}, "%s: the word or a neighbour is wrong", type);
  t.barrier();
}

// --- Everybody at once -------------------------------------------------------------------------------

struct shared_words {
  uint64_t add64, inc64, bits64, cas64;
  uint32_t add32, cas32;
  double add_double;
  float add_float;
};

constexpr unsigned k_all_blocks = 2, k_all_threads = 80, k_turns = 5;
constexpr unsigned k_per_pe = k_all_blocks * k_all_threads;

// Compare-swap as a loop: adds 1. Returns how many turns it took at most; a lane never holds what another waits for.
template <class T>
__device__ bool add_by_compare_swap(const xio_ctx_t& ctx, T* word, int pe) {
  T expected = xio_atomic_fetch(ctx, word, pe);
  for (int turn = 0; turn < 2000000; ++turn) {
    const T found = xio_atomic_compare_swap(ctx, word, expected, static_cast<T>(expected + 1), pe);
    if (found == expected) return true;
    expected = found;
  }
  return false;
}

__global__ void hammer(xio_ctx_t ctx, shared_words* words, int me, int pe, uint64_t* tickets, int* bad) {
  const unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
  int failed = 0;
  for (unsigned turn = 0; turn < k_turns; ++turn) {
    tickets[id * k_turns + turn] = xio_atomic_fetch_add(ctx, &words->add64, 1, pe);
    failed |= xio_atomic_inc(ctx, &words->inc64, pe);
    failed |= xio_atomic_add(ctx, &words->add32, 3, pe);
    failed |= xio_atomic_xor(ctx, &words->bits64, uint64_t{1} << ((id + static_cast<unsigned>(me)) % 64), pe);
  }
  if (id % 16 == 0) {
    failed |= !add_by_compare_swap(ctx, &words->cas64, pe);
    failed |= !add_by_compare_swap(ctx, &words->cas32, pe);
    // Sums of whole numbers and of halves, which every order rounds alike.
    failed |= xio_atomic_add(ctx, &words->add_double, 2.0, pe);
    failed |= xio_atomic_fetch_add(ctx, &words->add_float, 0.5f, pe) < 0;
  }
  failed |= xio_quiet(ctx);
  if (failed != 0) *bad = 1;
}

void everybody(const rig::team& t) {
  auto* words = t.symmetric<shared_words>(1);
  const rig::device_array<uint64_t> tickets(k_per_pe * k_turns);
  rig::expect_steps(t, "everybody at once", hammer, k_all_blocks, k_all_threads, t.ctx, words, t.me, 0, tickets.data());
  // Nobody may have had another's ticket; a PE can see its own, and that they grew.
  std::vector<uint64_t> mine = tickets.get();
  std::sort(mine.begin(), mine.end());
  const uint64_t total = static_cast<uint64_t>(t.n) * k_per_pe * k_turns;
  rig::expect(std::adjacent_find(mine.begin(), mine.end()) == mine.end(), "fetch_add gave one value twice");
  rig::expect(mine.back() < total, "fetch_add gave %llu of %llu", rig::ull(mine.back()), rig::ull(total));
  if (t.me == 0) {
    const shared_words w = rig::team::read(words, 1)[0];
    uint64_t bits = 0;
    for (int pe = 0; pe < t.n; ++pe)
      for (unsigned id = 0; id < k_per_pe; ++id)
        if (k_turns % 2 == 1) bits ^= uint64_t{1} << ((id + static_cast<unsigned>(pe)) % 64);
    const uint64_t swaps = static_cast<uint64_t>(t.n) * k_per_pe / 16;
    rig::expect(w.add64 == total, "fetch_add: sum %llu", rig::ull(w.add64));
    rig::expect(w.inc64 == total, "inc: sum %llu", rig::ull(w.inc64));
    rig::expect(w.add32 == 3 * total, "add of 32 bits: sum %u", w.add32);
    rig::expect(w.bits64 == bits, "xor: %llx, expected %llx", rig::ull(w.bits64), rig::ull(bits));
    rig::expect(w.add_double == 2.0 * static_cast<double>(swaps) && w.add_float == 0.5f * static_cast<float>(swaps),
                "add of double and float: %g and %g, by %llu threads", w.add_double, static_cast<double>(w.add_float),
                rig::ull(swaps));
    rig::expect(w.cas64 == swaps && w.cas32 == swaps, "compare_swap: %llu and %u, expected %llu", rig::ull(w.cas64),
                w.cas32, rig::ull(swaps));
  }
  t.barrier();
}

}  // namespace

int main() {
  const rig::team t;
  auto* area = t.symmetric<unsigned char>(64);
  integer_type<int>(t, area, "int");
  integer_type<long>(t, area, "long");
  integer_type<long long>(t, area, "long long");
  integer_type<unsigned>(t, area, "unsigned");
  integer_type<unsigned long>(t, area, "unsigned long");
  integer_type<unsigned long long>(t, area, "unsigned long long");
  integer_type<std::size_t>(t, area, "size_t");
  integer_type<std::ptrdiff_t>(t, area, "ptrdiff_t");
  integer_type<std::int32_t>(t, area, "int32_t");
  integer_type<std::int64_t>(t, area, "int64_t");
  integer_type<std::uint32_t>(t, area, "uint32_t");
  integer_type<std::uint64_t>(t, area, "uint64_t");
  floating_type<float>(t, area, "float");
  floating_type<double>(t, area, "double");
  everybody(t);
  return rig::verdict("atomics", t, t.route != "sdma");
}
