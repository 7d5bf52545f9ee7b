// SPDX-License-Identifier: MIT
// Registers, Identify, features, events and queues of the software drive against NVMe base 2.0.
#include "nvme_hand.hpp"

using namespace xio::test;
namespace w = xio::wire::nvme;

namespace {

constexpr std::uint32_t k_rdy = 1, k_cfs = 2;

}  // namespace

// 3.1.3: what a driver may only read stays as it is.
TEST(nvme_registers, read_only_stays) {
  hand h;
  const std::uint64_t cap = h.read64(0);
  EXPECT_EQ(cap & 0xffff, 32767u);       // MQES, 0-based
  EXPECT_EQ(cap >> 16 & 1, 1u);          // CQR
  EXPECT_EQ(cap >> 37 & 1, 1u);          // NVM command set
  EXPECT_EQ(*h.reg(0x08), 0x00020000u);  // VS 2.0
  h.write64(0, 0x1234);
  *h.reg(0x08) = 7;
  *h.reg(0x1c) = 0xff;
  h.turn();
  EXPECT_PAIRS((h.read64(0), cap), (*h.reg(0x08), 0x00020000u), (h.csts(), k_rdy));
}

// 3.5.1 and 3.1.3.5: what must be right before CC.EN is set.
TEST(nvme_registers, wrong_enabling_is_fatal) {
  struct wrong {
    const char* what;
    std::uint32_t cc, aqa;
    std::uint64_t asq, acq;
  };
  hand h({.enabled = false});
  const std::uint64_t b = h.bus();
  const wrong all[] = {
      {"command set", 0x00460011, 0xf000f, b, b + 0x10000},
      {"pages of 8 KiB", 0x00460081, 0xf000f, b, b + 0x10000},
      {"arbitration", 0x00460801, 0xf000f, b, b + 0x10000},
      {"reserved bit of CC", 0x80460001, 0xf000f, b, b + 0x10000},
      {"shut down at once", 0x00464001, 0xf000f, b, b + 0x10000},
      {"SQ of one entry", 0x00460001, 0xf0000, b, b + 0x10000},
      {"CQ of one entry", 0x00460001, 0x0000f, b, b + 0x10000},
      {"reserved bit of AQA", 0x00460001, 0x800f000f, b, b + 0x10000},
      {"ASQ in mid page", 0x00460001, 0xf000f, b + 64, b + 0x10000},
      {"ACQ in mid page", 0x00460001, 0xf000f, b, b + 0x10010},
      {"ASQ nowhere", 0x00460001, 0xf000f, 0x1000, b + 0x10000},
      {"ACQ beyond the end", 0x00460001, 0xfff000f, b, b + (16 << 20) - 4096},
  };
  for (const wrong& x : all) {
    *h.reg(0x24) = x.aqa;
    h.write64(0x28, x.asq);
    h.write64(0x30, x.acq);
    *h.reg(0x14) = x.cc;
    h.turn();
    EXPECT_EQ(h.csts(), k_cfs) << x.what;
    h.reset();
  }
  h.enable(0x00460001);
  EXPECT_EQ(h.csts(), k_rdy);
}

TEST(nvme_registers, fixed_fields_while_enabled) {
  hand h;
  *h.reg(0x14) = 0x00460081;  // MPS
  h.turn();
  EXPECT_EQ(h.csts(), k_rdy | k_cfs);
  h.restart();
  h.make_queues();
  EXPECT_EQ(h.io(w::make_io(w::opcode::read, 0, 1, h.data_bus(), 0, 0, 1)), 0u);
}

// 3.1.3.6: shutdown is announced, and only a reset ends it.
TEST(nvme_registers, shuts_down) {
  ready_hand h;
  *h.reg(0x14) = 0x00464001;
  h.turn();
  EXPECT_EQ(h.csts(), k_rdy | 8u);
  h.put(h.io_queue(), w::make_io(w::opcode::read, 1, 1, h.data_bus(), 0, 0, 1));
  h.ring(h.io_queue());
  h.turn(50);
  EXPECT_FALSE(h.ready(h.io_queue()));
  h.restart();
  EXPECT_EQ(h.csts(), k_rdy);
}

TEST(nvme_registers, takes_its_time) {
  hand h({.shape = {.enabling = std::chrono::milliseconds(5)}});
  EXPECT_EQ(h.csts(), 0u);
  EXPECT_TRUE(h.until([&] { return h.csts() == k_rdy; }));
}

// A dead controller does nothing, and a reset brings it back as new.
TEST(nvme_registers, dies_and_comes_back) {
  ready_hand h;
  h.device().kill();
  h.turn();
  EXPECT_EQ(h.csts(), k_rdy | k_cfs);
  h.put(h.io_queue(), w::make_io(w::opcode::read, 1, 1, h.data_bus(), 0, 0, 1));
  h.ring(h.io_queue());
  h.turn(50);
  EXPECT_FALSE(h.ready(h.io_queue()));
  h.restart();
  EXPECT_EQ(h.csts(), k_rdy);
  // Queues and what was granted are gone.
  EXPECT_EQ(h.admin(w::make_create_cq(1, 8, h.bus() + 0x50000)), 0x101u);
  h.make_queues();
  EXPECT_EQ(h.io(w::make_io(w::opcode::read, 0, 1, h.data_bus(), 0, 8, 1)), 0u);
  EXPECT_TRUE(stamped(h.data(), 4096, 512));
}

// 5.17.2.1, figure 275.
TEST(nvme_identify, tells_its_shape) {
  hand all({.shape = {.mdts_bytes = 128 << 10, .max_queues = 4, .namespaces = 3}});
  ASSERT_EQ(all.admin(w::make_identify(w::cns::controller, 0, all.data_bus())), 0u);
  EXPECT_EQ(all.identified<std::uint8_t>(77), 5u);            // MDTS
  EXPECT_EQ(all.identified<std::uint32_t>(80), 0x00020000u);  // VER
  EXPECT_EQ(all.identified<std::uint16_t>(256), 0x0100u);     // OACS
  EXPECT_EQ(all.identified<std::uint8_t>(512), 0x66u);
  EXPECT_EQ(all.identified<std::uint8_t>(513), 0x44u);
  EXPECT_EQ(all.identified<std::uint32_t>(516), 3u);       // NN
  EXPECT_EQ(all.identified<std::uint16_t>(520), 0x0009u);  // ONCS: compare, write zeroes
  EXPECT_EQ(all.identified<std::uint8_t>(525), 0x07u);     // VWC
  EXPECT_EQ(all.identified<std::uint32_t>(536), 1u);       // SGLS
  ASSERT_EQ(all.admin(w::make_identify(w::cns::active_namespaces, 1, all.data_bus())), 0u);
  EXPECT_PAIRS((all.identified<std::uint32_t>(0), 2u), (all.identified<std::uint32_t>(4), 3u),
               (all.identified<std::uint32_t>(8), 0u),
               (all.admin(w::make_identify(w::cns::active_namespaces, 0xfffffffe, all.data_bus())), 0x00bu),
               (all.admin(w::make_identify(w::cns::name_space, 4, all.data_bus())), 0x00bu),
               (all.admin(w::make_identify(static_cast<w::cns>(0x40), 0, all.data_bus())), 0x002u));

  hand none({.shape = {.mdts_bytes = 0,
                       .write_cache = false,
                       .compare = false,
                       .write_zeroes = false,
                       .sgls = 0,
                       .doorbell_buffers = false,
                       .metadata_bytes = 8}});
  ASSERT_EQ(none.admin(w::make_identify(w::cns::controller, 0, none.data_bus())), 0u);
  EXPECT_PAIRS((none.identified<std::uint8_t>(77), 0u), (none.identified<std::uint16_t>(256), 0u),
               (none.identified<std::uint16_t>(520), 0u), (none.identified<std::uint8_t>(525) & 1, 0),
               (none.identified<std::uint32_t>(536), 0u));
  ASSERT_EQ(none.admin(w::make_identify(w::cns::name_space, 1, none.data_bus())), 0u);
  EXPECT_EQ(none.identified<std::uint32_t>(128), 0x00090008u);  // 512 bytes and 8 of metadata
  EXPECT_EQ(none.admin(w::make_doorbell_buffer_config(none.bus(0x60000), none.bus(0x70000))), 0x001u);
  none.make_queues();
  EXPECT_EQ(none.io(w::make_io(w::opcode::compare, 0, 1, none.data_bus(), 0, 0, 1)), 0x001u);
  EXPECT_EQ(none.io(w::make_io(w::opcode::write_zeroes, 0, 1, 0, 0, 0, 1)), 0x001u);
  EXPECT_EQ(none.io(w::make_io(w::opcode::read, 0, 1, none.data_bus(), 0, 0, 1)), 0x082u);
  const auto sgl = w::make_sgl(w::sgl::data_block, none.data_bus(), 512);
  EXPECT_EQ(none.io(w::with_sgl(w::make_io(w::opcode::read, 0, 1, 0, 0, 0, 1), sgl)), 0x002u);
}

// 5.27
TEST(nvme_features, keep_and_refuse) {
  hand h;
  const auto get = [&](w::feature f) { return h.run(h.admin_queue(), w::make_get_features(f)); };
  EXPECT_EQ(get(w::feature::volatile_write_cache).dw[0], 1u);
  EXPECT_EQ(h.admin(w::make_set_features(w::feature::volatile_write_cache, 0)), 0u);
  EXPECT_EQ(get(w::feature::volatile_write_cache).dw[0], 0u);
  EXPECT_EQ(h.admin(w::make_set_features(w::feature::volatile_write_cache, 2)), 0x002u);
  EXPECT_EQ(h.admin(w::make_set_features(w::feature::arbitration, 0x0102)), 0u);
  EXPECT_EQ(get(w::feature::arbitration).dw[0], 0x0102u);
  EXPECT_EQ(h.admin(w::make_set_features(w::feature::power_management, 1)), 0x002u);
  EXPECT_EQ(h.admin(w::make_set_features(static_cast<w::feature>(0x7f), 0)), 0x002u);
  EXPECT_EQ(h.status(get(static_cast<w::feature>(0x7f))), 0x002u);
  w::sqe save = w::make_set_features(w::feature::arbitration, 0);
  save.dw[10] |= 1u << 31;
  EXPECT_EQ(h.admin(save), 0x10du);
  const w::cqe queues = h.run(h.admin_queue(), w::make_set_features(w::feature::number_of_queues, 0x00ff00ff));
  EXPECT_EQ(queues.dw[0], 0x003f003fu);  // 64 of each, 0-based
  EXPECT_EQ(h.admin(w::make_set_features(w::feature::number_of_queues, 0xffff0000)), 0x002u);
  h.make_queues();
  EXPECT_EQ(h.admin(w::make_set_features(w::feature::number_of_queues, 0)), 0x00cu);
  // A reset forgets.
  h.restart();
  EXPECT_EQ(get(w::feature::volatile_write_cache).dw[0], 1u);
}

// 5.2 and 5.16.1.2: one event of a type, then none before the log is read.
TEST(nvme_events, wait_for_the_log) {
  ready_hand h;
  auto& q = h.admin_queue();
  w::sqe ask = w::make_async_event();
  for (std::uint32_t i = 0; i < 4; ++i) {
    ask.dw[0] = 0x0c | (0x800 + i) << 16;
    h.put(q, ask);
  }
  h.ring(q);
  h.turn(4);
  EXPECT_FALSE(h.ready(q));
  EXPECT_EQ(h.admin(w::make_async_event()), 0x105u);  // one too many
  *h.tail_doorbell(h.io_queue()) = 8;
  const w::cqe first = h.next(q);
  h.consume(q);
  EXPECT_EQ(w::cqe_cid(first.dw[3]), 0x800);
  EXPECT_EQ(first.dw[0], 0x00010100u);  // error status, invalid doorbell value, error log
  *h.tail_doorbell(h.io_queue()) = 9;
  h.turn(4);
  EXPECT_EQ(h.device().invalid_doorbells(), 2u);
  EXPECT_FALSE(h.ready(q));
  EXPECT_EQ(h.admin(w::make_get_log_page(w::log_page::error_information, 128, true, h.data_bus())), 0u);
  EXPECT_FALSE(h.ready(q));                       // kept masked
  EXPECT_EQ(h.identified<std::uint64_t>(0), 2u);  // newest first
  EXPECT_EQ(h.identified<std::uint16_t>(8), 1u);  // queue
  EXPECT_EQ(h.identified<std::uint64_t>(64), 1u);
  h.put(q, [&] {
    w::sqe log = w::make_get_log_page(w::log_page::error_information, 64, false, h.data_bus());
    log.dw[0] |= 0x900 << 16;
    return log;
  }());
  h.ring(q);
  std::vector<std::uint32_t> came = {w::cqe_cid(h.next(q).dw[3]), w::cqe_cid(h.next(q).dw[3])};
  h.consume(q);
  std::sort(came.begin(), came.end());
  EXPECT_EQ(came, (std::vector<std::uint32_t>{0x801, 0x900}));
}

// 5.2: all the ways to write a doorbell wrongly.
TEST(nvme_events, doorbells_that_cannot_be) {
  ready_hand h;
  auto& q = h.io_queue();
  std::uint32_t wrong = 0;
  const auto expect_wrong = [&](const char* what) {
    h.turn(300);  // doorbells of no queue are looked at now and then
    EXPECT_EQ(h.device().invalid_doorbells(), ++wrong) << what;
  };
  *h.tail_doorbell(q) = 0;
  expect_wrong("the same tail");
  *h.tail_doorbell(q) = 8;
  expect_wrong("a tail past the end");
  *h.tail_doorbell(q) = 0xffffffff;
  expect_wrong("reserved bits");
  *h.head_doorbell(q) = 0;
  expect_wrong("the same head");
  *h.head_doorbell(q) = 1;
  expect_wrong("an entry taken from an empty queue");
  *h.reg(w::sq_tail_doorbell(2, 0)) = 1;
  expect_wrong("a submission queue that is not there");
  *h.reg(w::cq_head_doorbell(2, 0)) = 1;
  expect_wrong("a completion queue that is not there");
  EXPECT_EQ(h.io(w::make_io(w::opcode::read, 0, 1, h.data_bus(), 0, 0, 1)), 0u);
  *h.tail_doorbell(q) = q.tail;
  expect_wrong("the same tail again");
  h.turn(1000);
  EXPECT_EQ(h.device().invalid_doorbells(), wrong);
  // Nothing of all that was taken for a command.
  EXPECT_EQ(h.device().commands(), 3u + 1u);
}

TEST(nvme_admin, aborts_what_waits) {
  ready_hand h;
  auto& q = h.io_queue();
  h.device().inject({.what = xio::model::nvme::fault::kind::lose});
  h.put(q, w::make_io(w::opcode::read, 77, 1, h.data_bus(), 0, 0, 1));
  h.ring(q);
  h.turn(100);
  EXPECT_FALSE(h.ready(q));
  EXPECT_EQ(h.run(h.admin_queue(), w::make_abort(1, 78)).dw[0], 1u);  // no such command
  EXPECT_EQ(h.run(h.admin_queue(), w::make_abort(1, 77)).dw[0], 0u);
  const w::cqe e = h.next(q);
  h.consume(q);
  EXPECT_PAIRS((w::cqe_cid(e.dw[3]), 77), (h.status(e), 0x007u),
               (h.run(h.admin_queue(), w::make_abort(9, 1)).dw[0], 1u));
  // The id is free again.
  h.put(q, w::make_io(w::opcode::read, 77, 1, h.data_bus(), 0, 0, 1));
  h.ring(q);
  EXPECT_EQ(h.status(h.next(q)), 0u);
}

TEST(nvme_admin, log_pages) {
  hand h;
  EXPECT_EQ(h.admin(w::make_get_log_page(static_cast<w::log_page>(0x7f), 64, false, h.data_bus())), 0x109u);
  std::memset(h.data(), 0xee, 8192);
  ASSERT_EQ(h.admin(w::make_get_log_page(w::log_page::health, 512, false, h.data_bus())), 0u);
  EXPECT_EQ(h.identified<std::uint8_t>(0), 0u);     // no warning
  EXPECT_EQ(h.identified<std::uint16_t>(1), 300u);  // kelvin
  EXPECT_EQ(h.data()[512], 0xee);
  w::sqe part = w::make_get_log_page(w::log_page::health, 8, false, h.data_bus());
  part.dw[12] = 510;
  EXPECT_EQ(h.admin(part), 0x002u);
  part.dw[12] = 1024;
  EXPECT_EQ(h.admin(part), 0x002u);
  w::sqe huge = w::make_get_log_page(w::log_page::health, 8, false, h.data_bus());
  huge.dw[11] = 0xffff;
  EXPECT_EQ(h.admin(huge), 0x002u);
}

// 5.4, 5.5: queues in pieces where CAP.CQR is 0, larger pages, wider doorbells, small queues.
TEST(nvme_admin, queues_in_pieces) {
  hand h({.shape = {.doorbell_stride = 2, .contiguous = false, .max_page_shift = 1}, .cc = 0x00460081});
  ASSERT_EQ(h.csts(), k_rdy);
  EXPECT_EQ(h.read64(0) >> 16 & 1, 0u);
  ASSERT_EQ(h.admin(w::make_set_features(w::feature::number_of_queues, 0)), 0u);
  constexpr std::uint32_t entries = 512;
  // The SQ's 32 KiB are four pages of 8 KiB, told in turned order; the CQ's are one.
  auto* list = reinterpret_cast<std::uint64_t*>(h.memory() + 0x30000);
  const std::uint64_t at[] = {0x46000, 0x44000, 0x42000, 0x40000};
  for (int i = 0; i < 4; ++i) list[i] = h.bus(at[i]);
  list[1024] = h.bus(0x60000);
  w::sqe cq = w::make_create_cq(1, entries, h.bus(0x32000));
  cq.dw[11] = 0;
  ASSERT_EQ(h.admin(cq), 0u);
  w::sqe sq = w::make_create_sq(1, entries, h.bus(0x30000), 1);
  sq.dw[11] = 1 << 16;
  list[2] += 4096;
  EXPECT_EQ(h.admin(sq), 0x013u);
  list[2] -= 4096;
  ASSERT_EQ(h.admin(sq), 0u);
  auto& q = h.io_queue();
  q = {1, entries, 0, 0, 1, nullptr, h.memory() + 0x60000};
  for (std::uint32_t i = 0; i < 2 * entries; ++i) {
    const std::uint32_t slot = q.tail;
    w::sqe e = w::make_io(w::opcode::read, i % entries, 1, h.data_bus(i % 4 * 512), 0, i, 1);
    std::memcpy(h.memory() + at[slot / 128] + slot % 128 * 64, &e, 64);
    q.tail = (slot + 1) % entries;
    h.ring(q);
    const w::cqe c = h.next(q);
    ASSERT_EQ(w::cqe_cid(c.dw[3]), i % entries);
    ASSERT_EQ(h.status(c), 0u);
    ASSERT_TRUE(stamped(h.data() + i % 4 * 512, std::uint64_t{i} * 512, 512)) << i;
    h.consume(q);
  }
  EXPECT_EQ(h.device().invalid_doorbells(), 0u);
  // A drive that wants them in one piece refuses.
  hand strict;
  ASSERT_EQ(strict.admin(w::make_set_features(w::feature::number_of_queues, 0)), 0u);
  EXPECT_EQ(strict.admin(cq), 0x002u);
}

TEST(nvme_admin, wrong_queues) {
  hand h({.shape = {.max_entries = 16, .max_queues = 2}});
  ASSERT_EQ(h.admin(w::make_set_features(w::feature::number_of_queues, 0x00010001)), 0u);
  const std::uint64_t at = h.bus(0x40000);
  EXPECT_PAIRS((h.admin(w::make_create_cq(0, 8, at)), 0x101u), (h.admin(w::make_create_cq(3, 8, at)), 0x101u),
               (h.admin(w::make_create_cq(1, 1, at)), 0x102u), (h.admin(w::make_create_cq(1, 17, at)), 0x102u));
  w::sqe interrupts = w::make_create_cq(1, 8, at);
  interrupts.dw[11] |= 2;
  EXPECT_PAIRS((h.admin(interrupts), 0x108u), (h.admin(w::make_create_cq(1, 8, at + 16)), 0x013u),
               (h.admin(w::make_create_cq(1, 8, 0x1000)), 0x004u));
  ASSERT_EQ(h.admin(w::make_create_cq(1, 8, at)), 0u);
  EXPECT_EQ(h.admin(w::make_create_cq(1, 8, at)), 0x101u);
  EXPECT_EQ(h.admin(w::make_create_sq(1, 8, h.bus(0x50000), 2)), 0x100u);
  EXPECT_EQ(h.admin(w::make_create_sq(1, 8, h.bus(0x50000), 0)), 0x100u);
  ASSERT_EQ(h.admin(w::make_create_sq(1, 8, h.bus(0x50000), 1)), 0u);
  EXPECT_EQ(h.admin(w::make_delete_queue(w::admin::delete_cq, 1)), 0x10cu);  // the SQ is still there
  EXPECT_EQ(h.admin(w::make_delete_queue(w::admin::delete_sq, 2)), 0x101u);
  EXPECT_EQ(h.admin(w::make_delete_queue(w::admin::delete_sq, 0)), 0x101u);
  EXPECT_EQ(h.admin(w::make_delete_queue(w::admin::delete_sq, 1)), 0u);
  EXPECT_EQ(h.admin(w::make_delete_queue(w::admin::delete_cq, 1)), 0u);
  // Without CC.IOSQES and IOCQES there are no I/O queues (5.4, 5.5).
  *h.reg(0x14) = 1;
  EXPECT_EQ(h.admin(w::make_create_cq(1, 8, at)), 0x102u);
  *h.reg(0x14) = 0x00460001;
  EXPECT_PAIRS((h.admin(w::make_create_cq(1, 8, at)), 0u), (h.admin(w::make_command(0x7f, 0, 0, 0, 0)), 0x001u));
  w::sqe sgl = w::make_identify(w::cns::controller, 0, h.data_bus());
  sgl.dw[0] |= 1 << 14;
  EXPECT_PAIRS((h.admin(sgl), 0x002u), (h.device().invalid_doorbells(), 0u));
}
