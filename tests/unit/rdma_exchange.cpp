// SPDX-License-Identifier: MIT
// What an honest PE says when another one sends nonsense while RDMA is set up.
#include "transport/rdma/exchange.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>

#include "base/error.hpp"
#include "liar.hpp"
#include "refusal.hpp"
#include "says.hpp"
#include "thread_channel.hpp"
#include "transport/rdma/rdma.hpp"

namespace {

using xio::test::liar;
using xio::test::refusal;
using xio::test::says;

namespace rdma = xio::rdma;

const rdma::identity k_mine{0x10000, 1 << 20, 1, 1 << 30, {0x100}, {}};
const std::vector<rdma::queue_address> k_queues{{64, {}}, {65, {}}};

std::string identity_refusal(std::function<void(unsigned char*)> spoil) {
  liar c(std::move(spoil));
  return refusal(XIO_ERR_PEER, [&] { rdma::exchange_identities(c, k_mine, XIO_OK); });
}

// Offsets of the message: magic 0, version 4, kind 6, status 8, count 12, reason 16; then from k_body on heap base 0,
// bytes 8, NICs 16, limit 20, keys 24.
constexpr std::size_t k_body = 264;

TEST(rdma_exchange, honest_peers_agree) {
  liar c([](unsigned char*) {});
  const auto all = rdma::exchange_identities(c, k_mine, XIO_OK);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].heap_base, 0x10000u);
  const auto queues = rdma::exchange_queues(c, k_queues, 1, XIO_OK);
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues[0].number, 64u);
  EXPECT_EQ(queues[1].number, 64u);
}

TEST(rdma_exchange, every_lie_names_the_pe) {
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { m[0] ^= 1; }), "PE 1 sent no RDMA");
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { m[4] = 9; }), "PE 1 speaks version 9");
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { m[6] = 2; }), "PE 1 is at another step");
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { m[12] = 2; }), "PE 1 is at another step");
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { m[k_body + 9] ^= 1; }), "PE 1 has a heap of");
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { std::memset(m + k_body, 0xff, 8); }), "cannot be");
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { m[k_body + 16] = 2; }), "PE 1 uses 2 NICs");
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { m[k_body + 20] ^= 1; }), "PE 1's NIC takes messages");
}

TEST(rdma_exchange, a_failure_elsewhere_is_named) {
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) {
                 const std::int32_t status = XIO_ERR_NO_MEMORY;
                 std::memcpy(m + 8, &status, 4);
               }),
               "PE 1 could not set up RDMA (XIO_ERR_NO_MEMORY)");
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) {
                 const std::int32_t status = XIO_ERR_IO;
                 std::memcpy(m + 8, &status, 4);
                 std::memcpy(m + 16, "its NIC is off\x1b", 16);
               }),
               "PE 1 could not set up RDMA (XIO_ERR_IO): its NIC is off");
}

TEST(rdma_exchange, queues_must_be_wanted_by_both) {
  liar lacks([](unsigned char* m) { std::memset(m + k_body, 0, 4); });
  EXPECT_PRED2(says, refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(lacks, k_queues, 1, XIO_OK); }),
               "PE 1 lacks a queue pair");
  liar wide([](unsigned char* m) { m[k_body + 3] = 1; });
  EXPECT_PRED2(says, refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(wide, k_queues, 1, XIO_OK); }), "PE 1");
}

// PE 0 of many, all of which say what it says; counts the rounds, and the bytes of the largest.
class crowd final : public xio::bootstrap::channel {
 public:
  explicit crowd(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  const char* name() const override { return "crowd"; }
  std::vector<std::byte> allgather(std::span<const std::byte> mine) override {
    std::vector<std::byte> all;
    for (int pe = 0; pe < size_; ++pe) all.insert(all.end(), mine.begin(), mine.end());
    ++rounds;
    largest = std::max(largest, all.size());
    return all;
  }
  int rounds = 0;
  std::size_t largest = 0;

 private:
  const int size_;
};

crowd exchange_among(int size, std::uint32_t per_peer) {
  crowd c(size);
  const std::vector<rdma::queue_address> mine(static_cast<std::size_t>(size) * per_peer, {64, {}});
  EXPECT_EQ(rdma::exchange_queues(c, mine, per_peer, XIO_OK).size(), mine.size());
  return c;
}

TEST(rdma_exchange, small_worlds_need_one_round) {
  for (const int size : {1, 2, 64}) EXPECT_EQ(exchange_among(size, 1).rounds, 1) << size;
  EXPECT_EQ(exchange_among(2, 16).rounds, 1);
}

// A channel takes 256 MiB of all PEs together.
TEST(rdma_exchange, large_worlds_send_little_at_a_time) {
  const crowd many = exchange_among(1100, 1), wide = exchange_among(300, 16);
  EXPECT_GT(many.rounds, 1);
  EXPECT_LE(many.largest, std::size_t{16} << 20);
  EXPECT_GT(wide.rounds, 1);
  EXPECT_LE(wide.largest, std::size_t{16} << 20);
}

// Queue `which` from one PE to another: its number and a byte of its device address.
std::uint32_t number_of(int from, int to, std::uint32_t which) {
  return 1000 + static_cast<std::uint32_t>(from) * 100 + static_cast<std::uint32_t>(to) * 10 + which;
}

std::vector<rdma::queue_address> addresses_of(int pe, int size, std::uint32_t per_peer) {
  std::vector<rdma::queue_address> mine;
  for (int to = 0; to < size; ++to)
    for (std::uint32_t which = 0; which < per_peer; ++which) {
      rdma::queue_address q{number_of(pe, to, which), {}};
      std::memset(q.what.data(), static_cast<int>(q.number & 0xff), q.what.size());
      mine.push_back(q);
    }
  return mine;
}

class rounds : public testing::TestWithParam<std::size_t> {};

TEST_P(rounds, bring_each_pe_what_is_for_it) {
  constexpr int size = 5;
  constexpr std::uint32_t per_peer = 2;
  xio::test::run_pes(size, [](int pe, std::unique_ptr<xio::bootstrap::channel> c) {
    for (int again = 0; again < 2; ++again) {
      const auto theirs = rdma::exchange_queues(*c, addresses_of(pe, size, per_peer), per_peer, XIO_OK, GetParam());
      ASSERT_EQ(theirs.size(), size * per_peer);
      for (int from = 0; from < size; ++from)
        for (std::uint32_t which = 0; which < per_peer; ++which) {
          const rdma::queue_address& q = theirs[static_cast<std::size_t>(from) * per_peer + which];
          EXPECT_EQ(q.number, number_of(from, pe, which));
          EXPECT_EQ(q.what.front(), static_cast<std::byte>(q.number & 0xff));
          EXPECT_EQ(q.what.back(), static_cast<std::byte>(q.number & 0xff));
        }
    }
  });
}

TEST_P(rounds, end_together_wherever_a_pe_fails) {
  constexpr int size = 5;
  xio::test::run_pes(size, [](int pe, std::unique_ptr<xio::bootstrap::channel> c) {
    const auto mine = addresses_of(pe, size, 1);
    if (pe == 3) {
      rdma::exchange_queues(*c, {}, 1, XIO_ERR_NO_MEMORY, GetParam());
    } else {
      const auto why = refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(*c, mine, 1, XIO_OK, GetParam()); });
      EXPECT_PRED2(says, why, "PE 3 could not set up RDMA (XIO_ERR_NO_MEMORY)");
    }
    // One that only PE 4 sees.
    auto one_less = mine;
    if (pe == 2) one_less[4].number = 0;
    if (pe == 4)
      EXPECT_PRED2(says, refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(*c, mine, 1, XIO_OK, GetParam()); }),
                   "PE 2 lacks a queue pair");
    else if (pe == 2)
      EXPECT_PRED2(says, refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(*c, one_less, 1, XIO_OK, GetParam()); }),
                   "PE 4 has a queue pair");
    else
      EXPECT_NO_THROW(rdma::exchange_queues(*c, mine, 1, XIO_OK, GetParam()));
    EXPECT_NO_THROW(c->barrier());
  });
}
// Bytes of a round: the addresses of one PE at a time, of two or three, and of all.
INSTANTIATE_TEST_SUITE_P(rdma_exchange, rounds, testing::Values(1, 6000, 9000, 1 << 20));

TEST(rdma_open, hardware_is_refused_with_the_cure) {
  auto o = xio::options::defaults();
  o.backend = xio::option::backend::hw;
  rdma::setup s{};
  s.opts = &o;
  liar alone([](unsigned char*) {});
  s.channel = &alone;
  EXPECT_PRED2(says, refusal(XIO_ERR_UNSUPPORTED, [&] { rdma::open_endpoint(s); }), "XIO_BACKEND=hw");
}

}  // namespace
