// SPDX-License-Identifier: MIT
// What an honest PE says when another one sends nonsense while RDMA is set up.
#include "liar.hpp"
#include "refusal.hpp"
#include "says.hpp"
#include "thread_channel.hpp"
#include "transport/rdma/exchange.hpp"
#include "transport/rdma/rdma.hpp"

namespace {

using namespace xio::test;

namespace rdma = xio::rdma;

const rdma::identity k_mine{0x10000, 1 << 20, 1, 1 << 30, {0x100}, {{std::byte{7}, std::byte{8}}}, {}};
const std::vector<rdma::queue_address> k_queues{{64, {}}, {65, {}}};

std::string identity_refusal(std::function<void(unsigned char*)> spoil) {
  liar c(std::move(spoil));
  return refusal(XIO_ERR_PEER, [&] { rdma::exchange_identities(c, k_mine, XIO_OK); });
}

// Offsets of the message: magic 0, version 4, kind 6, status 8, count 12; then from k_body on the reason of a failure,
// or heap base 0, bytes 8, NICs 16, limit 20, and of each NIC its key 24, the length of its address 28, the address 29.
constexpr std::size_t k_body = 16;

TEST(rdma_exchange, honest_peers_agree) {
  liar c([](unsigned char*) {});
  const auto all = rdma::exchange_identities(c, k_mine, XIO_OK);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_PAIRS((all[1].heap_base, 0x10000u), (all[1].heap_rkey[0], 0x100u),
               (all[1].nic_addresses[0], k_mine.nic_addresses[0]));
  const auto queues = rdma::exchange_queues(c, k_queues, 1, XIO_OK);
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_PAIRS((queues[0].number, 64u), (queues[1].number, 64u));
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
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { m[k_body + 28] = 1; }), "of another length");
  EXPECT_PRED2(says, identity_refusal([](unsigned char* m) { m[k_body + 28] = 255; }), "of another length");
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
                 std::memcpy(m + 16, "its NIC is off\x1b", 15);
               }),
               "PE 1 could not set up RDMA (XIO_ERR_IO): its NIC is off");
}

TEST(rdma_exchange, queues_must_be_wanted_by_both) {
  liar lacks([](unsigned char* m) { std::memset(m + k_body, 0, 4); });
  EXPECT_PRED2(says, refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(lacks, k_queues, 1, XIO_OK); }),
               "PE 1 lacks a queue pair");
  // The length of its address, which the message has not.
  liar wide([](unsigned char* m) { m[k_body + 3] = 1; });
  EXPECT_PRED2(says, refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(wide, k_queues, 1, XIO_OK); }),
               "PE 1 sent an RDMA set-up message of another length");
}

// PE 0 of many, all of which say what it says to itself; counts exchanges, and the bytes for others.
class crowd final : public xio::bootstrap::channel {
 public:
  explicit crowd(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  const char* name() const override { return "crowd"; }
  std::vector<std::byte> allgather(std::span<const std::byte> mine) override {
    ++exchanges;
    bytes += mine.size();
    std::vector<std::byte> all;
    for (int pe = 0; pe < size_; ++pe) all.insert(all.end(), mine.begin(), mine.end());
    return all;
  }
  xio::bootstrap::cells all_to_all(const xio::bootstrap::cells& mine) override {
    ++exchanges;
    bytes += mine.bytes();
    return xio::bootstrap::cells::same(mine[0], mine.count());
  }
  int exchanges = 0;
  std::size_t bytes = 0;

 private:
  const int size_;
};

struct cost {
  int pes;
  std::uint32_t queues;  // to each, of all contexts
  std::size_t address, bytes;
};

// In one exchange each PE tells each 16 bytes, and of each queue pair 4 and its address. The lengths of addresses are
// those of the shm, tcp and verbs ("mlx5_0") fabrics.
TEST(rdma_exchange, costs_the_bytes_of_each_cell) {
  for (const cost& c : {cost{1, 1, 12, 32},
                        {8, 1, 12, 8 * 32},
                        {32, 1, 12, 32 * 32},
                        {32, 33, 12, 32 * 544},
                        {32, 1, 0, 32 * 20},
                        {32, 1, 46, 32 * 66},
                        {1024, 1, 12, 1024 * 32},
                        {300, 16, 12, 300 * 272}}) {
    crowd all(c.pes);
    const rdma::queue_address one{64, xio::proxy::device_address(c.address, std::byte{1})};
    const std::vector<rdma::queue_address> mine(static_cast<std::size_t>(c.pes) * c.queues, one);
    EXPECT_EQ(rdma::exchange_queues(all, mine, c.queues, XIO_OK).size(), mine.size());
    EXPECT_EQ(all.exchanges, 1);
    EXPECT_EQ(all.bytes, c.bytes) << c.pes << " PEs, " << c.queues << " queue pairs";
  }
}

// Queue `which` from one PE to another: its number and a byte of its device address.
std::uint32_t number_of(int from, int to, std::uint32_t which) {
  return 1000 + static_cast<std::uint32_t>(from) * 100 + static_cast<std::uint32_t>(to) * 10 + which;
}

std::vector<rdma::queue_address> addresses_of(int pe, int size, std::uint32_t per_peer) {
  std::vector<rdma::queue_address> mine;
  for (int to = 0; to < size; ++to)
    for (std::uint32_t which = 0; which < per_peer; ++which) {
      const std::uint32_t number = number_of(pe, to, which);
      mine.push_back({number, xio::proxy::device_address(number % 50, static_cast<std::byte>(number & 0xff))});
    }
  return mine;
}

TEST(rdma_exchange, brings_each_pe_what_is_for_it) {
  constexpr int size = 5;
  constexpr std::uint32_t per_peer = 2;
  xio::test::run_pes(size, [](int pe, std::unique_ptr<xio::bootstrap::channel> c) {
    for (int again = 0; again < 2; ++again) {
      const auto theirs = rdma::exchange_queues(*c, addresses_of(pe, size, per_peer), per_peer, XIO_OK);
      ASSERT_EQ(theirs.size(), size * per_peer);
      for (int from = 0; from < size; ++from)
        for (std::uint32_t which = 0; which < per_peer; ++which) {
          const rdma::queue_address& q = theirs[static_cast<std::size_t>(from) * per_peer + which];
          EXPECT_EQ(q.number, number_of(from, pe, which));
          EXPECT_EQ(q.what, xio::proxy::device_address(q.number % 50, static_cast<std::byte>(q.number & 0xff)));
        }
    }
  });
}

TEST(rdma_exchange, ends_together_wherever_a_pe_fails) {
  constexpr int size = 5;
  xio::test::run_pes(size, [](int pe, std::unique_ptr<xio::bootstrap::channel> c) {
    const auto mine = addresses_of(pe, size, 1);
    if (pe == 3) {
      rdma::exchange_queues(*c, {}, 1, XIO_ERR_NO_MEMORY);
    } else {
      const auto why = refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(*c, mine, 1, XIO_OK); });
      EXPECT_PRED2(says, why, "PE 3 could not set up RDMA (XIO_ERR_NO_MEMORY)");
    }
    // One that only PE 4 sees.
    auto one_less = mine;
    if (pe == 2) one_less[4].number = 0;
    if (pe == 4)
      EXPECT_PRED2(says, refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(*c, mine, 1, XIO_OK); }),
                   "PE 2 lacks a queue pair");
    else if (pe == 2)
      EXPECT_PRED2(says, refusal(XIO_ERR_PEER, [&] { rdma::exchange_queues(*c, one_less, 1, XIO_OK); }),
                   "PE 4 has a queue pair");
    else
      EXPECT_NO_THROW(rdma::exchange_queues(*c, mine, 1, XIO_OK));
    EXPECT_NO_THROW(c->barrier());
  });
}

// Between two PEs: magic 0, version 4, kind 6, status 8, count 12, set 16; then of each queue pair a word of number and
// length (24, 29), and its address; or the reason of a failure.
TEST(rdma_exchange, messages_about_one_pe_are_checked) {
  const auto good = rdma::encode_pair({true, 7, XIO_OK, "", {{0x1234, {std::byte{9}}}, {0x5678, {}}}});
  const auto back = rdma::decode_pair(good, 1);
  EXPECT_PAIRS((good.size(), 33u), (back.set, 7u), (back.is_reply, true), (back.queues.size(), 2u),
               (back.queues[0].number, 0x1234u), (back.queues[0].what.size(), 1u), (back.queues[1].number, 0x5678u));
  const auto none = rdma::decode_pair(rdma::encode_pair({false, 8, XIO_ERR_NO_MEMORY, "no room", {}}), 1);
  EXPECT_PAIRS((none.status, XIO_ERR_NO_MEMORY), (none.why, "no room"), (none.is_reply, false));
  const auto refuses = [](std::span<const std::byte> m) {
    return refusal(XIO_ERR_PEER, [&] { rdma::decode_pair(m, 1); });
  };
  for (const auto& [at, value] : {std::pair{0, 1}, {4, 9}, {6, 2}, {12, 1}, {12, 3}, {15, 1}, {27, 200}}) {
    auto lie = good;
    lie[static_cast<std::size_t>(at)] = static_cast<std::byte>(value);
    EXPECT_PRED2(says, refuses(lie), "PE 1 sent") << at;
  }
  for (std::size_t size = 0; size < good.size(); ++size)
    EXPECT_PRED2(says, refuses(std::span(good).first(size)), "PE 1 sent") << size;
}

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
