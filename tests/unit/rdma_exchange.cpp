// SPDX-License-Identifier: MIT
// What an honest PE says when another one sends nonsense while RDMA is set up.
#include "transport/rdma/exchange.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "base/error.hpp"
#include "transport/rdma/rdma.hpp"

namespace {

bool says(const std::string& sentence, const std::string& words) { return sentence.find(words) != std::string::npos; }

namespace rdma = xio::rdma;

// PE 0 of two; PE 1 answers with this PE's own message after `spoil` was at it.
class liar final : public xio::bootstrap::channel {
 public:
  explicit liar(std::function<void(unsigned char*)> spoil) : spoil_(std::move(spoil)) {}
  int rank() const override { return 0; }
  int size() const override { return 2; }
  const char* name() const override { return "liar"; }
  std::vector<std::byte> allgather(std::span<const std::byte> mine) override {
    std::vector<std::byte> all(mine.begin(), mine.end());
    all.insert(all.end(), mine.begin(), mine.end());
    spoil_(reinterpret_cast<unsigned char*>(all.data() + mine.size()));
    return all;
  }

 private:
  std::function<void(unsigned char*)> spoil_;
};

const rdma::identity k_mine{0x10000, 1 << 20, 1, 1 << 30, {0x100}, {}};
const std::vector<rdma::queue_card> k_queues{{64, {}}, {65, {}}};

template <class Body>
std::string sentence_of(Body&& body, xio_status_t want) {
  try {
    body();
  } catch (const xio::error& e) {
    EXPECT_EQ(e.status(), want);
    return e.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

std::string identity_answer(std::function<void(unsigned char*)> spoil) {
  liar c(std::move(spoil));
  return sentence_of([&] { rdma::exchange_identities(c, k_mine, XIO_OK); }, XIO_ERR_PEER);
}

// Offsets of the message: magic 0, version 4, kind 6, status 8, count 12, heap base 16, bytes 24, NICs 32, limit 36,
// keys 40.
TEST(RdmaExchange, HonestPeersAgree) {
  liar c([](unsigned char*) {});
  const auto all = rdma::exchange_identities(c, k_mine, XIO_OK);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].heap_base, 0x10000u);
  const auto queues = rdma::exchange_queues(c, k_queues, 1, XIO_OK);
  ASSERT_EQ(queues.size(), 2u);
  EXPECT_EQ(queues[0].number, 64u);
  EXPECT_EQ(queues[1].number, 64u);
}

TEST(RdmaExchange, EveryLieNamesThePe) {
  EXPECT_PRED2(says, identity_answer([](unsigned char* m) { m[0] ^= 1; }), "PE 1 sent no RDMA");
  EXPECT_PRED2(says, identity_answer([](unsigned char* m) { m[4] = 9; }), "PE 1 speaks version 9");
  EXPECT_PRED2(says, identity_answer([](unsigned char* m) { m[6] = 2; }), "PE 1 is at another step");
  EXPECT_PRED2(says, identity_answer([](unsigned char* m) { m[12] = 2; }), "PE 1 is at another step");
  EXPECT_PRED2(says, identity_answer([](unsigned char* m) { m[25] ^= 1; }), "PE 1 has a heap of");
  EXPECT_PRED2(says, identity_answer([](unsigned char* m) { std::memset(m + 16, 0xff, 8); }), "cannot be");
  EXPECT_PRED2(says, identity_answer([](unsigned char* m) { m[32] = 2; }), "PE 1 uses 2 NICs");
  EXPECT_PRED2(says, identity_answer([](unsigned char* m) { m[36] ^= 1; }), "PE 1's NIC takes messages");
}

TEST(RdmaExchange, AFailureElsewhereIsNamed) {
  EXPECT_PRED2(says, identity_answer([](unsigned char* m) {
                 const std::int32_t status = XIO_ERR_NO_MEMORY;
                 std::memcpy(m + 8, &status, 4);
               }),
               "PE 1 could not set up RDMA (XIO_ERR_NO_MEMORY)");
}

TEST(RdmaExchange, QueuesMustBeWantedByBoth) {
  liar lacks([](unsigned char* m) { std::memset(m + 16, 0, 4); });
  EXPECT_PRED2(says, sentence_of([&] { rdma::exchange_queues(lacks, k_queues, 1, XIO_OK); }, XIO_ERR_PEER),
               "PE 1 lacks a queue pair");
  liar wide([](unsigned char* m) { m[19] = 1; });
  EXPECT_PRED2(says, sentence_of([&] { rdma::exchange_queues(wide, k_queues, 1, XIO_OK); }, XIO_ERR_PEER), "PE 1");
}

TEST(RdmaOpen, HardwareIsRefusedWithTheCure) {
  auto o = xio::options::defaults();
  o.backend = "hw";
  rdma::setup s{};
  s.opts = &o;
  liar alone([](unsigned char*) {});
  s.channel = &alone;
  EXPECT_PRED2(says, sentence_of([&] { rdma::open(s); }, XIO_ERR_UNSUPPORTED), "XIO_BACKEND=hw");
}

}  // namespace
