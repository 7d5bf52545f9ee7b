// SPDX-License-Identifier: MIT
// Collectives in which something is wrong, one table: each call by wave and workgroup (sync and barrier by a thread,
// too), in several sizes, with each kind of mistake of one member, of some and of all. A refused call is XIO_ERR_ARG on
// every member and has changed no byte of a heap; a mistake that is none of the call's business changes nothing; and
// the next call on the channel works.
//
//   faults          few sizes
//   faults all      all of them
//   faults absent   members that do not come
#include <xio/team.h>

#include "rig.hpp"

namespace {

enum call_name { sync, barrier, broadcast, alltoall, alltoallv, fcollect, collect, reduce, reduce_scatter, k_calls };
constexpr const char* k_call_names[] = {"sync",     "barrier", "broadcast", "alltoall",      "alltoallv",
                                        "fcollect", "collect", "reduce",    "reduce_scatter"};
constexpr bool has_data(int call) { return call > barrier; }
constexpr unsigned k_threads_of[] = {1, 64, 96};

// A mistake of a member.
enum mistake {
  // clang-format off
  none, kept_error, another_call, other_count, null_dst, null_src, not_symmetric, overlapping, no_root,
  no_number, colliding, unequal, unreachable, k_mistakes
  // clang-format on
};
// clang-format off
constexpr const char* k_mistake_names[] = {
    "nothing", "a kept error", "another call", "another count", "dst null", "src null", "dst elsewhere",
    "dst over src", "no such root", "too many bytes", "counts of equal tags", "unequal sizes",
    "src that engines do not reach"};
// clang-format on
// The members that make it.
enum who { first, last, some, all, k_whos };
constexpr const char* k_who_names[] = {"PE 0", "the last PE", "every second PE", "every PE"};
bool is_wrong(who w, int me, int n) {
  return w == all || (w == first && me == 0) || (w == last && me == n - 1) || (w == some && me % 2 == 0);
}

constexpr size_t k_most = size_t{1} << 20;
constexpr size_t k_same_tag = 524291;  // folds to the tag of 1 MiB

// A member's call. Offsets and sizes of alltoallv: dst_offsets, dst_bytes, src_offsets, src_bytes, n of each.
struct job {
  int call, root, absent_pe;
  unsigned char* dst;
  const unsigned char* src;
  size_t bytes;
  const size_t* numbers;
  uint64_t *next_dst, *next_src;  // of the call behind it
  uint64_t* word;                 // of an op to no PE before it, or null
};
struct outcome {
  int status, next, quiet, data;
};

template <rig::scope S>
__device__ xio_status_t make(const xio_ctx_t& c, xio_team_t t, const job& j) {
  constexpr bool w = S == rig::wave;
  if constexpr (S == rig::thread) return j.call == sync ? xio_team_sync(c, t) : xio_team_barrier(c, t);
  const size_t n = static_cast<size_t>(xio_team_n_pes(t));
  const size_t *d = j.numbers, *db = d + n, *s = db + n, *sb = s + n;
  using plus = std::integral_constant<xio_reduction, xio_reduction::sum>;
  switch (j.call) {
    case sync: return w ? xio_team_sync_wave(c, t) : xio_team_sync_wg(c, t);
    case barrier: return w ? xio_team_barrier_wave(c, t) : xio_team_barrier_wg(c, t);
    case broadcast:
      return w ? xio_broadcast_wave(c, t, j.dst, j.src, j.bytes, j.root)
               : xio_broadcast_wg(c, t, j.dst, j.src, j.bytes, j.root);
    case alltoall:
      return w ? xio_alltoall_wave(c, t, j.dst, j.src, j.bytes) : xio_alltoall_wg(c, t, j.dst, j.src, j.bytes);
    case alltoallv:
      return w ? xio_alltoallv_wave(c, t, j.dst, d, db, j.src, s, sb)
               : xio_alltoallv_wg(c, t, j.dst, d, db, j.src, s, sb);
    case fcollect:
      return w ? xio_fcollect_wave(c, t, j.dst, j.src, j.bytes) : xio_fcollect_wg(c, t, j.dst, j.src, j.bytes);
    case collect:
      return w ? xio_collect_wave(c, t, j.dst, j.src, j.bytes) : xio_collect_wg(c, t, j.dst, j.src, j.bytes);
    case reduce:
      return w ? xio_reduce_wave<plus::value>(c, t, j.dst, j.src, j.bytes)
               : xio_reduce_wg<plus::value>(c, t, j.dst, j.src, j.bytes);
    default:
      return w ? xio_reduce_scatter_wave<plus::value>(c, t, j.dst, j.src, j.bytes)
               : xio_reduce_scatter_wg<plus::value>(c, t, j.dst, j.src, j.bytes);
  }
}

template <rig::scope S>
__global__ void attempt(xio_ctx_t c, xio_team_t t, job j, outcome* out) {
  if (j.word != nullptr && threadIdx.x == 0) xio_p<uint64_t>(c, j.word, 1, j.absent_pe);
  __syncthreads();
  const xio_status_t status = make<S>(c, t, j);
  __syncthreads();
  const xio_status_t next = xio_fcollect_wg(c, t, j.next_dst, j.next_src, sizeof(uint64_t));
  if (threadIdx.x != 0) return;
  int wrong = 0;
  for (int m = 0; m < xio_team_n_pes(t); ++m)
    if (j.next_dst[m] != *j.next_src - static_cast<uint64_t>(xio_team_my_pe(t)) + static_cast<uint64_t>(m)) ++wrong;
  *out = {status, next, xio_quiet(c), wrong};
}
template <rig::scope S>
__global__ void alone(xio_ctx_t c, xio_team_t t, job j, outcome* out) {
  const xio_status_t status = make<S>(c, t, j);
  if (threadIdx.x == 0) *out = {status, 0, 0, 0};
}

// --- What must come out ------------------------------------------------------------------------------

// Byte i of what PE pe sends. alltoall and reduce_scatter have blocks behind each other.
unsigned char sent(int pe, size_t i) { return rig::pattern(pe, i * 3 + 1); }

size_t collected(int m, size_t bytes) { return m % 2 == 0 ? bytes : bytes / 2; }
constexpr size_t k_gap = 16;  // between blocks of alltoallv

struct place {
  const rig::team& t;
  xio_team_t team;
  unsigned char* heap;  // dst, and behind it src
  size_t room;          // of each, for the size under test
  uint64_t *next_dst, *next_src, *word;
  rig::device_array<size_t>& numbers;
  rig::device_array<outcome>& out;
  rig::device_array<unsigned char>& elsewhere;
  bool engines;  // the route
  uint64_t turn = 0;
};

// The dst that a good call leaves, in a heap where it was poison.
void fill_in(std::vector<unsigned char>& dst, int call, size_t bytes, int root, int me, int n) {
  const auto count = static_cast<size_t>(n);
  const auto mine = static_cast<size_t>(me);
  size_t at = 0;
  for (int m = 0; m < n; ++m) {
    const auto from = static_cast<size_t>(m);
    const size_t size = call == collect ? collected(m, bytes) : bytes;
    for (size_t i = 0; i < size && (call == alltoall || call == fcollect || call == collect); ++i)
      dst[at + i] = sent(m, call == alltoall ? mine * bytes + i : i);
    at += size;
    for (size_t i = 0; i < bytes && call == alltoallv; ++i)
      dst[(count - 1 - from) * (bytes + k_gap) + i] = sent(m, mine * bytes + i);
    for (size_t i = 0; i < bytes && (call == reduce || call == reduce_scatter); ++i) {
      const unsigned char one = sent(m, call == reduce ? i : mine * bytes + i);
      dst[i] = static_cast<unsigned char>(m == 0 ? one : dst[i] + one);
    }
  }
  for (size_t i = 0; i < bytes && call == broadcast && me != root; ++i) dst[i] = sent(root, i);
}

// Whether the mistake is one of this call, at this size.
bool fits(mistake m, int call, size_t bytes, size_t packets) {
  if (m == none || m == another_call) return true;
  if (m == kept_error) return call != barrier;
  if (!has_data(call)) return false;
  const bool any = bytes != 0;
  if (m == no_root) return call == broadcast;
  if (m == unequal) return call == alltoallv && any;
  if (m == colliding) return bytes == k_most && call != alltoallv && call != collect;
  if (m == other_count) return call != collect && call != alltoallv;
  if (m == overlapping) return any && call != broadcast;
  // Packets of a reduce may come from any memory, and go to any.
  if (m == not_symmetric) return any && (call != reduce || bytes > packets);
  if (m == unreachable) return any && call != reduce && call != reduce_scatter;
  return true;
}

int root_of(int n) { return n > 1 ? 1 : 0; }

// A mistake that harms nobody: everybody returns XIO_OK.
bool is_harmless(mistake m, who w, const place& p, int call, size_t bytes) {
  if (m == none || m == kept_error) return true;
  if (m == null_dst || m == null_src) return bytes == 0;
  if (m != unreachable) return false;
  if (call == broadcast && !is_wrong(w, root_of(p.t.n), p.t.n)) return true;
  return !p.engines || (bytes <= p.team.packet_bytes && call != alltoallv && call != collect);
}

job make_wrong(const place& p, job j, mistake m) {
  if (m == another_call) j.call = j.call == sync ? barrier : sync;
  if (m == other_count) j.bytes += 8;
  if (m == colliding) j.bytes = k_same_tag;
  if (m == null_dst) j.dst = nullptr;
  if (m == null_src) j.src = nullptr;
  if (m == not_symmetric || m == unreachable)
    (m == unreachable ? const_cast<unsigned char*&>(j.src) : j.dst) = p.elsewhere.data();
  if (m == overlapping) j.src = j.dst + 4;
  if (m == no_root) j.root = p.t.me % 2 == 0 ? -1 : p.t.n;
  if (m == no_number) j.bytes = j.call == reduce_scatter ? size_t{1} << 63 : ~size_t{0} - 7;
  if (m == kept_error) j.word = p.word;
  return j;
}

// alltoallv's numbers: places from the end on.
std::vector<size_t> numbers_of(const place& p, size_t bytes, mistake m) {
  const auto n = static_cast<size_t>(p.t.n);
  std::vector<size_t> out(4 * n, bytes);
  for (size_t i = 0; i < n; ++i) out[i] = (n - 1 - i) * (bytes + k_gap), out[2 * n + i] = i * bytes;
  if (m == unequal) out[3 * n + n - 1] += 1;  // for the last PE
  if (m == no_number) out[n] = ~size_t{0} - 7;
  return out;
}

void run(const place& p, const job& j, rig::scope s, bool with_next) {
#define XIO_BY(kernel)                                                                                    \
  if (s == rig::thread) RUN((kernel<rig::thread>), 1, k_threads_of[s], p.t.ctx, p.team, j, p.out.data()); \
  if (s == rig::wave) RUN((kernel<rig::wave>), 1, k_threads_of[s], p.t.ctx, p.team, j, p.out.data());     \
  if (s == rig::workgroup) RUN((kernel<rig::workgroup>), 1, k_threads_of[s], p.t.ctx, p.team, j, p.out.data());
  if (with_next) {
    XIO_BY(attempt)
  } else {
    XIO_BY(alone)
  }
#undef XIO_BY
}

job good_call(const place& p, int call, size_t bytes) {
  const size_t mine = call == collect ? collected(p.t.me, bytes) : bytes;
  return {call, root_of(p.t.n), 999, p.heap, p.heap + p.room, mine, p.numbers.data(), p.next_dst, p.next_src, nullptr};
}

// dst and src before a call, and after it where all is good.
struct heaps {
  std::vector<unsigned char> before, after;
};
heaps heaps_of(const place& p, int call, size_t bytes) {
  heaps h;
  h.before.assign(2 * p.room, rig::k_poison);
  for (size_t i = 0; i < static_cast<size_t>(p.t.n) * bytes; ++i) h.before[p.room + i] = sent(p.t.me, i);
  h.after = h.before;
  if (has_data(call)) fill_in(h.after, call, bytes, root_of(p.t.n), p.t.me, p.t.n);
  return h;
}

void try_one(place& p, int call, rig::scope s, size_t bytes, mistake m, who w, const heaps& h) {
  const bool wrong = m != none && is_wrong(w, p.t.me, p.t.n);
  job j = good_call(p, call, bytes);
  p.numbers.set(numbers_of(p, bytes, wrong ? m : none));
  rig::team::write(p.heap, h.before);
  if (m == unreachable)
    p.elsewhere.set(std::vector<unsigned char>(h.before.begin() + static_cast<std::ptrdiff_t>(p.room), h.before.end()));
  rig::team::write(p.next_src, std::vector<uint64_t>{++p.turn * 1000 + static_cast<uint64_t>(p.t.me)});
  p.t.barrier();
  if (wrong) j = make_wrong(p, j, m);
  run(p, j, s, true);
  p.t.barrier();
  const bool is_good = is_harmless(m, w, p, call, bytes);
  const std::string name = rig::text("%s of %zu bytes by a %s, %s at %s", k_call_names[call], bytes,
                                     rig::k_scope_names[s], k_mistake_names[m], k_who_names[w]);
  const char* const what = name.c_str();
  const outcome o = p.out.get()[0];
  rig::expect_status(o.status, is_good ? XIO_OK : XIO_ERR_ARG, what);
  rig::expect(o.next == XIO_OK && o.data == 0, "the call after %s: %s, %d words wrong", what,
              xio_status_name(static_cast<xio_status_t>(o.next)), o.data);
  rig::expect_status(o.quiet, m == kept_error && wrong ? XIO_ERR_PE : XIO_OK, "quiet after it");
  rig::expect_same(rig::team::read(p.heap, 2 * p.room), is_good ? h.after : h.before, what);
}

// Of members that all do the same other thing none is wrong.
bool is_sense(mistake m, who w, int n) {
  if (m == none) return w == first;
  if (w == some && n < 3) return false;
  return w != all || (m != another_call && m != other_count && m != colliding && m != unequal);
}

// Of dst or src, with room for more than a call may write.
size_t room_for(int n, size_t bytes) { return static_cast<size_t>(n) * (bytes + k_gap) + 8192; }

// Mistakes of every member that can make them; `stride`: of many cases one in so many.
void all_mistakes(place& p, int call, rig::scope s, size_t bytes, int stride) {
  const heaps h = heaps_of(p, call, bytes);
  int turn = call + s;
  for (int m = 0; m < k_mistakes; ++m)
    for (int w = 0; w < k_whos; ++w) {
      const auto what = static_cast<mistake>(m);
      if (!fits(what, call, bytes, p.team.packet_bytes) || !is_sense(what, static_cast<who>(w), p.t.n)) continue;
      if (turn++ % stride == 0) try_one(p, call, s, bytes, what, static_cast<who>(w), h);
    }
}

void table(place& p, const std::vector<size_t>& sizes, bool is_short) {
  for (int call = 0; call < k_calls; ++call)
    for (const rig::scope s : {rig::thread, rig::wave, rig::workgroup})
      for (const size_t bytes : sizes) {
        if (has_data(call) ? s == rig::thread : bytes != sizes[0]) continue;
        p.room = room_for(p.t.n, bytes);
        all_mistakes(p, call, s, bytes, is_short ? 7 : bytes == k_most ? 3 : 1);
      }
}

// A ctx of one world with a team of another, and a team whose memory has become the program's.
void strangers(place& p) {
  rig::options o;
  o.heap_bytes = 16 << 20;
  const rig::team other(o);
  xio_team_t theirs{}, ended{};
  MUST(xio_team_world(other.world(), &theirs));
  MUST(xio_team_world(p.t.world(), &ended));
  MUST(xio_team_destroy(p.t.world(), ended));
  void* reused = nullptr;
  MUST(xio_calloc(p.t.world(), 1, 4 << 20, &reused));
  const std::vector<uint64_t> numbers((4 << 20) / sizeof(uint64_t), ended.id);
  rig::team::write(static_cast<uint64_t*>(reused), numbers);
  for (int call = 0; call < k_calls; ++call)
    for (const xio_team_t team : {theirs, ended}) {
      std::vector<unsigned char> wanted(2 * p.room, rig::k_poison);
      rig::team::write(p.heap, wanted);
      p.numbers.set(numbers_of(p, 8, none));
      p.t.barrier();
      RUN(alone<rig::workgroup>, 1, 64, p.t.ctx, team, good_call(p, call, 8), p.out.data());
      p.t.barrier();
      rig::expect_status(p.out.get()[0].status, team.id == ended.id ? XIO_ERR_STATE : XIO_ERR_ARG, k_call_names[call]);
      rig::expect_same(rig::team::read(p.heap, 2 * p.room), wanted, k_call_names[call]);
    }
  rig::expect(rig::team::read(static_cast<uint64_t*>(reused), numbers.size()) == numbers,
              "memory of an ended team changed");
  MUST(xio_free(p.t.world(), reused));
  MUST(xio_team_destroy(other.world(), theirs));
}

// --- Members that do not come ------------------------------------------------------------------------

void absent(place& p, int call, rig::scope s, size_t bytes, int missing) {
  constexpr double k_wait_s = 0.4;
  MUST(xio_team_world(p.t.world(), &p.team));
  p.numbers.set(numbers_of(p, bytes, none));
  p.t.barrier();
  if (p.t.me < p.t.n - missing) {
    const auto begin = std::chrono::steady_clock::now();
    run(p, good_call(p, call, bytes), s, false);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    rig::expect_status(p.out.get()[0].status, XIO_ERR_TIMEOUT, k_call_names[call]);
    rig::expect(took.count() < 1.2 * k_wait_s + 0.3, "%s of %zu bytes by a %s, %d of %d absent: %.2f s",
                k_call_names[call], bytes, rig::k_scope_names[s], missing, p.t.n, took.count());
    const xio_error_info_t info = rig::error_of(p.t);
    rig::expect(
        std::strstr(info.sentence, "): PE ") != nullptr && std::strstr(info.sentence, "has not come") != nullptr,
        "after %s PE %d reads \"%s\"", k_call_names[call], p.t.me, info.sentence);
  }
  p.t.barrier();
  MUST(xio_team_destroy(p.t.world(), p.team));
}

void absentees(place& p, const std::vector<size_t>& sizes) {
  for (const int missing : {1, 3, 5})
    for (int call = 0; call < k_calls && missing < p.t.n; ++call)
      for (const rig::scope s : {rig::thread, rig::wave, rig::workgroup})
        for (const size_t bytes : sizes)
          if (has_data(call) ? s != rig::thread : bytes == sizes[0]) absent(p, call, s, bytes, missing);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string asked = argc > 1 ? argv[1] : "";
  const bool waits = asked == "absent";
  if (waits) setenv("XIO_TEST_WAIT_MS", "400", 0);
  const rig::team t;
  if (waits) rig::limit_waits(t);
  const auto n = static_cast<size_t>(t.n);
  const std::vector<size_t> sizes = asked == "all" ? std::vector<size_t>{0, 8, 1000, 100000, k_most}
                                    : waits        ? std::vector<size_t>{1000, 100000}
                                                   : std::vector<size_t>{8, 1000, 100000};
  const size_t room = room_for(t.n, sizes.back());
  xio_team_t team{};
  MUST(xio_team_world(t.world(), &team));
  rig::device_array<size_t> numbers(4 * n);
  rig::device_array<outcome> out(1);
  rig::device_array<unsigned char> elsewhere(room);
  place p{t,
          team,
          t.symmetric<unsigned char>(2 * room),
          room,
          t.symmetric<uint64_t>(n),
          t.symmetric<uint64_t>(1),
          t.symmetric<uint64_t>(1),
          numbers,
          out,
          elsewhere,
          t.route == "rdma" || t.route == "sdma"};
  if (waits) {
    absentees(p, sizes);
  } else {
    table(p, sizes, asked != "all");
    strangers(p);
  }
  MUST(xio_team_destroy(t.world(), team));
  return rig::verdict("faults", t, !waits);
}
