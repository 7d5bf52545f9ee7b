// SPDX-License-Identifier: MIT
// A driver that has lost its mind: random commands, doorbells, registers, lists and shadows. The drive must end every
// turn, keep to the memory that it was given and to its file, and work again after a reset.
#include <random>

#include "nvme_hand.hpp"

using namespace xio::test;
namespace w = xio::wire::nvme;

namespace {

class madman {
 public:
  madman(hand& h, std::uint64_t seed) : h_(h), random_(seed) {}

  void step() {
    switch (below(16)) {
      case 0: registers(); break;
      case 1: lists(); break;
      case 2: shadows(); break;
      case 3: admin(); break;
      default: io(); break;
    }
    h_.turn(static_cast<int>(1 + below(3)));
    if ((h_.csts() & 2) != 0 || below(400) == 0) restart();
  }

 private:
  std::uint64_t below(std::uint64_t n) { return random_() % n; }
  bool rarely() { return below(8) == 0; }

  std::uint64_t somewhere() {
    const std::uint64_t mapped = h_.bus(below(hand::k_bytes) & ~std::uint64_t{rarely() ? 0u : 4095u});
    switch (below(24)) {
      case 0: return random_();
      case 1: return 0;
      case 2: return h_.bus(hand::k_bytes - below(8192));
      default: return mapped;
    }
  }

  void registers() {
    constexpr std::uint32_t offsets[] = {0x00, 0x08, 0x0c, 0x10, 0x1c, 0x20, 0x24, 0x28, 0x2c, 0x30, 0x34};
    *h_.reg(offsets[below(std::size(offsets))]) = static_cast<std::uint32_t>(random_());
    if (below(64) == 0) *h_.reg(0x14) ^= 1u << below(32);
    const std::uint32_t queue = static_cast<std::uint32_t>(below(4));
    *h_.reg(0x1000 + static_cast<std::uint32_t>(below(2)) * 4 + queue * 8) = doorbell();
  }
  std::uint32_t doorbell() { return static_cast<std::uint32_t>(rarely() ? random_() : below(20)); }

  // Entries that lead anywhere, in pages that commands like to name.
  void lists() {
    for (int i = 0; i < 16; ++i) {
      const std::uint64_t at =
          hand::k_data + below(64) * 4096 + (below(2) == 0 ? 4096 - 8 * (1 + below(4)) : 8 * below(64));
      const std::uint64_t value = somewhere();
      std::memcpy(h_.memory() + at, &value, 8);
    }
    for (int i = 0; i < 16; ++i) {
      const std::uint64_t at = hand::k_data + below(64) * 4096 + 16 * below(32);
      const w::sgl_descriptor d = descriptor();
      std::memcpy(h_.memory() + at, &d, sizeof d);
    }
  }
  w::sgl_descriptor descriptor() {
    const std::uint32_t bytes =
        rarely() ? static_cast<std::uint32_t>(random_()) : static_cast<std::uint32_t>(16 * below(64));
    w::sgl_descriptor d = w::make_sgl(static_cast<w::sgl>(below(4)), somewhere(), bytes);
    if (rarely()) d.dw[3] = static_cast<std::uint32_t>(random_());
    return d;
  }
  void shadows() {
    auto* words = reinterpret_cast<std::uint32_t*>(h_.memory() + 0x60000);
    words[below(8)] = doorbell();
  }

  void spoil(w::sqe& e) {
    if (rarely()) e.dw[below(16)] ^= 1u << below(32);
    if (below(32) == 0) e.dw[below(16)] = static_cast<std::uint32_t>(random_());
  }
  void post(hand::pair& q, w::sqe e, std::uint32_t most_cids) {
    e.dw[0] |= static_cast<std::uint32_t>(below(most_cids)) << 16;
    spoil(e);
    h_.put(q, e);
    if (rarely()) return;
    h_.ring(q);
    // Consumes all completions that came, so that the queue goes on.
    h_.turn();
    bool took = false;
    while (h_.ready(q)) {
      q.head = (q.head + 1) % q.entries;
      if (q.head == 0) q.phase ^= 1;
      took = true;
    }
    if (took && !rarely()) h_.consume(q);
  }

  void admin() {
    const std::uint32_t qid = static_cast<std::uint32_t>(below(4));
    const std::uint32_t entries = 2 + static_cast<std::uint32_t>(below(rarely() ? 65535 : 14));
    const w::sqe all[] = {
        w::make_identify(static_cast<w::cns>(below(5)), static_cast<std::uint32_t>(below(3)), somewhere()),
        w::make_create_cq(qid, entries, somewhere()),
        w::make_create_sq(qid, entries, somewhere(), static_cast<std::uint32_t>(below(4))),
        w::make_delete_queue(below(2) == 0 ? w::admin::delete_sq : w::admin::delete_cq, qid),
        w::make_set_features(static_cast<w::feature>(below(16)), static_cast<std::uint32_t>(random_())),
        w::make_get_features(static_cast<w::feature>(below(16))),
        w::make_get_log_page(static_cast<w::log_page>(below(5)), 4 * (1 + static_cast<std::uint32_t>(below(2048))),
                             below(2) == 0, somewhere()),
        w::make_abort(qid, static_cast<std::uint32_t>(below(64))),
        w::make_async_event(),
        w::make_doorbell_buffer_config(h_.bus(0x60000), somewhere()),
    };
    post(h_.admin_queue(), all[below(std::size(all))], 32);
  }

  void io() {
    constexpr w::opcode ops[] = {w::opcode::read,
                                 w::opcode::read,
                                 w::opcode::write,
                                 w::opcode::compare,
                                 w::opcode::write_zeroes,
                                 w::opcode::flush,
                                 w::opcode::dataset_management};
    w::sqe e = w::make_io(ops[below(std::size(ops))], 0, rarely() ? static_cast<std::uint32_t>(below(3)) : 1u,
                          somewhere(), below(3) == 0 ? 0 : somewhere(), below(2200),
                          1 + static_cast<std::uint32_t>(below(rarely() ? 65536 : 300)));
    if (below(3) == 0) e = w::with_sgl(e, descriptor());
    post(h_.io_queue(), e, 64);
  }

  void restart() {
    h_.reset();
    h_.enable(0x00460001);
    std::memset(h_.memory() + 0x60000, 0, 0x2000);
    if (h_.csts() != 1) return;
    h_.make_queues(16);
  }

  hand& h_;
  std::mt19937_64 random_;
};

}  // namespace

TEST(nvme_fuzz, nothing_but_what_is_its_own) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    hand h({.shape = {.max_queues = 3, .contiguous = seed != 2, .shadow_turns = 8}, .direct = seed != 3});
    h.make_queues(16);
    h.device().inject(xio::model::nvme::plan_faults(
        "nvme_delay=0.02:1ms,nvme_lose=0.002,nvme_die=0.001,nvme_file=0.01:io_error,nvme_shuffle"));
    madman m(h, seed);
    for (int i = 0; i < 10000; ++i) {
      m.step();
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << ", step " << i;
    }
    EXPECT_EQ(h.file().size(), std::uint64_t{1} << 20);
    h.reset();
    h.enable(0x00460001);
    ASSERT_EQ(h.csts(), 1u);
    ASSERT_EQ(h.admin(w::make_identify(w::cns::controller, 0, h.data_bus())), 0u);
    EXPECT_EQ(h.identified<std::uint8_t>(512), 0x66u);
  }
}
