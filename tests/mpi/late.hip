// SPDX-License-Identifier: MIT
// What an op that has timed out may still do, and until when: once xio_ctx_destroy or xio_ctx_recover has returned,
// with any status, nothing is written to the buffers of its ops any more. late.sh makes ops slow: their peer is
// stopped, or software devices wait on purpose.
//
//   late destroy [cold]   PE 1 is stopped; PE 0 destroys its ctx alone, uses its buffers again, and lets PE 1 go on
//   late recover [cold]   gets of the other PEs from PE 1 are late; the ctx is made anew by all PEs, and works; then
//                         all but PE 0 leave
//   late put              PE 1 has a put to PE 0 under way when it is stopped
//   late storage F        reads of file F that come late, in a world of one PE
//   late unregister F     memory that reads of file F are about to fill is unregistered
//
// cold: without a good op before, where the first one is the late one.
#include <csignal>

#include "rig.hpp"

namespace {

using rig::clock_type;

constexpr size_t k_bytes = 256 << 10;
constexpr uint64_t k_limit_ms = 300;
constexpr unsigned char k_canary = 0x5c;
// Longer than any delay that late.sh asks for and the time of a vote that fails, together.
constexpr auto k_watch = std::chrono::milliseconds(2500);

struct results {
  int blocking, waited, tested;
  xio_req_t request;
};

// The device's deadline alone: the host's exchanges of the same world keep their time. 0: leaves it.
__global__ void set_limit(xio_ctx_t ctx, uint64_t ms) {
  xio::dev::world_view& w = *xio::dev::ctx_of(ctx).world;
  w.timeout_ticks = ms * w.ticks_per_ms;
}

__global__ void get_twice(xio_ctx_t ctx, unsigned char* first, unsigned char* second, const unsigned char* from, int pe,
                          results* r) {
  r->request = xio_get_nbi(ctx, first, from, k_bytes, pe);
  r->blocking = xio_get(ctx, second, from, k_bytes, pe);
  r->waited = xio_wait(ctx, r->request);
}

__global__ void read_twice(xio_ctx_t ctx, xio_storage_t s, unsigned char* first, unsigned char* second, results* r) {
  r->request = xio_read_nbi(ctx, first, s, 0, k_bytes);
  r->blocking = xio_read(ctx, second, s, 0, k_bytes);
  r->waited = xio_wait(ctx, r->request);
}

__global__ void put_later(xio_ctx_t ctx, unsigned char* to, const unsigned char* from, int pe) {
  (void)xio_put_nbi(ctx, to, from, k_bytes, pe);
}

__global__ void look_again(xio_ctx_t ctx, results* r) {
  r->waited = xio_wait(ctx, r->request);
  r->tested = xio_test(ctx, r->request);
}

__global__ void barrier_kernel(xio_ctx_t ctx, int* status) { *status = xio_barrier_all(ctx); }

// Puts to the next PE, synchronises with it, checks the put of the one before, synchronises again.
__global__ void go_round(xio_ctx_t ctx, uint64_t* in, uint64_t* out, uint64_t rounds, results* r) {
  const int to = static_cast<int>((ctx.my_pe + 1) % ctx.n_pes);
  const uint64_t from = (ctx.my_pe + ctx.n_pes - 1) % ctx.n_pes;
  r->blocking = r->waited = r->tested = 0;
  for (uint64_t round = 1; round <= rounds; ++round) {
    for (uint64_t i = 0; i < 64; ++i) out[i] = round << 32 | static_cast<uint64_t>(ctx.my_pe) << 16 | i;
    if (r->waited == 0) r->waited = xio_put(ctx, in, out, 64 * sizeof *in, to);
    if (r->blocking == 0) r->blocking = xio_barrier_all(ctx);
    for (uint64_t i = 0; i < 64; ++i)
      r->tested += *static_cast<volatile uint64_t*>(in + i) != (round << 32 | from << 16 | i);
    if (r->blocking == 0) r->blocking = xio_barrier_all(ctx);
  }
}

// Two PEs, or one, or more of which PE 1 is the one that is stopped; without rig::team's insisting on a good end.
struct pair_of_pes {
  pair_of_pes() {
    MUST(xio_init(nullptr, &world));
    me = xio_my_pe(world);
    n = xio_n_pes(world);
    MUST(xio_ctx_create(world, nullptr, &ctx));
    mine = symmetric(k_bytes);
    theirs = symmetric(k_bytes);
    words = reinterpret_cast<volatile uint64_t*>(symmetric(4096));
    plain.resize(k_bytes);
    MUST(xio_mem_register(world, plain.data(), plain.size()));
    for (size_t i = 0; i < k_bytes; ++i) theirs[i] = rig::pattern(me, i);
    words[0] = static_cast<uint64_t>(getpid());
    MUST(xio_host_barrier(world));
    words[2] = 1;
  }
  unsigned char* symmetric(size_t bytes) const {
    void* p = nullptr;
    MUST(xio_calloc(world, bytes, 1, &p));
    return static_cast<unsigned char*>(p);
  }
  volatile uint64_t* words_of(int pe) const {
    return static_cast<volatile uint64_t*>(xio_ptr(world, const_cast<uint64_t*>(words), pe));
  }
  // Not in the middle of a barrier, whose time would run out; of how many it has to be out.
  void stop_peer(uint64_t barriers = 1) const {
    while (words_of(1)[2] < barriers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    kill(static_cast<pid_t>(words_of(1)[0]), SIGSTOP);
  }
  void continue_peer() const { kill(static_cast<pid_t>(words_of(1)[0]), SIGCONT); }

  xio_world_t* world = nullptr;
  xio_ctx_t ctx{};
  int me = 0, n = 0;
  unsigned char *mine = nullptr, *theirs = nullptr;
  // [0]: process, [1]: how far PE 0 is, [2]: barriers of the start that are over, [8 + PE]: that PE is done
  volatile uint64_t* words = nullptr;
  std::vector<unsigned char> plain;
};

void expect_canary(const pair_of_pes& p, const char* when) {
  size_t changed = 0;
  for (size_t i = 0; i < k_bytes; ++i)
    changed += (static_cast<volatile unsigned char*>(p.mine)[i] != k_canary) +
               (*const_cast<volatile unsigned char*>(&p.plain[i]) != k_canary);
  rig::expect(changed == 0, "%s: %zu bytes of buffers that are used again were written", when, changed);
}

void lay_canary(pair_of_pes& p) {
  std::memset(p.mine, k_canary, k_bytes);
  std::memset(p.plain.data(), k_canary, k_bytes);
}

// The end of a mode that cannot end well as a world.
int verdict(const std::string& mode) { return rig::verdict(("late " + mode).c_str()); }
int end_without_peer(const pair_of_pes& p, const char* mode) {
  rig::expect(xio_finalize(p.world) != XIO_OK, "a world ended well without its other PE");
  return verdict(mode);
}

// The first get must succeed: links are up, and the op that follows is the first slow one.
void expect_good_get(const pair_of_pes& p, const rig::device_array<results>& r) {
  RUN(get_twice, 1, 1, p.ctx, p.mine, p.mine, p.theirs, 1, r.data());
  rig::expect_status(r.get()[0].blocking, XIO_OK, "a get of a PE that runs");
}

void expect_late_get(const pair_of_pes& p, const rig::device_array<results>& r) {
  RUN(set_limit, 1, 1, p.ctx, k_limit_ms);
  RUN(get_twice, 1, 1, p.ctx, const_cast<unsigned char*>(p.plain.data()), p.mine, p.theirs, 1, r.data());
  rig::expect_status(r.get()[0].blocking, XIO_ERR_TIMEOUT, "a get that comes late");
  rig::expect_status(r.get()[0].waited, XIO_ERR_TIMEOUT, "the wait for another");
}

void wait_for_word(const pair_of_pes& p, uint64_t value) {
  const auto until = clock_type::now() + std::chrono::seconds(60);
  while (p.words[1] < value && clock_type::now() < until) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

int destroy(bool cold) {
  pair_of_pes p;
  if (p.me == 1) {
    wait_for_word(p, 1);
    std::_Exit(0);
  }
  const rig::device_array<results> r(1);
  if (!cold) expect_good_get(p, r);
  p.stop_peer();
  expect_late_get(p, r);
  const auto since = clock_type::now();
  rig::expect(xio_ctx_destroy(p.world, p.ctx) != XIO_OK, "a ctx was destroyed with a PE that is stopped");
  rig::took_less(since, 15000, "xio_ctx_destroy without its peer");
  lay_canary(p);
  p.continue_peer();
  std::this_thread::sleep_for(k_watch);
  expect_canary(p, "after xio_ctx_destroy");
  MUST(xio_mem_unregister(p.world, p.plain.data()));
  p.words_of(1)[1] = 1;
  return end_without_peer(p, "destroy");
}

// The peer's own NIC is the slow one.
int put() {
  pair_of_pes p;
  if (p.me == 1) {
    RUN(put_later, 1, 1, p.ctx, p.mine, p.theirs, 0);
    p.words_of(0)[1] = 1;
    wait_for_word(p, 1);
    std::_Exit(0);
  }
  wait_for_word(p, 1);
  p.stop_peer();
  rig::expect(xio_ctx_destroy(p.world, p.ctx) != XIO_OK, "a ctx was destroyed with a PE that is stopped");
  lay_canary(p);
  p.continue_peer();
  std::this_thread::sleep_for(k_watch);
  expect_canary(p, "a put of a peer after xio_ctx_destroy");
  p.words_of(1)[1] = 1;
  return end_without_peer(p, "put");
}

void expect_round_trips(const pair_of_pes& p, const rig::device_array<results>& r) {
  auto* in = reinterpret_cast<uint64_t*>(p.mine);
  RUN(go_round, 1, 1, p.ctx, in, in + 64, uint64_t{50}, r.data());
  rig::expect_status(r.get()[0].waited, XIO_OK, "a put of a ctx that was recovered");
  rig::expect_status(r.get()[0].blocking, XIO_OK, "a barrier of a ctx that was recovered");
  rig::expect(r.get()[0].tested == 0, "%d words of a ctx that was recovered were wrong", r.get()[0].tested);
}

void expect_recovery(pair_of_pes& p) {
  const auto since = clock_type::now();
  const xio_status_t status = xio_ctx_recover(p.world, p.ctx);
  rig::expect(status == XIO_OK, "xio_ctx_recover: %s: %s", xio_status_name(status), xio_last_error());
  rig::took_less(since, 15000, "xio_ctx_recover");
  const xio_error_info_t info = rig::error_of(p.world, p.ctx);
  rig::expect(info.status == XIO_OK, "after xio_ctx_recover: %s", info.sentence);
}

// PE 1 is stopped, and the gets of all others from it come late.
void lose_peer(const pair_of_pes& p, const rig::device_array<results>& old, bool cold) {
  if (!cold && p.me != 1) expect_good_get(p, old);
  MUST(xio_host_barrier(p.world));
  p.words[2] = 2;
  if (p.me == 0) {
    p.stop_peer(2);
    for (int pe = 2; pe < p.n; ++pe) p.words_of(pe)[1] = 1;
    expect_late_get(p, old);
    for (int pe = 2; pe < p.n; ++pe)
      while (p.words[8 + pe] == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    // Its number is counted here, and not by the others.
    const int status = rig::result_of(barrier_kernel, 1, 1, p.ctx);
    rig::expect(status != XIO_OK, "a barrier without the other PEs: %d", status);
    p.continue_peer();
    for (int pe = 1; pe < p.n; ++pe) p.words_of(pe)[1] = 2;
  } else {
    if (p.me > 1) {
      wait_for_word(p, 1);
      expect_late_get(p, old);
      p.words_of(0)[8 + p.me] = 1;
    }
    wait_for_word(p, 2);
  }
}

int recover(bool cold) {
  pair_of_pes p;
  const rig::device_array<results> r(1), old(1);
  const auto usual = static_cast<uint64_t>(10000);
  lose_peer(p, old, cold);
  expect_recovery(p);
  RUN(set_limit, 1, 1, p.ctx, usual);
  if (p.me != 1) {
    lay_canary(p);
    std::this_thread::sleep_for(k_watch);
    expect_canary(p, "after xio_ctx_recover");
    RUN(look_again, 1, 1, p.ctx, old.data());
    rig::expect(old.get()[0].waited < 0, "the wait for a request of before: %d", old.get()[0].waited);
    rig::expect(old.get()[0].tested < 0, "the test of a request of before: %d", old.get()[0].tested);
  }
  MUST(xio_host_barrier(p.world));
  expect_round_trips(p, r);
  if (p.me != 1) {
    RUN(look_again, 1, 1, p.ctx, old.data());
    rig::expect(old.get()[0].waited < 0, "the late wait for a request of before: %d", old.get()[0].waited);
  }
  // Without need, and twice.
  expect_recovery(p);
  RUN(set_limit, 1, 1, p.ctx, usual);
  expect_round_trips(p, r);
  MUST(xio_host_barrier(p.world));
  if (p.me != 0) std::_Exit(rig::failures == 0 ? 0 : 1);
  const auto since = clock_type::now();
  rig::expect(xio_ctx_recover(p.world, p.ctx) != XIO_OK, "a ctx was recovered without its other PE");
  rig::took_less(since, 15000, "xio_ctx_recover without its peer");
  RUN(get_twice, 1, 1, p.ctx, p.mine, p.mine, p.theirs, 1, r.data());
  // Refused, it has stopped nothing.
  rig::expect(r.get()[0].blocking != XIO_ERR_STATE, "xio_ctx_recover has stopped the ctx though its peer did not come");
  return end_without_peer(p, "recover");
}

// mode 0: the ctx goes, 1: it is recovered, 2: the storage is closed, 3: the buffers are unregistered.
void expect_quiet_reads(pair_of_pes& p, const char* file, int mode) {
  xio_storage_t s{};
  MUST(xio_storage_open(p.world, file, nullptr, &s));
  xio_ctx_t ctx{};
  MUST(xio_ctx_create(p.world, nullptr, &ctx));
  const rig::device_array<results> r(1);
  RUN(set_limit, 1, 1, ctx, k_limit_ms);
  RUN(read_twice, 1, 1, ctx, s, p.plain.data(), p.mine, r.data());
  rig::expect_status(r.get()[0].blocking, XIO_ERR_TIMEOUT, "a read that comes late");
  rig::expect_status(r.get()[0].waited, XIO_ERR_TIMEOUT, "the wait for another");
  if (mode == 0) MUST(xio_ctx_destroy(p.world, ctx));
  if (mode == 1) MUST(xio_ctx_recover(p.world, ctx));
  if (mode == 2) MUST(xio_storage_close(p.world, s));
  lay_canary(p);
  std::this_thread::sleep_for(k_watch);
  expect_canary(p, file);
  if (mode == 1) {
    RUN(read_twice, 1, 1, ctx, s, p.plain.data(), p.mine, r.data());
    rig::expect(r.get()[0].blocking < 0, "a read of a storage that was stopped: %d", r.get()[0].blocking);
  }
  if (mode != 0) MUST(xio_ctx_destroy(p.world, ctx));
  if (mode != 2) MUST(xio_storage_close(p.world, s));
}

__global__ void read_many(xio_ctx_t ctx, xio_storage_t s, unsigned char* to, size_t bytes, xio_req_t* request) {
  *request = xio_read_nbi(ctx, to, s, 0, bytes);
}

// The drive is in the middle of its reads when their buffer is unregistered.
int unregister(const char* file) {
  pair_of_pes p;
  xio_storage_t s{};
  MUST(xio_storage_open(p.world, file, nullptr, &s));
  std::vector<unsigned char> buffer(64 << 20);
  const rig::device_array<xio_req_t> request(1);
  for (int round = 0; round < 12; ++round) {
    MUST(xio_mem_register(p.world, buffer.data(), buffer.size()));
    RUN(read_many, 1, 1, p.ctx, s, buffer.data(), buffer.size(), request.data());
    std::this_thread::sleep_for(std::chrono::microseconds(400 * round));
    MUST(xio_mem_unregister(p.world, buffer.data()));
    std::memset(buffer.data(), k_canary, buffer.size());
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    size_t changed = 0;
    for (unsigned char c : buffer) changed += c != k_canary;
    rig::expect(changed == 0, "round %d: %zu bytes were written after xio_mem_unregister", round, changed);
  }
  MUST(xio_storage_close(p.world, s));
  MUST(xio_ctx_destroy(p.world, p.ctx));
  MUST(xio_finalize(p.world));
  return verdict("unregister");
}

int storage(const char* file) {
  pair_of_pes p;
  for (int mode = 0; mode < 3; ++mode) expect_quiet_reads(p, file, mode);
  MUST(xio_finalize(p.world));
  return verdict("storage");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const bool cold = argc > 2 && std::string(argv[2]) == "cold";
  if (mode == "destroy") return destroy(cold);
  if (mode == "recover") return recover(cold);
  if (mode == "put") return put();
  if (mode == "storage" && argc > 2) return storage(argv[2]);
  if (mode == "unregister" && argc > 2) return unregister(argv[2]);
  std::fputs("late destroy|recover [cold], late put, late storage|unregister FILE\n", stderr);
  return 2;
}
