// SPDX-License-Identifier: MIT
// The model is strict: commands that are right but for one thing, and the status that the specifications give them.
#include "nvme_hand.hpp"
#include "nvme_rig.hpp"

using namespace xio;
using namespace xio::test;
namespace w = xio::wire::nvme;

namespace {

w::sqe read_of(std::uint32_t blocks, std::uint64_t prp1, std::uint64_t prp2, std::uint32_t cid = 0) {
  return w::make_io(w::opcode::read, cid, 1, prp1, prp2, 0, blocks);
}

// Reads of one block each.
void put_reads(hand& h, std::uint32_t count, std::uint32_t first = 0) {
  for (std::uint32_t i = 0; i < count; ++i) h.put(h.io_queue(), read_of(1, h.data_bus(), 0, first + i));
  h.ring(h.io_queue());
}

}  // namespace

TEST(nvme_controller, one_thing_wrong) {
  ready_hand h({.shape = {.mdts_bytes = 64 << 10}});
  const std::uint64_t p = h.data_bus();
  struct wrong {
    const char* what;
    std::uint32_t status;
    std::function<void(w::sqe&)> spoil;
  };
  const wrong all[] = {
      {"opcode", 0x001, [](w::sqe& e) { e.dw[0] = (e.dw[0] & ~0xffu) | 0x7f; }},
      {"of bytes, which this drive does not know", 0x001, [](w::sqe& e) { e = w::of_bytes(e, 0, 8192); }},
      {"fused", 0x002, [](w::sqe& e) { e.dw[0] |= 1 << 8; }},
      {"PSDT 11b", 0x002, [](w::sqe& e) { e.dw[0] |= 3 << 14; }},
      {"reserved bit of dw12", 0x002, [](w::sqe& e) { e.dw[12] |= 1 << 25; }},
      {"reserved bit of dw13", 0x002, [](w::sqe& e) { e.dw[13] |= 1 << 8; }},
      {"reserved bit of dw0", 0x002, [](w::sqe& e) { e.dw[0] |= 1 << 11; }},
      {"reserved dw2", 0x002, [](w::sqe& e) { e.dw[2] = 1; }},
      {"metadata pointer", 0x002, [](w::sqe& e) { e.dw[4] = 8; }},
      {"namespace 0", 0x00b, [](w::sqe& e) { e.dw[1] = 0; }},
      {"namespace 2", 0x00b, [](w::sqe& e) { e.dw[1] = 2; }},
      {"broadcast read", 0x00b, [](w::sqe& e) { e.dw[1] = 0xffffffff; }},
      {"PRP1 not a dword", 0x013, [](w::sqe& e) { e.dw[6] |= 2; }},
      {"PRP2 with an offset", 0x013, [](w::sqe& e) { e.dw[8] |= 4; }},
      {"PRP1 unmapped", 0x004, [](w::sqe& e) { e.dw[7] = 0; }},
      {"PRP2 unmapped", 0x004, [](w::sqe& e) { e.dw[9] ^= 1; }},
      {"PRP2 missing", 0x004, [](w::sqe& e) { e.dw[8] = e.dw[9] = 0; }},
      {"PRP2 not needed", 0x002, [](w::sqe& e) { e.dw[12] = 7; }},
      {"first block out of range", 0x080, [](w::sqe& e) { e.dw[10] = 2048; }},
      {"last block out of range", 0x080, [](w::sqe& e) { e.dw[10] = 2048 - 15; }},
      {"high half of the LBA", 0x080, [](w::sqe& e) { e.dw[11] = 1; }},
      {"more than MDTS", 0x002, [](w::sqe& e) { e.dw[12] = 128; }},
  };
  for (const wrong& x : all) {
    std::memset(h.data(), 0xee, 65536);
    w::sqe e = read_of(16, p, p + 4096);
    x.spoil(e);
    EXPECT_EQ(h.io(e), x.status) << x.what;
    for (int i = 0; i < 4096; ++i) ASSERT_EQ(h.data()[i], 0xee) << x.what;
  }
  EXPECT_EQ(h.io(read_of(16, p, p + 4096)), 0u);
}

TEST(nvme_controller, one_thing_wrong_in_a_list) {
  ready_hand h;
  const std::uint64_t p = h.data_bus();
  const std::uint64_t at = p + (1 << 20);
  auto* list = reinterpret_cast<std::uint64_t*>(h.data() + (1 << 20));
  const auto with = [&](std::uint64_t one, std::uint64_t two, std::uint64_t pointer) {
    list[0] = one;
    list[1] = two;
    return h.io(read_of(24, p, pointer));
  };
  EXPECT_PAIRS((with(p + 4096, p + 8192, at), 0u), (with(p + 4100, p + 8192, at), 0x013u),
               (with(p + 4096, p + 8192 + 512, at), 0x013u), (with(p + 4096, 0, at), 0x004u),
               (with(p + 4096, p + 8192, at + 4), 0x013u), (with(p + 4096, p + 8192, 0x1000), 0x004u));
  // A process address is no bus address.
  EXPECT_EQ(with(reinterpret_cast<std::uint64_t>(h.data()), p, at), 0x004u);
}

TEST(nvme_controller, command_ids_must_differ) {
  ready_hand h;
  auto& q = h.io_queue();
  h.device().inject({.what = model::nvme::fault::kind::hold});
  put_reads(h, 1, 7);
  put_reads(h, 1, 7);
  EXPECT_EQ(h.status(h.next(q)), 0x003u);
  h.device().release();
  EXPECT_EQ(h.status(h.next(q)), 0u);
  h.consume(q);
  put_reads(h, 1, 7);
  EXPECT_EQ(h.status(h.next(q)), 0u);
}

// Seven commands whose completions are not taken fill the queue; for the eighth the drive waits, and loses nothing.
TEST(nvme_controller, a_full_completion_queue) {
  ready_hand h;
  auto& q = h.io_queue();
  put_reads(h, 7);
  for (std::uint32_t i = 0; i < 7; ++i) EXPECT_NE(h.next(q).dw[0], ~0u);
  put_reads(h, 1, 9);
  h.turn(500);
  EXPECT_FALSE(h.ready(q));
  h.consume(q);
  EXPECT_EQ(w::cqe_cid(h.next(q).dw[3]), 9);
}

// More new entries than are free: three are in flight of which no completion has told that they were fetched.
TEST(nvme_controller, a_tail_must_not_overrun) {
  ready_hand h;
  const std::uint64_t before = h.device().commands();
  h.device().inject({.what = model::nvme::fault::kind::hold, .times = 3});
  put_reads(h, 3);
  ASSERT_TRUE(h.until([&] { return h.device().commands() == before + 3; }));
  *h.tail_doorbell(h.io_queue()) = 0;  // five more than the three: one too many
  EXPECT_TRUE(h.until([&] { return h.device().invalid_doorbells() == 1; }));
  h.device().release();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(h.status(h.next(h.io_queue())), 0u);
}

TEST(nvme_controller, a_deleted_queue_ends_what_it_holds) {
  ready_hand h;
  h.device().inject({.what = model::nvme::fault::kind::hold});
  put_reads(h, 1);
  h.turn(100);
  EXPECT_EQ(h.admin(w::make_delete_queue(w::admin::delete_sq, 1)), 0u);
  EXPECT_EQ(h.admin(w::make_delete_queue(w::admin::delete_cq, 1)), 0u);
  h.device().release();
  h.turn(500);
  EXPECT_FALSE(h.ready(h.io_queue()));
}

// XIO_MODEL_FAULTS reaches the drive of a file, and a mistake in it is found before the file is touched.
TEST(nvme_controller, faults_asked_for_by_text) {
  scratch_file f;
  f.write(stamped_data(65536));
  progress::machine machine(1);
  options o = options::defaults();
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.flags = XIO_STORAGE_TRUNCATE;
  o.model_faults = "nvme_oops@1";
  EXPECT_THROW(nvme::file_controller(*software::built_in(), f.path, attr, o, machine, gpu::payload()), error);
  EXPECT_EQ(f.size(), 65536u);
  attr.flags = 0;
  o.model_faults = "nvme_error@0=0x286/flush";
  nvme::file_controller drive(*software::built_in(), f.path, attr, o, machine, gpu::payload());
  const dev::ring_view q = drive.queue_view(0);
  const w::sqe flush = w::make_command(0x00, 1, 1, 0, 0);
  std::memcpy(q.slots, &flush, sizeof flush);
  __atomic_store_n(q.nvme.sq_doorbell, 1u, __ATOMIC_RELEASE);
  const auto* dw3 = reinterpret_cast<const std::uint32_t*>(q.nvme.completions) + 3;
  for (int i = 0; i < 5000 && w::cqe_phase(__atomic_load_n(dw3, __ATOMIC_ACQUIRE)) == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_EQ(w::status_code(w::cqe_status(__atomic_load_n(dw3, __ATOMIC_ACQUIRE))), 0x286u);
}
