// SPDX-License-Identifier: MIT
// Queue pairs that are made when the first op goes there (XIO_CONNECT=lazy):
//   first_use            all PEs begin at once and in other orders, in several contexts; what an unused peer costs
//   first_use dead       the last PE is killed before anybody has written to it
//   first_use files      PE 0 has no descriptor left for a while
//   first_use lost       the NIC of one of two PEs fails for good (XIO_MODEL_FAULTS) and is opened anew
//   first_use row PE...  PE 0 puts to these one after the other; route_rdma.sh counts the queue pairs
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>

#include "rig.hpp"

namespace {

// Each thread writes a word to every PE, beginning with another one.
__global__ void write_everywhere(xio_ctx_t ctx, uint64_t* area, xio_req_t* requests, uint64_t round, int* status) {
  const int me = xio_my_pe(ctx), n = xio_n_pes(ctx);
  const uint32_t all = gridDim.x * blockDim.x;
  const uint32_t mine = blockIdx.x * blockDim.x + threadIdx.x;
  xio_status_t bad = XIO_OK;
  for (int i = 0; i < n; ++i) {
    const int pe = static_cast<int>(mine + static_cast<uint32_t>(i)) % n;
    const xio_status_t s = xio_p(ctx, area + static_cast<uint32_t>(me) * all + mine, round << 32 | mine, pe);
    if (s != XIO_OK) bad = s;
  }
  (void)xio_atomic_fetch_add(ctx, area + static_cast<uint32_t>(n) * all, uint64_t{1}, static_cast<int>(mine) % n);
  if (threadIdx.x == 0)
    requests[blockIdx.x] = xio_put_nbi(ctx, area + (static_cast<uint32_t>(n) + 1) * all + blockIdx.x, area, 8,
                                       static_cast<int>(blockIdx.x) % n);
  const xio_status_t last = xio_quiet(ctx);
  if (last != XIO_OK) bad = last;
  if (bad != XIO_OK) *status = bad;
}

__global__ void wait_for_others(xio_ctx_t ctx, const xio_req_t* requests, int* status) {
  const xio_status_t s = xio_wait(ctx, requests[(blockIdx.x + 1) % gridDim.x]);
  if (s != XIO_OK) *status = s;
}

// Quiet waits for what was posted to a queue pair that was made meanwhile: long, so that it is not done by itself.
constexpr size_t k_long = 4 << 20;
__global__ void put_long(xio_ctx_t ctx, unsigned char* to, const unsigned char* from, int pe, int* status) {
  const xio_req_t request = xio_put_nbi(ctx, to, from, k_long, pe);
  *status = xio_quiet(ctx);
  if (*status == XIO_OK) *status = xio_test(ctx, request);
}

// No quiet: that would tell of any op of the ctx that has failed.
__global__ void put_word(xio_ctx_t ctx, uint64_t* to, const uint64_t* from, int pe, int* status) {
  *status = xio_put(ctx, to, from, sizeof *from, pe);
}

bool is_lazy() {
  const char* how = std::getenv("XIO_CONNECT");
  return how != nullptr && std::strcmp(how, "lazy") == 0;
}

void all_begin_at_once(const rig::team& t) {
  const auto n = static_cast<uint32_t>(t.n);
  const uint32_t groups = rig::is_short() ? 2 : 4, threads = rig::is_short() ? 8 : 70, all = groups * threads;
  auto* area = t.symmetric<uint64_t>((n + 2) * all);
  auto* bytes = t.symmetric<unsigned char>(2 * k_long);
  for (uint64_t round = 1; round <= (rig::is_short() ? 1u : 4u); ++round) {
    xio_ctx_t ctx{};
    MUST(xio_ctx_create(t.world(), nullptr, &ctx));
    rig::expect_status(rig::result_of(put_long, 1, 1, ctx, bytes, bytes + k_long, t.right), XIO_OK, "a long put");
    const rig::device_array<xio_req_t> requests(groups);
    t.barrier();
    const int status = rig::result_of(write_everywhere, groups, threads, ctx, area, requests.data(), round);
    rig::expect_status(status, XIO_OK, "words to all PEs");
    rig::expect_status(rig::result_of(wait_for_others, groups, 1, ctx, requests.data()), XIO_OK, "their requests");
    t.barrier();
    const auto found = rig::team::read(area, n * all + 1);
    for (uint32_t i = 0; i < n * all; ++i)
      rig::expect(found[i] == (round << 32 | i % all), "round %llu: word %u is %llx", rig::ull(round), i,
                  rig::ull(found[i]));
    uint64_t adds = 0;
    for (uint32_t i = 0; i < all; ++i) adds += i % n == static_cast<uint32_t>(t.me) ? 1 : 0;
    rig::expect(found[n * all] == round * n * adds, "round %llu: %llu adds", rig::ull(round), rig::ull(found[n * all]));
    MUST(xio_ctx_destroy(t.world(), ctx));
  }
}

// A queue pair is some 26 KB; a PE that nothing is sent to is its row, two views and a word.
void unused_peers_cost_little(const rig::team& t) {
#if defined(XIO_ON_HOST) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  xio_ctx_t ctx{};
  const size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  MUST(xio_ctx_create(t.world(), nullptr, &ctx));
  const size_t took = mallinfo2().uordblks + mallinfo2().hblkhd - before;
  if (is_lazy())
    rig::expect(took < 24000 + 600 * static_cast<size_t>(t.n), "a ctx of %d PEs took %zu bytes", t.n, took);
  MUST(xio_ctx_destroy(t.world(), ctx));
#else
  (void)t;
#endif
}

[[noreturn]] void end_without_the_others(const char* what, const rig::team& t) {
  std::printf("%s: PE %d: %d checks, %d failed\n", what, t.me, rig::checks, rig::failures);
  std::fflush(stdout);
  std::_Exit(rig::failures == 0 ? 0 : 1);
}

void expect_put(const xio_ctx_t& ctx, uint64_t* to, int pe, xio_status_t wanted, const char* what) {
  rig::expect_status(rig::result_of(put_word, 1, 1, ctx, to, to + 1, pe), wanted, what);
}
void expect_put(const rig::team& t, uint64_t* to, int pe, xio_status_t wanted, const char* what) {
  expect_put(t.ctx, to, pe, wanted, what);
}

void expect_life(const rig::team& t, int pe, xio_pe_life_t wanted) {
  xio_pe_info_t info = XIO_PE_INFO_INIT;
  MUST(xio_pe_state(t.world(), pe, &info));
  rig::expect(info.life == wanted, "PE %d is %d: %s", pe, static_cast<int>(info.life), info.why);
}

[[noreturn]] void a_dead_peer(const rig::team& t) {
  auto* word = t.symmetric<uint64_t>(2);
  const int dead = t.n - 1;
  t.barrier();
  if (t.me == dead) raise(SIGKILL);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  for (int i = 0; i < 2; ++i) {
    const auto begin = rig::clock_type::now();
    expect_put(t, word, dead, XIO_ERR_PEER, "the first op to a dead PE");
    rig::took_less(begin, 5000, "an op to a dead PE");
    for (int pe = 0; pe < dead; ++pe) expect_put(t, word, pe, XIO_OK, "an op to a PE that lives");
  }
  // Nobody ends while another one may want to reach it.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  end_without_the_others("first_use dead", t);
}

void without_descriptors(const rig::team& t) {
  auto* word = t.symmetric<uint64_t>(2);
  t.barrier();
  if (t.me == 0) expect_put(t, word, 2, XIO_OK, "an op to PE 2");
  std::this_thread::sleep_for(std::chrono::seconds(3));  // until the link to it is given up: no descriptor comes back
  t.barrier();
  if (t.me == 0) {
    const rlimit few{256, 256};  // the soft limit alone would be raised
    setrlimit(RLIMIT_NOFILE, &few);
    std::vector<int> taken;
    for (int fd; (fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;) taken.push_back(fd);
    expect_put(t, word, 1, XIO_ERR_PEER, "an op that needs a descriptor");
    expect_life(t, 1, XIO_PE_SILENT);
    expect_put(t, word, 2, XIO_OK, "an op to PE 2 without descriptors");
    for (const int fd : taken) close(fd);
    expect_put(t, word, 1, XIO_OK, "an op once there are descriptors");
    expect_life(t, 1, XIO_PE_ALIVE);
  }
  t.barrier();
}

void a_lost_device(const rig::team& t) {
  auto* word = t.symmetric<uint64_t>(2);
  for (int i = 0; i < 20; ++i) (void)rig::result_of(put_word, 1, 1, t.ctx, word, word + 1, t.right);
  MUST(xio_ctx_recover(t.world(), t.ctx));
  expect_put(t, word, t.right, XIO_OK, "an op after xio_ctx_recover");
  t.barrier();
}

void a_row(const rig::team& t, char** pes) {
  auto* word = t.symmetric<uint64_t>(2);
  xio_ctx_t ctx{};
  MUST(xio_ctx_create(t.world(), nullptr, &ctx));
  for (; t.me == 0 && *pes != nullptr; ++pes) expect_put(ctx, word, std::atoi(*pes), XIO_OK, "an op of a row");
  // Those ahead are made meanwhile.
  if (t.me == 0) std::this_thread::sleep_for(std::chrono::seconds(1));
  t.barrier();
  MUST(xio_ctx_destroy(t.world(), ctx));
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "dead") a_dead_peer(*new rig::team());
  const rig::team t;
  if (mode == "files") {
    without_descriptors(t);
  } else if (mode == "lost") {
    a_lost_device(t);
  } else if (mode == "row") {
    a_row(t, argv + 2);
  } else {
    unused_peers_cost_little(t);
    all_begin_at_once(t);
  }
  return rig::verdict("first_use", t, false);
}
