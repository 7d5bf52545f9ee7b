// SPDX-License-Identifier: MIT
// The NIC model against entries laid down byte by byte: what is right is carried out, and every single wrong field ends
// in the error CQE that hardware would write. The test polls the NIC itself.
#include "model/nic/mlx5_queue.hpp"
#include "nic_by_hand.hpp"

namespace {

namespace m = xio::model::rdma;
using m::rule;
using namespace xio::test::high_first;
using xio::test::one_fault;

// Syndromes, mlx5dv.h.
constexpr unsigned k_local_length = 0x01, k_local_qp = 0x02, k_local_protection = 0x04, k_flushed = 0x05,
                   k_remote_invalid = 0x12, k_remote_access = 0x13, k_retry = 0x15;

// One queue of 8 entries on one NIC.
struct nic_strict : testing::Test, protected xio::test::nic_by_hand {
  static constexpr std::uint32_t k_depth = 8;
  static constexpr std::uint64_t k_longest = 4096;

  explicit nic_strict(std::uint64_t start = 0, bool cover = false) : nic_by_hand(k_longest), next_(start) {
    std::memset(cqe_, 0xff, sizeof cqe_);
    connect_queue(maker(cqe_, start, cover));
  }

  std::function<std::unique_ptr<m::mlx5_queue>(std::uint32_t)> maker(unsigned char* cqe, std::uint64_t start,
                                                                     bool cover, bool queue = false) {
    const m::mlx5_memory memory{{reinterpret_cast<std::uint32_t*>(slots_), start},
                                k_depth,
                                &record_[1],
                                &doorbell_,
                                reinterpret_cast<std::uint32_t*>(cqe),
                                cover,
                                queue,
                                queue ? 3u : 0u};
    return [memory](std::uint32_t number) { return std::make_unique<m::mlx5_queue>(memory, number, k_longest); };
  }
  unsigned char* slot(std::uint64_t i) { return slots_ + (i % k_depth) * 64; }

  // ctrl + raddr, as mlx5dv.h lays them out.
  unsigned char* begin(unsigned opcode, unsigned opmod, unsigned ds, std::uint64_t offset, unsigned flags = 0x08) {
    unsigned char* e = slot(next_);
    std::memset(e, 0, 64);
    put32(e, (opmod << 24) | (static_cast<std::uint32_t>(next_ & 0xffff) << 8) | opcode);
    put32(e + 4, (number_ << 8) | ds);
    e[11] = static_cast<unsigned char>(flags);
    put64(e + 16, k_remote_address + offset);
    put32(e + 24, k_remote_key);
    next_ += (ds + 3) / 4;
    return e;
  }
  void data(unsigned char* at, std::uint32_t bytes, std::size_t offset) {
    put32(at, bytes);
    put32(at + 4, key_);
    put64(at + 8, reinterpret_cast<std::uint64_t>(local_ + offset));
  }
  unsigned char* write(std::uint64_t offset, std::uint32_t bytes, unsigned flags = 0x08) {
    unsigned char* e = begin(0x08, 0, 3, offset, flags);
    data(e + 32, bytes, 0);
    return e;
  }
  unsigned char* fetch_add(std::uint64_t offset, std::uint64_t add) {
    unsigned char* e = begin(0x12, 0, 4, offset);
    put64(e + 32, add);
    data(e + 48, 8, 512);
    return e;
  }
  // Carries an atomic of 8 bytes out.
  void change(unsigned opcode, unsigned opmod, std::uint64_t offset, std::uint64_t first, std::uint64_t second) {
    unsigned char* e = begin(opcode, opmod, 4, offset);
    put64(e + 32, first);
    put64(e + 40, second);
    data(e + 48, 8, 512);
    go();
  }

  void ring(std::uint64_t producer) {
    put32(reinterpret_cast<unsigned char*>(&record_[1]), static_cast<std::uint32_t>(producer & 0xffff));
    auto* bell = reinterpret_cast<unsigned char*>(&doorbell_);
    put32(bell, static_cast<std::uint32_t>(producer & 0xffff) << 8);
    put32(bell + 4, number_ << 8);
  }
  void go() {
    ring(next_);
    run();
  }

  unsigned cqe_opcode() const { return cqe_[63] >> 4; }
  unsigned cqe_counter() const { return cqe_[60] * 256u + cqe_[61]; }
  void expect_nothing() { EXPECT_EQ(cqe_opcode(), 15u); }
  void expect_done(std::uint64_t first) {
    EXPECT_PAIRS((cqe_opcode(), 0u), (cqe_counter(), first & 0xffff), (get32(cqe_ + 56) & 0xffffff, number_));
  }
  void expect_error(std::uint64_t first, unsigned syndrome, rule why) {
    EXPECT_PAIRS((cqe_opcode(), 13u), (cqe_[55], syndrome), (cqe_[54], static_cast<unsigned>(why)),
                 (cqe_counter(), first & 0xffff));
  }

  std::uint64_t next_;
  alignas(64) unsigned char slots_[k_depth * 64] = {};
  alignas(64) unsigned char cqe_[64];
  std::uint32_t record_[2] = {};
  std::uint64_t doorbell_ = 0;
};

TEST_F(nic_strict, write_moves_the_bytes_and_no_others) {
  write(100, 333);
  run();
  EXPECT_TRUE(remote_is(0x11)) << "an entry was taken that no doorbell announced";
  go();
  expect_done(0);
  EXPECT_PAIRS((std::memcmp(remote_ + 100, local_, 333), 0), (remote_[99], 0x11), (remote_[433], 0x11),
               (cqe_[56], 0x08));
}

TEST_F(nic_strict, only_asked_for_completions_are_written) {
  write(0, 8, 0x00);
  go();
  EXPECT_EQ(std::memcmp(remote_, local_, 8), 0);
  expect_nothing();
  write(8, 8);
  go();
  expect_done(1);
}

TEST_F(nic_strict, inline_bytes_of_all_sizes) {
  for (unsigned n = 0; n <= 28; ++n) {
    std::memset(remote_, 0x11, sizeof remote_);
    const std::uint64_t first = next_;
    unsigned char* e = begin(0x08, 0, 2 + (4 + n + 15) / 16, 64 + n);
    put32(e + 32, 0x80000000u | n);
    for (unsigned i = 0; i < n; ++i) e[36 + i] = static_cast<unsigned char>(0xc0 + i);
    go();
    expect_done(first);
    for (unsigned i = 0; i < n; ++i) EXPECT_EQ(remote_[64 + n + i], 0xc0 + i);
    EXPECT_PAIRS((remote_[63 + n], 0x11), (remote_[64 + n + n], 0x11));
  }
}

TEST_F(nic_strict, inline_bytes_over_several_blocks_and_the_rings_end) {
  for (int lap = 0; lap < 9; ++lap) {
    const std::uint64_t first = next_;
    unsigned char* e = begin(0x08, 0, 2 + (4 + 100 + 15) / 16, 16);
    put32(e + 32, 0x80000000u | 100);
    for (unsigned i = 0; i < 100; ++i) {
      const std::uint64_t at = first * 64 + 36 + i;
      slots_[at % sizeof slots_] = static_cast<unsigned char>(lap + i);
    }
    go();
    expect_done(first);
    for (unsigned i = 0; i < 100; ++i) ASSERT_EQ(remote_[16 + i], static_cast<unsigned char>(lap + i));
  }
}

TEST_F(nic_strict, read_gathers_into_several_spans) {
  for (std::size_t i = 0; i < sizeof remote_; ++i) remote_[i] = static_cast<unsigned char>(i ^ 0x5a);
  unsigned char* e = begin(0x10, 0, 4, 10);
  data(e + 32, 3, 0);
  data(e + 48, 50, 200);
  go();
  expect_done(0);
  EXPECT_PAIRS((std::memcmp(local_, remote_ + 10, 3), 0), (std::memcmp(local_ + 200, remote_ + 13, 50), 0),
               (local_[3], 3 * 7 + 1), (get32(cqe_ + 44), 53u));
}

TEST_F(nic_strict, atomics) {
  set_remote_word(0, 100);
  fetch_add(0, 23);
  go();
  EXPECT_EQ(remote_word(0), 123u);
  EXPECT_EQ(local_word(512), 100u);

  change(0x11, 0, 0, 7, 123);  // compare-swap that matches, then one that does not
  EXPECT_PAIRS((remote_word(0), 7u), (local_word(512), 123u));
  change(0x11, 0, 0, 9, 123);
  EXPECT_PAIRS((remote_word(0), 7u), (local_word(512), 7u));
}

// NVSHMEM's ibgda_device.cuh: 4-byte results are big endian, 8-byte ones are not.
TEST_F(nic_strict, masked_atomics) {
  set_remote_word(8, 0x1122334455667788);
  unsigned char* e = begin(0x15, 0x08, 4, 12);  // 4-byte add on the upper half: no carry into the neighbour
  put32(e + 32, 0xf0000000);
  data(e + 48, 4, 512);
  go();
  EXPECT_EQ(remote_word(8), 0x0122334455667788u);
  EXPECT_EQ(get32(local_ + 512), 0x11223344u);

  change(0x15, 0x09, 8, 0xff00ff00ff00ff00, ~0ull);  // every bit a field: exclusive or
  EXPECT_EQ(remote_word(8), 0x0122334455667788u ^ 0xff00ff00ff00ff00u);
  EXPECT_EQ(local_word(512), 0x0122334455667788u);

  set_remote_word(8, 0x00ff00ff00ff00ff);
  change(0x15, 0x09, 8, 0x0001000100010001, 0x8000800080008000);  // 16-bit fields
  EXPECT_EQ(remote_word(8), 0x0100010001000100u);

  e = begin(0x14, 0x08, 4, 8);  // swap the low byte if the second byte is 0x01
  put32(e + 32, 0x000000aa);
  put32(e + 36, 0x00000100);
  put32(e + 40, 0x000000ff);
  put32(e + 44, 0x0000ff00);
  data(e + 48, 4, 512);
  go();
  EXPECT_EQ(remote_word(8), 0x01000100010001aau);

  const std::uint64_t first = next_;
  e = begin(0x14, 0x09, 5, 8);  // two blocks; compares nothing, swaps the upper half
  put64(e + 32, 0x5555555555555555);
  put64(e + 48, 0xffffffff00000000);
  std::memset(slot(first + 1), 0, 64);
  data(slot(first + 1), 8, 512);
  go();
  expect_done(first);
  EXPECT_EQ(remote_word(8), 0x55555555010001aau);
  EXPECT_EQ(local_word(512), 0x01000100010001aau);
}

// --- One wrong thing at a time -----------------------------------------------------------------------

struct mistake {
  const char* name;
  unsigned syndrome;
  rule why;
  // Spoils a sound entry; gets the entry of 64 bytes.
  std::function<void(unsigned char*)> spoil;
};

void PrintTo(const mistake& x, std::ostream* out) { *out << x.name; }

class NicMistake : public nic_strict, public testing::WithParamInterface<mistake> {};

class nic_write_mistake : public NicMistake {};
TEST_P(nic_write_mistake, ends_in_its_error_and_moves_nothing) {
  write(0, 8);
  go();
  expect_done(0);
  std::memset(remote_, 0x11, sizeof remote_);
  unsigned char* e = write(128, 64);
  GetParam().spoil(e);
  write(512, 8);  // must be flushed
  go();
  expect_error(1, GetParam().syndrome, GetParam().why);
  EXPECT_TRUE(remote_is(0x11));
  write(512, 8);  // an error is for good
  go();
  expect_error(1, GetParam().syndrome, GetParam().why);
  EXPECT_TRUE(remote_is(0x11));
}

const mistake k_wrong_writes[] = {
    {"opcode", k_local_qp, rule::entry_opcode, [](auto* e) { e[3] = 0x7f; }},
    {"send", k_local_qp, rule::entry_opcode, [](auto* e) { e[3] = 0x0a; }},
    {"opmod", k_local_qp, rule::entry_modifier, [](auto* e) { e[0] = 0x01; }},
    {"index", k_local_qp, rule::entry_index, [](auto* e) { e[2] ^= 0x01; }},
    {"stale_lap", k_local_qp, rule::entry_index, [](auto* e) { e[2] ^= 0x08; }},
    {"qpn", k_local_qp, rule::entry_queue, [](auto* e) { e[6] ^= 0x01; }},
    {"ds_0", k_local_qp, rule::entry_segments, [](auto* e) { e[7] = 0; }},
    {"ds_1", k_local_qp, rule::entry_segments, [](auto* e) { e[7] = 1; }},
    {"ds_4", k_local_length, rule::data_length, [](auto* e) { e[7] = 4; }},
    {"ds_beyond_doorbell", k_local_qp, rule::entry_cut, [](auto* e) { e[7] = 12; }},
    {"ds_reserved", k_local_qp, rule::entry_reserved, [](auto* e) { e[7] |= 0x40; }},
    {"signature", k_local_qp, rule::entry_reserved, [](auto* e) { e[8] = 1; }},
    {"flags", k_local_qp, rule::entry_flags, [](auto* e) { e[11] |= 0x10; }},
    {"immediate", k_local_qp, rule::entry_reserved, [](auto* e) { e[15] = 1; }},
    {"raddr_reserved", k_local_qp, rule::entry_reserved, [](auto* e) { e[31] = 1; }},
    {"rkey", k_remote_access, rule::remote_key, [](auto* e) { e[26] ^= 0x10; }},
    {"rkey_variant", k_remote_access, rule::remote_key, [](auto* e) { e[27] ^= 0x80; }},
    {"rkey_without_write", k_remote_access, rule::remote_rights, [](auto* e) { e[27] += 1; }},
    {"remote_below", k_remote_access, rule::remote_range, [](auto* e) { put64(e + 16, 0x7000'0000'0000 - 1); }},
    {"remote_beyond", k_remote_access, rule::remote_range,
     [](auto* e) { put64(e + 16, 0x7000'0000'0000 + 4096 - 63); }},
    {"remote_wraps", k_remote_access, rule::remote_range, [](auto* e) { put64(e + 16, ~0ull - 10); }},
    {"lkey", k_local_protection, rule::local_key, [](auto* e) { e[38] ^= 0x40; }},
    {"local_range", k_local_protection, rule::local_range, [](auto* e) { e[40] ^= 0x40; }},
    {"no_bytes", k_local_length, rule::data_length, [](auto* e) { put32(e + 32, 0); }},
    {"too_long", k_local_length, rule::data_length, [](auto* e) { put32(e + 32, 4097); }},
    {"inline_ds", k_local_qp, rule::entry_segments, [](auto* e) { put32(e + 32, 0x80000000u | 13); }}};
INSTANTIATE_TEST_SUITE_P(all, nic_write_mistake, testing::ValuesIn(k_wrong_writes),
                         [](const auto& i) { return i.param.name; });

class nic_atomic_mistake : public NicMistake {};
TEST_P(nic_atomic_mistake, ends_in_its_error_and_changes_nothing) {
  unsigned char* e = fetch_add(128, 1);
  GetParam().spoil(e);
  go();
  expect_error(0, GetParam().syndrome, GetParam().why);
  EXPECT_TRUE(remote_is(0x11));
}

const mistake k_wrong_atomics[] = {
    {"alignment", k_remote_invalid, rule::atomic_alignment, [](auto* e) { e[23] ^= 0x04; }},
    {"result_of_4", k_local_length, rule::data_length, [](auto* e) { put32(e + 48, 4); }},
    {"result_key", k_local_protection, rule::local_key, [](auto* e) { e[54] ^= 0x40; }},
    {"opmod_of_masked", k_local_qp, rule::entry_modifier, [](auto* e) { e[0] = 0x09; }},
    {"masked_without_opmod", k_local_qp, rule::entry_modifier, [](auto* e) { e[3] = 0x15; }},
    {"ds_3", k_local_qp, rule::entry_segments, [](auto* e) { e[7] = 3; }},
    {"rkey_without_atomic", k_remote_access, rule::remote_rights, [](auto* e) { e[27] += 1; }}};
INSTANTIATE_TEST_SUITE_P(all, nic_atomic_mistake, testing::ValuesIn(k_wrong_atomics),
                         [](const auto& i) { return i.param.name; });

TEST_F(nic_strict, results_need_the_right_to_write_locally) {
  unsigned char* e = begin(0x10, 0, 3, 0);
  data(e + 32, 8, 0);
  put32(e + 36, read_only_key_);
  go();
  expect_error(0, k_local_protection, rule::local_rights);
}

TEST_F(nic_strict, an_old_key_opens_nothing) {
  nic_.unregister_memory({key_, key_});
  nic_.unregister_memory({key_, key_});
  const std::uint32_t old = key_;
  key_ = nic_.register_memory(local_, sizeof local_, m::local_read).lkey;
  EXPECT_NE(key_, old);
  put32(write(0, 8) + 36, old);
  go();
  expect_error(0, k_local_protection, rule::local_key);
}

// --- Doorbells ---------------------------------------------------------------------------------------

TEST_F(nic_strict, doorbell_of_another_queue) {
  write(0, 8);
  ring(1);
  reinterpret_cast<unsigned char*>(&doorbell_)[6] ^= 1;
  run();
  EXPECT_EQ(cqe_[54], static_cast<unsigned>(rule::doorbell_queue));
  EXPECT_TRUE(remote_is(0x11));
}

TEST_F(nic_strict, doorbell_beyond_the_ring) {
  ring(k_depth + 1);
  run();
  EXPECT_EQ(cqe_[54], static_cast<unsigned>(rule::doorbell_range));
}

TEST_F(nic_strict, doorbell_goes_back) {
  write(0, 8);
  write(8, 8);
  go();
  ring(1);
  run();
  EXPECT_EQ(cqe_[54], static_cast<unsigned>(rule::doorbell_range));
}

TEST_F(nic_strict, record_behind_the_doorbell) {
  write(0, 8);
  ring(1);
  record_[1] = 0;
  run();
  EXPECT_EQ(cqe_[54], static_cast<unsigned>(rule::doorbell_record));
  EXPECT_TRUE(remote_is(0x11));
}

TEST_F(nic_strict, ringing_before_the_connection) {
  unsigned char other[64];
  std::memset(other, 0xff, sizeof other);
  const std::uint32_t number = nic_.create_queue(maker(other, 0, false));
  nic_.destroy_queue(number_);
  number_ = number;
  write(0, 8);
  go();
  EXPECT_PAIRS((other[63] >> 4, 13), (other[54], static_cast<unsigned>(rule::not_connected)));
}

// --- Order, flushing, wraps, faults ------------------------------------------------------------------

class nic_covered : public nic_strict {
 protected:
  nic_covered() : nic_strict(0, true) {}
};
TEST_F(nic_covered, flushed_entries_cover_the_error) {
  write(0, 8)[3] = 0x7f;
  write(8, 8);
  write(16, 8);
  go();
  expect_error(2, k_flushed, rule::none);
  EXPECT_TRUE(remote_is(0x11));
}

// An ordinary completion queue: entry by entry, and the owner bit turns with every lap (cq.c, get_sw_cqe).
TEST_F(nic_strict, an_ordinary_completion_queue_goes_round) {
  constexpr unsigned k_entries = 8;
  alignas(64) static unsigned char cq[k_entries][64];
  std::memset(cq, 0xff, sizeof cq);
  nic_.destroy_queue(number_);
  connect_queue(maker(cq[0], 0, false, true));
  for (unsigned i = 0; i < 3 * k_entries; ++i) {
    write(0, 8);
    go();
    const unsigned char* cqe = cq[i % k_entries];
    ASSERT_EQ(cqe[63], (i / k_entries) & 1) << i;  // opcode 0, owner
    ASSERT_EQ(cqe[60] << 8 | cqe[61], static_cast<int>(i));
  }
  write(0, 8)[3] = 0x7f;
  write(8, 8);
  go();
  EXPECT_EQ(cq[0][63] >> 4, 13);
  EXPECT_EQ(cq[0][55], 0x02);  // local QP operation
  EXPECT_EQ(cq[1][63] >> 4, 13);
  EXPECT_EQ(cq[1][55], 0x05);  // flushed
}

class nic_wrap : public nic_strict {
 protected:
  nic_wrap() : nic_strict((std::uint64_t{1} << 32) - 16) {}
};
TEST_F(nic_wrap, indices_of16_and32_bits_wrap) {
  for (int i = 0; i < 70000; ++i) {
    const std::uint64_t first = next_;
    write(0, 8);
    go();
    ASSERT_EQ(cqe_opcode(), 0u) << "entry " << first << ", rule " << int{cqe_[54]};
    ASSERT_EQ(cqe_counter(), first & 0xffff);
  }
}

TEST_F(nic_strict, faults_on_purpose) {
  one_fault plan(one_fault::kind::fail, 1);
  nic_.set_faults(&plan);
  write(0, 8);
  go();
  expect_done(0);
  write(64, 8);
  go();
  expect_error(1, k_retry, rule::injected);
  EXPECT_EQ(remote_[64], 0x11);
  nic_.set_faults(nullptr);
}

TEST_F(nic_strict, a_lost_op_holds_up_what_follows) {
  one_fault plan(one_fault::kind::lose, 0);
  nic_.set_faults(&plan);
  write(0, 8);
  write(64, 8);
  go();
  expect_nothing();
  EXPECT_TRUE(remote_is(0x11));
}

}  // namespace
