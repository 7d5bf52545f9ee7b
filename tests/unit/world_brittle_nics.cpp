// SPDX-License-Identifier: MIT
// Worlds whose RDMA devices fail on one PE while it is set up: every PE hears of it, and the world lives on.
//
// This program brings an rdma::open of its own, which the linker takes before the library's.
#include "config.h"
#include "thread_worlds.hpp"
#include "transport/rdma/families.hpp"
#include "transport/rdma/nic_endpoint.hpp"
#include "xio/hip.h"
#include "xio/xio_device.hpp"

namespace {

using xio::fail;
using xio::options;
using xio::world;
using namespace xio::test;
namespace nic = xio::proxy;

constexpr int k_pes = 3;
constexpr int k_bad = 1;  // the PE whose NIC fails
constexpr int k_never = 1 << 30;

// How many calls of each kind the NIC of k_bad still carries out before it fails.
struct patience {
  std::atomic<int> connects{k_never};
  std::atomic<int> registrations{k_never};
  std::atomic<int> questions{k_never};  // how long a message may be, the first thing that it is asked
  std::atomic<int> dead{0};             // the opening whose device on k_bad has had its fatal event
  std::atomic<int> openings{0};         // endpoints that k_bad has opened
  void restore() { connects = registrations = questions = k_never; }
  void start() {
    restore();
    dead = openings = 0;
  }
} g_left;

// A NIC over shared memory; on k_bad it fails as g_left says.
class brittle_fabric final : public nic::fabric {
 public:
  explicit brittle_fabric(const xio::rdma::setup& s)
      : bad_(s.channel->rank() == k_bad),
        opening_(bad_ ? ++g_left.openings : 0),
        inner_(*s.payload, std::uint64_t{1} << 30, static_cast<std::uint32_t>(s.channel->rank() * 4 + 1)) {}
  nic::shm_fabric* inner() { return &inner_; }

  const char* name() const override { return "brittle"; }
  std::uint64_t max_message() const override {
    if (bad_ && g_left.questions-- <= 0) fail(XIO_ERR_IO, "the NIC has gone; plug it in again");
    return inner_.max_message();
  }
  nic::key_pair register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) override {
    if (bad_ && g_left.registrations-- <= 0) fail(XIO_ERR_NO_MEMORY, "the NIC takes no more memory; give it some");
    return inner_.register_memory(base, bytes, allowed);
  }
  void unregister_memory(const nic::key_pair& keys) override { inner_.unregister_memory(keys); }
  nic::device_address get_address() override { return inner_.get_address(); }
  void connect_peers(const std::vector<nic::device_address>& all) override { inner_.connect_peers(all); }
  nic::device_address get_queue_address(std::uint32_t number, int pe) override {
    return inner_.get_queue_address(number, pe);
  }
  std::unique_ptr<nic::executor> connect(std::uint32_t number, int pe, const nic::device_address& remote,
                                         std::uint32_t remote_number) override {
    if (bad_ && g_left.connects-- <= 0) fail(XIO_ERR_IO, "no file descriptor is left; close some");
    return inner_.connect(number, pe, remote, remote_number);
  }
  void forget(std::uint32_t number) override { inner_.forget(number); }
  bool poll() override { return inner_.poll(); }
  // As a device behind verbs: a new opening has nothing of it.
  bool has_failed() const override { return bad_ && opening_ == g_left.dead; }

 private:
  const bool bad_;
  const int opening_;
  nic::shm_fabric inner_;
};

options small_world() {
  options o = options::defaults();
  o.heap_size = 1 << 20;
  o.ring_depth = 16;
  return o;
}

xio_ctx_t create(world& w, std::uint32_t pool = 0) { return make_ctx(w, XIO_ROUTE_RDMA, pool); }

// All PEs have seen the failure, and see that the device is back.
void restore(int pe, world& w) {
  w.members().barrier();
  if (pe == k_bad) g_left.restore();
  w.members().barrier();
}

// The bad PE has its own error, the others one that names it; afterwards the world does all that it did before.
void expect_refused_and_well_again(int pe, world& w, std::uint32_t pool, xio_status_t status, const char* words) {
  const auto no = outcome_of([&] { create(w, pool); });
  const bool by_peer = pe != k_bad && no.status == XIO_ERR_PEER;
  expect_outcome(no, by_peer ? XIO_ERR_PEER : status, {pe == k_bad ? words : "PE 1"});
  restore(pe, w);
  w.contexts().destroy(create(w, pool));
}

class brittle_connect : public testing::TestWithParam<int> {};

// Every lane connects a queue pair to each PE, so the parameter says in which lane it ends; the last is pool 2's.
TEST_P(brittle_connect, is_reported_while_others_exchange_the_next_lane) {
  g_left.connects = GetParam();
  in_world(k_pes, small_world(),
           [](int pe, world& w) { expect_refused_and_well_again(pe, w, 2, XIO_ERR_IO, "no file descriptor is left"); });
}
INSTANTIATE_TEST_SUITE_P(connects, brittle_connect, testing::Values(0, 2, 3, 5, 6, 8));

TEST(world, of_which_one_pe_cannot_connect_its_flush_pair_lives_on) {
  options o = small_world();
  o.hdp = xio::option::hdp::rdma_read;
  g_left.connects = 0;
  in_world(k_pes, o,
           [](int pe, world& w) { expect_refused_and_well_again(pe, w, 0, XIO_ERR_IO, "no file descriptor is left"); });
}

TEST(world, of_which_one_nic_does_not_start_lives_on) {
  g_left.questions = 0;
  in_world(k_pes, small_world(),
           [](int pe, world& w) { expect_refused_and_well_again(pe, w, 1, XIO_ERR_IO, "the NIC has gone"); });
}

// There the endpoint is open everywhere before it turns out that one PE cannot use it.
TEST(world, of_which_one_nic_refuses_registered_memory_lives_on) {
  g_left.registrations = 1;  // the heap's
  in_world(k_pes, small_world(), [](int pe, world& w) {
    std::vector<char> early(4096);
    w.local_memory().register_memory(early.data(), early.size());
    expect_refused_and_well_again(pe, w, 0, XIO_ERR_NO_MEMORY, "the NIC takes no more memory");
    w.local_memory().unregister_memory(early.data());
  });
}

// --- A device that has failed for good ---------------------------------------------------------------

struct block_of_words {
  std::uint64_t *in, *out;
};
constexpr std::size_t k_words = 300;

__global__ void put_to(xio_ctx_t ctx, std::uint64_t* in, const std::uint64_t* out, int pe, int* status) {
  *status = xio_put(ctx, in, out, k_words * sizeof *in, pe);
  const xio_status_t quiet = xio_quiet(ctx);
  if (*status == XIO_OK) *status = quiet;
}

int put(xio_ctx_t ctx, const block_of_words& b, int pe) {
  int status = -1;
  hipLaunchKernelGGL(put_to, dim3(1), dim3(1), 0, nullptr, ctx, b.in, b.out, pe, &status);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  return status;
}

std::uint64_t word_of(int pe, std::uint64_t round, std::size_t i) {
  return round << 32 | static_cast<std::uint64_t>(pe) << 16 | i;
}

// Every PE puts to the next one, which has the data afterwards.
void expect_traffic(int pe, world& w, xio_ctx_t ctx, const block_of_words& b, std::uint64_t round) {
  for (std::size_t i = 0; i < k_words; ++i) b.out[i] = word_of(pe, round, i), b.in[i] = 0;
  w.members().barrier();
  EXPECT_EQ(put(ctx, b, (pe + 1) % k_pes), XIO_OK) << "PE " << pe << " round " << round;
  w.members().barrier();
  for (std::size_t i = 0; i < k_words; ++i)
    ASSERT_EQ(b.in[i], word_of((pe + k_pes - 1) % k_pes, round, i)) << "PE " << pe << " word " << i;
  w.members().barrier();
}

block_of_words words_of(world& w) {
  void *in = nullptr, *out = nullptr;
  w.heap().allocate({"xio_malloc", k_words, sizeof(std::uint64_t)}, &in);
  w.heap().allocate({"xio_malloc", k_words, sizeof(std::uint64_t)}, &out);
  return {static_cast<std::uint64_t*>(in), static_cast<std::uint64_t*>(out)};
}

// The device of the bad PE dies; its ops fail at once and not at the deadline, the sentence says why.
void expect_death(int pe, world& w, xio_ctx_t ctx, const block_of_words& b) {
  if (pe == k_bad) g_left.dead = g_left.openings.load();
  w.members().barrier();
  if (pe == k_bad) {
    EXPECT_EQ(put(ctx, b, 0), XIO_ERR_TRANSPORT);
    EXPECT_EQ(w.ctx_error(ctx).status, XIO_ERR_TRANSPORT);
  }
  w.members().barrier();
}

TEST(world, opens_a_device_that_has_failed_anew_and_keeps_its_heap) {
  g_left.start();
  options o = small_world();
  in_world(k_pes, o, [](int pe, world& w) {
    const block_of_words b = words_of(w);
    void* kept = nullptr;
    w.heap().allocate({"xio_malloc", 1, sizeof(std::uint64_t)}, &kept);
    *static_cast<std::uint64_t*>(kept) = word_of(pe, 77, 0);
    std::vector<std::uint64_t> local(k_words);
    w.local_memory().register_memory(local.data(), k_words * sizeof local[0]);
    const xio_ctx_t one = create(w, 1), two = create(w);
    for (std::uint64_t life = 1; life <= 3; ++life) {
      expect_traffic(pe, w, one, b, life * 10);
      expect_traffic(pe, w, two, b, life * 10 + 1);
      expect_death(pe, w, one, b);
      // No other can be made meanwhile, and all PEs hear of it.
      const auto no = outcome_of([&] { create(w); });
      EXPECT_NE(no.status, XIO_OK);
      EXPECT_PRED2(says, no.sentence, pe == k_bad ? "xio_ctx_recover" : "");
      w.contexts().recover(one);
      if (pe == k_bad) {
        EXPECT_EQ(g_left.openings, static_cast<int>(life) + 1);
      }
      expect_traffic(pe, w, one, b, life * 10 + 2);
      // The other ctx has queue pairs of before: it refuses work until it is recovered, which opens nothing again.
      EXPECT_EQ(put(two, b, (pe + 1) % k_pes), XIO_ERR_STATE);
      EXPECT_PRED2(says, std::string(w.ctx_error(two).sentence), "recover the ctx");
      w.contexts().recover(two);
      if (pe == k_bad) {
        EXPECT_EQ(g_left.openings, static_cast<int>(life) + 1);
      }
      expect_traffic(pe, w, two, b, life * 10 + 3);
      // The new device knows the memory that was registered before.
      const block_of_words from{b.in, local.data()};
      expect_traffic(pe, w, one, from, life * 10 + 4);
    }
    EXPECT_EQ(*static_cast<std::uint64_t*>(kept), word_of(pe, 77, 0));
    w.contexts().destroy(two);
    w.contexts().destroy(one);
    w.local_memory().unregister_memory(local.data());
  });
}

TEST(world, whose_device_is_not_back_yet_is_recovered_later) {
  g_left.start();
  in_world(k_pes, small_world(), [](int pe, world& w) {
    const block_of_words b = words_of(w);
    const xio_ctx_t ctx = create(w);
    expect_death(pe, w, ctx, b);
    if (pe == k_bad) g_left.questions = 0;
    w.members().barrier();
    for (int tries = 0; tries < 2; ++tries) {
      const auto no = outcome_of([&] { w.contexts().recover(ctx); });
      EXPECT_NE(no.status, XIO_OK);
      EXPECT_PRED2(says, no.sentence, pe == k_bad ? "the NIC has gone" : "");
      EXPECT_EQ(put(ctx, b, 0), pe == k_bad ? XIO_ERR_TRANSPORT : XIO_ERR_STATE);
    }
    restore(pe, w);
    w.contexts().recover(ctx);
    expect_traffic(pe, w, ctx, b, 9);
    w.contexts().destroy(ctx);
  });
}

// With the last ctx destroyed there is none to recover.
TEST(world, whose_last_ctx_died_with_its_device_makes_the_next_one_on_a_new_opening) {
  g_left.start();
  in_world(k_pes, small_world(), [](int pe, world& w) {
    const block_of_words b = words_of(w);
    xio_ctx_t ctx = create(w);
    expect_traffic(pe, w, ctx, b, 1);
    for (std::uint64_t life = 1; life <= 2; ++life) {
      expect_death(pe, w, ctx, b);
      w.contexts().destroy(ctx);
      // While the device is away no ctx can be made, and all PEs learn why.
      if (pe == k_bad) g_left.questions = 0;
      w.members().barrier();
      for (int tries = 0; tries < 2; ++tries) {
        const auto no = outcome_of([&] { create(w); });
        EXPECT_PRED2(says, no.sentence, "the NIC has gone") << "PE " << pe;
      }
      restore(pe, w);
      ctx = create(w);
      expect_traffic(pe, w, ctx, b, 10 + life);
    }
    w.contexts().destroy(ctx);
  });
}

}  // namespace

std::unique_ptr<xio::rdma::endpoint> xio::rdma::open_endpoint(const setup& s) {
  nic_parts c{};
  c.family = &find_family("mlx5");
  c.atomics = c.family->atomics;
  c.is_model = true;
  auto fabric = std::make_unique<brittle_fabric>(s);
  c.mapped.push_back(fabric->inner());
  c.fabrics.push_back(std::move(fabric));
  return std::make_unique<nic_endpoint>(s, std::move(c));
}
