// SPDX-License-Identifier: MIT
// The decoder of the emulated NIC's legacy format against entries laid down byte by byte
// (linux/include/uapi/rdma/vmw_pvrdma-abi.h): what is right is carried out, and every single wrong field ends in the
// CQE that it must. The test polls the NIC itself.
#include "model/nic/ernic_queue.hpp"
#include "nic_by_hand.hpp"

namespace {

namespace m = xio::model::rdma;
using m::rule;
using namespace xio::test::low_first;
using xio::test::one_fault;

// enum pvrdma_wc_status
constexpr unsigned k_ok = 0, k_local_length = 1, k_local_qp = 2, k_local_protection = 4, k_flushed = 5,
                   k_remote_invalid = 9, k_remote_access = 10, k_retry = 12, k_fatal = 19;

// One queue of 8 entries and 16 CQEs on one NIC.
struct nic_ernic : testing::Test, protected xio::test::nic_by_hand {
  static constexpr std::uint32_t k_depth = 8, k_cq_depth = 16, k_max_message = 2048;
  static constexpr std::uint64_t k_request = 0xabcd'0000'0000'0000;

  explicit nic_ernic(std::uint64_t start = 0) : nic_by_hand(k_max_message), next_(start) {
    std::memset(slots_, 0x99, sizeof slots_);
    indices_[0] = indices_[1] = start % (2 * k_depth);
    connect_queue([&](std::uint32_t number) {
      m::ernic_memory memory{};
      memory.slots = reinterpret_cast<const std::uint32_t*>(slots_);
      memory.indices = indices_;
      memory.depth_log2 = 3;
      memory.doorbell = &bell_;
      memory.cq = reinterpret_cast<std::uint32_t*>(cq_);
      memory.cq_depth_log2 = 4;
      memory.start = start;
      return std::make_unique<m::ernic_queue>(memory, number, k_max_message);
    });
  }

  // Bytes that an earlier lap left behind stay where the structure has no field.
  unsigned char* begin(unsigned opcode, unsigned sges, std::uint32_t bytes, unsigned flags) {
    unsigned char* e = slots_ + next_ % k_depth * 128;
    put64(e, k_request + next_);
    put32(e + 8, sges);
    put32(e + 12, bytes);
    put32(e + 16, opcode);
    put32(e + 20, flags);
    put64(e + 24, 0);
    ++next_;
    return e;
  }
  void sge(unsigned char* e, int i, std::size_t offset, std::uint32_t bytes) {
    put64(e + 80 + 16 * i, reinterpret_cast<std::uint64_t>(local_ + offset));
    put32(e + 88 + 16 * i, bytes);
    put32(e + 92 + 16 * i, key_);
  }
  unsigned char* copy(unsigned opcode, std::uint64_t offset, std::uint32_t bytes, unsigned flags = 2) {
    unsigned char* e = begin(opcode, 1, bytes, flags);
    put64(e + 32, k_remote_address + offset);
    put32(e + 40, k_remote_key);
    put32(e + 44, 0);
    sge(e, 0, 0, bytes);
    return e;
  }
  unsigned char* atomic(unsigned opcode, std::uint64_t offset, std::uint64_t compare_or_add, std::uint64_t swap) {
    unsigned char* e = begin(opcode, 1, 8, 2);
    put64(e + 32, k_remote_address + offset);
    put64(e + 40, compare_or_add);
    put64(e + 48, swap);
    put32(e + 56, k_remote_key);
    put32(e + 60, 0);
    sge(e, 0, 512, 8);
    return e;
  }
  void ring(std::uint64_t tail) {
    indices_[0] = static_cast<std::uint32_t>(tail % (2 * k_depth));
    bell_ = 0x40000000 | number_;
    run();
  }
  void go() { ring(next_); }

  bool has_cqe() const { return get(cq_ + 8, 4) != cq_next_ % (2 * k_cq_depth); }
  void expect_cqe(unsigned status, rule why, std::uint64_t wr_id, unsigned opcode, unsigned bytes) {
    ASSERT_TRUE(has_cqe()) << "CQE " << cq_next_;
    const unsigned char* c = cq_ + 4096 + cq_next_++ % k_cq_depth * 64;
    EXPECT_PAIRS((get(c, 8), wr_id), (get(c + 8, 8), number_), (get(c + 16, 4), opcode), (get(c + 20, 4), status),
                 (get(c + 24, 4), bytes), (get(c + 40, 4), static_cast<unsigned>(why)));
    for (const int at : {28, 32, 36, 44, 48, 52, 56, 60}) EXPECT_EQ(get(c + at, 4), 0u) << "offset " << at;
  }
  void give_back() {
    put32(cq_ + 12, cq_next_ % (2 * k_cq_depth));
    run();
  }
  void expect_done(unsigned opcode, unsigned bytes) {
    expect_cqe(k_ok, rule::none, k_request + next_ - 1, opcode, bytes);
    EXPECT_FALSE(has_cqe());
    EXPECT_EQ(indices_[1], next_ % (2 * k_depth));
    give_back();
  }
  void expect_error(unsigned status, rule why) {
    ASSERT_TRUE(has_cqe());
    const unsigned char* c = cq_ + 4096 + cq_next_++ % k_cq_depth * 64;
    EXPECT_PAIRS((get(c, 8), status == k_fatal ? 0 : k_request + next_ - 1), (get(c + 20, 4), status),
                 (get(c + 40, 4), static_cast<unsigned>(why)));
    EXPECT_FALSE(has_cqe());
    EXPECT_TRUE(remote_is(0x11));
  }

  alignas(64) unsigned char slots_[k_depth * 128];
  alignas(64) unsigned char cq_[4096 + k_cq_depth * 64] = {};
  alignas(16) std::uint32_t indices_[4] = {};
  std::uint32_t bell_ = 0;
  std::uint64_t cq_next_ = 0, next_;
};

// --- What is right -----------------------------------------------------------------------------------

TEST_F(nic_ernic, write_moves_the_bytes_and_no_others) {
  copy(0, 100, 333);
  indices_[0] = 1;
  run();
  EXPECT_EQ(remote_[100], 0x11) << "an entry was taken that no doorbell announced";
  go();
  expect_done(1, 333);
  EXPECT_PAIRS((std::memcmp(remote_ + 100, local_, 333), 0), (remote_[99], 0x11), (remote_[433], 0x11), (bell_, 0u));
}

TEST_F(nic_ernic, reads_gathers_and_nothing) {
  std::memset(remote_ + 512, 0x77, 64);
  copy(4, 512, 64);
  go();
  expect_done(2, 64);
  EXPECT_PAIRS((local_[63], 0x77), (local_[64], static_cast<unsigned char>(64 * 7 + 1)));
  unsigned char* e = copy(0, 8, 60);
  put32(e + 8, 3);
  sge(e, 0, 1000, 10);
  sge(e, 1, 0, 0);
  sge(e, 2, 2000, 50);
  go();
  expect_done(1, 60);
  EXPECT_PAIRS((std::memcmp(remote_ + 8, local_ + 1000, 10), 0), (std::memcmp(remote_ + 18, local_ + 2000, 50), 0));
  put32(copy(0, 8, 0) + 8, 0);
  go();
  expect_done(1, 0);
}

TEST_F(nic_ernic, atomics) {
  put64(remote_ + 64, 100);
  constexpr std::uint64_t large = 0x1122334455667788;
  const struct {
    unsigned opcode, completion;
    std::uint64_t compare_or_add, swap, remote, fetched;
  } rows[] = {{6, 4, 11, 0, 111, 100}, {5, 3, 111, large, large, 111}, {5, 3, 111, 5, large, large}};
  for (const auto& r : rows) {
    atomic(r.opcode, 64, r.compare_or_add, r.swap);
    go();
    expect_done(r.completion, 8);
    EXPECT_PAIRS((remote_word(64), r.remote), (local_word(512), r.fetched));
  }
}

TEST_F(nic_ernic, only_asked_for_completions_are_written) {
  for (unsigned i = 0; i < 3; ++i) copy(0, 8 * i, 8, 0);
  go();
  EXPECT_EQ(std::memcmp(remote_ + 16, local_, 8), 0);
  EXPECT_FALSE(has_cqe());
  copy(0, 24, 8);
  go();
  expect_done(1, 8);
}

TEST_F(nic_ernic, a_full_ring_and_many_laps) {
  for (int lap = 0; lap < 20; ++lap) {
    for (unsigned i = 0; i < k_depth; ++i) copy(0, 8 * i, 8, i + 1 == k_depth ? 2 : 0);
    go();
    expect_done(1, 8);
  }
}

class nic_ernic_late : public nic_ernic {
 protected:
  nic_ernic_late() : nic_ernic((std::uint64_t{1} << 32) - 8) {}
};
TEST_F(nic_ernic_late, counts_across32_bits) {
  for (int i = 0; i < 50; ++i) {
    copy(0, 8, 8);
    go();
    expect_done(1, 8);
  }
}

// --- What is not -------------------------------------------------------------------------------------

struct wrong {
  const char* name;
  unsigned opcode;  // of the entry that is spoilt
  std::function<void(unsigned char*)> spoil;
  unsigned status;
  rule why;
};
void PrintTo(const wrong& w, std::ostream* out) { *out << w.name; }

class nic_ernic_wrong : public nic_ernic, public testing::WithParamInterface<wrong> {};

TEST_P(nic_ernic_wrong, is_found) {
  const wrong& row = GetParam();
  unsigned char* e = row.opcode < 5 ? copy(row.opcode, 64, 100) : atomic(row.opcode, 64, 1, 0);
  row.spoil(e);
  go();
  expect_error(row.status, row.why);
  // The queue pair is in error from now on.
  copy(0, 0, 8);
  go();
  expect_cqe(k_flushed, rule::none, k_request + next_ - 1, 1, 0);
  EXPECT_EQ(remote_[0], 0x11);
}

const wrong k_wrong[] = {
    {"Send", 0, [](auto* e) { e[16] = 2; }, k_local_qp, rule::entry_opcode},
    {"MaskedSwap", 5, [](auto* e) { e[16] = 12; }, k_local_qp, rule::entry_opcode},
    {"OpcodeHighByte", 0, [](auto* e) { e[19] = 1; }, k_local_qp, rule::entry_opcode},
    {"Inline", 0, [](auto* e) { e[20] |= 8; }, k_local_qp, rule::entry_flags},
    {"StrangeFlag", 0, [](auto* e) { e[22] = 1; }, k_local_qp, rule::entry_flags},
    {"Reserved", 0, [](auto* e) { e[28] = 1; }, k_local_qp, rule::entry_reserved},
    {"ImmediateOfAWrite", 0, [](auto* e) { e[24] = 1; }, k_local_qp, rule::entry_reserved},
    {"BehindTheKey", 4, [](auto* e) { e[47] = 1; }, k_local_qp, rule::entry_reserved},
    {"BehindTheAtomicsKey", 6, [](auto* e) { e[60] = 1; }, k_local_qp, rule::entry_reserved},
    {"SwapOfAnAdd", 6, [](auto* e) { e[48] = 1; }, k_local_qp, rule::entry_reserved},
    {"FourSges", 0, [](auto* e) { e[8] = 4; }, k_local_qp, rule::entry_segments},
    {"NoSgeOfAnAtomic", 6, [](auto* e) { e[8] = 0; }, k_local_qp, rule::entry_segments},
    {"TotalTooLong", 0, [](auto* e) { ++e[12]; }, k_local_length, rule::data_length},
    {"AtomicOf4", 5, [](auto* e) { e[12] = e[88] = 4; }, k_local_length, rule::data_length},
    {"AtomicResultOf16", 5, [](auto* e) { e[88] = 16; }, k_local_length, rule::data_length},
    {"MessageLimit", 0, [](auto* e) { put32(e + 12, 2049), put32(e + 88, 2049); }, k_local_length, rule::data_length},
    {"LocalKey", 0, [](auto* e) { e[93] ^= 0x40; }, k_local_protection, rule::local_key},
    {"LocalRange", 0, [](auto* e) { put64(e + 80, get(e + 80, 8) + 4000); }, k_local_protection, rule::local_range},
    {"RemoteKey", 0, [](auto* e) { e[42] ^= 0x40; }, k_remote_access, rule::remote_key},
    {"RemoteRange", 0, [](auto* e) { e[33] = 0x10; }, k_remote_access, rule::remote_range},
    {"RemoteRights", 0, [](auto* e) { ++e[40]; }, k_remote_access, rule::remote_rights},
    {"AtomicAlignment", 6, [](auto* e) { e[32] += 4; }, k_remote_invalid, rule::atomic_alignment},
};
INSTANTIATE_TEST_SUITE_P(fields, nic_ernic_wrong, testing::ValuesIn(k_wrong),
                         [](const auto& info) { return std::string(info.param.name); });

TEST_F(nic_ernic, a_read_only_buffer_takes_no_read) {
  put32(copy(4, 0, 8) + 92, read_only_key_);
  go();
  expect_error(k_local_protection, rule::local_rights);
}

struct strange_bell {
  const char* name;
  std::uint32_t tail, word, flips;  // in the place of an entry announced by 0x40000000 and the queue's number
  rule why;
};
class nic_ernic_bell : public nic_ernic, public testing::WithParamInterface<strange_bell> {};

TEST_P(nic_ernic_bell, is_fatal) {
  copy(0, 0, 8);
  indices_[0] = GetParam().tail;
  bell_ = GetParam().word | (number_ ^ GetParam().flips);
  run();
  expect_error(k_fatal, GetParam().why);
}
const strange_bell k_bells[] = {
    {"AnotherQueues", 1, 0x40000000, 1, rule::doorbell_queue},
    {"OfReceives", 1, 0x80000000, 0, rule::doorbell_reserved},
    {"WithAStrangeBit", 1, 0x41000000, 0, rule::doorbell_reserved},
    {"TailThatCannotBe", 16, 0x40000000, 0, rule::doorbell_range},
};
INSTANTIATE_TEST_SUITE_P(of, nic_ernic_bell, testing::ValuesIn(k_bells), [](const auto& i) { return i.param.name; });

TEST_F(nic_ernic, a_tail_that_goes_back) {
  ring(2 * k_depth - 1);
  expect_error(k_fatal, rule::doorbell_phase);
}

TEST_F(nic_ernic, more_than_a_ring_full_of_unfinished) {
  one_fault plan(one_fault::kind::lose);
  nic_.set_faults(&plan);
  for (unsigned i = 0; i < k_depth; ++i) copy(0, 8 * i, 8);
  go();
  EXPECT_FALSE(has_cqe());
  copy(0, 0, 8);
  go();
  ASSERT_TRUE(has_cqe());
  EXPECT_EQ(get(cq_ + 4096 + 20, 4), k_local_qp);
  EXPECT_EQ(get(cq_ + 4096 + 40, 4), static_cast<unsigned>(rule::doorbell_range));
  nic_.set_faults(nullptr);
}

TEST_F(nic_ernic, completions_that_were_not_written_cannot_be_given_back) {
  cq_next_ = 1;
  give_back();
  cq_next_ = 0;
  expect_error(k_fatal, rule::doorbell_range);
}

TEST_F(nic_ernic, a_full_completion_queue_loses_what_comes) {
  for (unsigned i = 0; i < k_cq_depth + 3; ++i) {
    copy(0, 0, 8);
    go();
  }
  for (unsigned i = 0; i < k_cq_depth; ++i) expect_cqe(k_ok, rule::none, k_request + i, 1, 8);
  EXPECT_FALSE(has_cqe());
}

TEST_F(nic_ernic, what_comes_after_a_failure_is_flushed) {
  one_fault plan(one_fault::kind::fail);
  nic_.set_faults(&plan);
  for (unsigned i = 0; i < 4; ++i) copy(0, 8 * i, 8, 0);
  go();
  expect_cqe(k_retry, rule::injected, k_request, 1, 8);
  for (unsigned i = 1; i < 4; ++i) expect_cqe(k_flushed, rule::none, k_request + i, 1, 0);
  EXPECT_FALSE(has_cqe());
  nic_.set_faults(nullptr);
}

}  // namespace
