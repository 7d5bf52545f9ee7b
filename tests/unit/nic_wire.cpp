// SPDX-License-Identifier: MIT
// The bytes of work requests and completions of NICs, family by family.
#include "../gtest.hpp"
#include "xio/wire/bnxt.hpp"
#include "xio/wire/ernic.hpp"
#include "xio/wire/mlx5.hpp"

namespace {

// --- bnxt -------------------------------------------------------------------------------------------
// The bytes of bnxt_re entries, doorbells and completions, against values written by hand from the structs and masks in
// rdma-core's providers/bnxt_re/bnxt_re-abi.h (all little endian) and from what verbs.c, db.c and memory.h do with
// them.

using bytes = std::vector<unsigned>;

bytes bytes_of(const void* p, std::size_t n) {
  const auto* b = static_cast<const unsigned char*>(p);
  return bytes(b, b + n);
}

namespace of_bnxt {

namespace w = xio::wire::bnxt;

// struct bnxt_re_bsqe: rsv_ws_fl_wt {type 7:0, flags 15:8, size 23:16}, key_immd, lhdr.
TEST(bnxt_wire, header) {
  std::uint32_t dw[4];
  w::put_header(dw, 0x0b, 0x01, 3, 0xa1b2c3d4, 0x1122334455667788);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{0x0b, 0x01, 0x03, 0x00,  //
                                     0xd4, 0xc3, 0xb2, 0xa1,  //
                                     0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11}));
  const w::header h = w::get_header(dw);
  EXPECT_PAIRS((h.op, 0x0bu), (h.flags, 1u), (h.slots, 3u), (h.key_or_immediate, 0xa1b2c3d4u),
               (h.lower, 0x1122334455667788u), (h.reserved, 0u));
  dw[0] |= 0x01000000;
  EXPECT_NE(w::get_header(dw).reserved, 0u);
}

// struct bnxt_re_rdma {rva, rkey, rsvd}, bnxt_re_atomic {swp_dt, cmp_dt}, bnxt_re_sge {pa, lkey, length}.
TEST(bnxt_wire, second_headers_and_sges) {
  std::uint32_t dw[4];
  w::put_remote(dw, 0x0102030405060708, 0x11121314);
  EXPECT_PAIRS((bytes_of(dw, 16), (bytes{8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0, 0, 0, 0})),
               (w::get_remote(dw).address, 0x0102030405060708u), (w::get_remote(dw).rkey, 0x11121314u));
  dw[3] = 1;
  EXPECT_NE(w::get_remote(dw).reserved, 0u);
  w::put_atomic(dw, 0x0102030405060708, 0x1112131415161718);
  EXPECT_PAIRS((bytes_of(dw, 16), (bytes{8, 7, 6, 5, 4, 3, 2, 1, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11})),
               (w::get_atomic(dw).swap_or_add, 0x0102030405060708u), (w::get_atomic(dw).compare, 0x1112131415161718u));
  w::put_sge(dw, 0x0102030405060708, 0x11121314, 0x21222324);
  EXPECT_PAIRS((bytes_of(dw, 16), (bytes{8, 7, 6, 5, 4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21})),
               (w::get_sge(dw).address, 0x0102030405060708u), (w::get_sge(dw).lkey, 0x11121314u),
               (w::get_sge(dw).bytes, 0x21222324u));
}

// enum bnxt_re_wr_opcode, enum bnxt_re_wr_flags; main.h and bnxt_re-abi.h for the sizes.
TEST(bnxt_wire, numbers) {
  EXPECT_PAIRS((w::op_send, 0x00u), (w::op_send_imm, 0x01u), (w::op_send_invalidate, 0x02u), (w::op_rdma_write, 0x04u),
               (w::op_rdma_write_imm, 0x05u), (w::op_rdma_read, 0x06u), (w::op_atomic_cs, 0x08u),
               (w::op_atomic_fa, 0x0bu), (w::op_local_invalidate, 0x0cu), (w::op_bind, 0x0eu), (w::op_receive, 0x80u),
               (w::k_signaled, 0x01u), (w::k_read_fence, 0x02u), (w::k_fence, 0x04u), (w::k_solicited, 0x08u),
               (w::k_inline, 0x10u), (w::k_wqe_bytes, 128u), (w::k_inline_bytes, 0x60u),
               (w::k_header_slots + w::k_max_sges, w::k_wqe_slots),
               (w::k_inline_at + w::k_inline_bytes, w::k_wqe_bytes));
}

// verbs.c, bnxt_re_required_slots: two header slots and the payload rounded up to 16 bytes.
TEST(bnxt_wire, inline_slots) {
  EXPECT_PAIRS((w::inline_slots(0), 2u), (w::inline_slots(1), 3u), (w::inline_slots(16), 3u), (w::inline_slots(17), 4u),
               (w::inline_slots(96), 8u));
}

// enum bnxt_re_msns_mask: start PSN 23:0, next PSN 47:24, start index 63:48. verbs.h, bnxt_re_update_msn_tbl masks.
TEST(bnxt_wire, msn_entry) {
  const std::uint64_t e = w::msn_entry(0x010203, 0x111213, 0x2122);
  EXPECT_PAIRS((bytes_of(&e, 8), (bytes{3, 2, 1, 0x13, 0x12, 0x11, 0x22, 0x21})), (w::get_msn(e).start_psn, 0x010203u),
               (w::get_msn(e).next_psn, 0x111213u), (w::get_msn(e).start_index, 0x2122u));
  const std::uint64_t wraps = w::msn_entry(0xffffff, 0x1000001, 0x10003);
  EXPECT_EQ(bytes_of(&wraps, 8), (bytes{0xff, 0xff, 0xff, 1, 0, 0, 3, 0}));
}

// struct bnxt_re_psns and bnxt_re_psns_ext; enum bnxt_re_psns_mask.
TEST(bnxt_wire, psn_search_entry) {
  std::uint32_t dw[4] = {~0u, ~0u, ~0u, ~0u};
  w::put_psn_search(dw, 0x04, 0xff010203, 0x111213);
  EXPECT_EQ(bytes_of(dw, 8), (bytes{3, 2, 1, 0x04, 0x13, 0x12, 0x11, 0}));
  EXPECT_EQ(dw[2], ~0u);
  w::put_psn_search_ext(dw, 0x0b, 1, 2, 0x2122);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{1, 0, 0, 0x0b, 2, 0, 0, 0, 0x22, 0x21, 0, 0, 0, 0, 0, 0}));
}

// verbs.c, bnxt_re_fill_psns_for_msntbl.
TEST(bnxt_wire, packets) {
  EXPECT_PAIRS((w::packets_of(0, 1024), 1u), (w::packets_of(1, 1024), 1u), (w::packets_of(1024, 1024), 1u),
               (w::packets_of(1025, 1024), 2u), (w::packets_of(std::uint64_t{1} << 31, 256), 1u << 23));
}

// struct bnxt_re_db_hdr {indx, typ_qid}; enum bnxt_re_db_mask: index 23:0, epoch 24, toggle 25, queue 19:0, valid 26,
// type 31:28.
TEST(bnxt_wire, doorbell) {
  const std::uint64_t cq = w::doorbell_value(w::bell_cq, 0xabcde, 0x010203, 1);
  EXPECT_EQ(bytes_of(&cq, 8), (bytes{0x03, 0x02, 0x01, 0x01, 0xde, 0xbc, 0x0a, 0x44}));
  const std::uint64_t sq = w::doorbell_value(w::bell_sq, 0x40, 5, 0);
  EXPECT_EQ(bytes_of(&sq, 8), (bytes{5, 0, 0, 0, 0x40, 0, 0, 0x04}));
  const std::uint64_t arm = w::doorbell_value(w::bell_cq_arm, 0x40, 5, 0, 1);
  EXPECT_EQ(bytes_of(&arm, 8), (bytes{5, 0, 0, 0x02, 0x40, 0, 0, 0x64}));
  const w::doorbell d = w::get_doorbell(cq);
  EXPECT_PAIRS((d.type, 4u), (d.queue, 0xabcdeu), (d.index, 0x010203u), (d.epoch, 1u), (d.toggle, 0u), (d.valid, 1u),
               (d.reserved, 0u), (w::get_doorbell(arm).toggle, 1u));
  // Every bit belongs to one field.
  for (int bit = 0; bit < 64; ++bit) {
    const w::doorbell one = w::get_doorbell(std::uint64_t{1} << bit);
    const int fields = (one.type != 0) + (one.queue != 0) + (one.index != 0) + one.epoch + one.toggle + one.valid;
    EXPECT_EQ(fields + (one.reserved != 0), 1) << bit;
  }
}

// memory.h, bnxt_re_incr_tail: the epoch begins with 0 and flips when the index wraps.
TEST(bnxt_wire, epoch_is_the_laps_parity) {
  const auto at = [](std::uint64_t count) { return w::get_doorbell(w::doorbell_at(w::bell_sq, 1, count, 3)); };
  EXPECT_PAIRS((at(7).index, 7u), (at(7).epoch, 0u), (at(8).index, 0u), (at(8).epoch, 1u), (at(16).epoch, 0u),
               (at((std::uint64_t{1} << 40) + 9).index, 1u), (at((std::uint64_t{1} << 40) + 9).epoch, 1u));
}

// struct bnxt_re_req_cqe {qp_handle, con_indx, rsvd} and bnxt_re_bcqe {flg_st_typ_ph, qphi_rwrid}, laid down by hand;
// enum bnxt_re_bcqe_mask: phase 0, type 4:1, toggle 6:5, status 15:8, flags 31:16.
TEST(bnxt_wire, completion) {
  unsigned char cqe[32] = {};
  cqe[8] = 0x34, cqe[9] = 0x12, cqe[10] = 0x78;        // con_indx has 16 bits
  cqe[24] = 0x01 | 0xe << 1 | 3 << 5, cqe[25] = 0x0a;  // phase, type, toggle, status
  cqe[26] = 0xff, cqe[27] = 0xff;                      // flags
  std::uint32_t dw[w::k_cqe_dwords];
  static_assert(sizeof dw == sizeof cqe && sizeof dw == w::k_cqe_bytes);
  std::memcpy(dw, cqe, sizeof dw);
  EXPECT_PAIRS((w::cqe_consumer(dw[w::k_cqe_consumer_at]), 0x1234u), (w::cqe_state_phase(dw[w::k_cqe_state_at]), 1u),
               (w::cqe_state_type(dw[w::k_cqe_state_at]), static_cast<unsigned>(w::cqe_terminal)),
               (w::cqe_state_status(dw[w::k_cqe_state_at]), 0x0au));
  const std::uint32_t state = w::cqe_state(1, w::cqe_terminal, 0x0a);
  EXPECT_EQ(bytes_of(&state, 4), (bytes{0x1d, 0x0a, 0, 0}));
}

// enum bnxt_re_wc_type, enum bnxt_re_req_wc_status.
TEST(bnxt_wire, completion_numbers) {
  EXPECT_PAIRS((w::cqe_request, 0x0u), (w::cqe_receive_rc, 0x1u), (w::cqe_terminal, 0xeu), (w::cqe_cut_off, 0xfu),
               (w::bad_response, 0x1u), (w::local_length, 0x2u), (w::local_qp_operation, 0x3u),
               (w::local_protection, 0x4u), (w::memory_management, 0x5u), (w::remote_invalid_request, 0x6u),
               (w::remote_access, 0x7u), (w::remote_operation, 0x8u), (w::rnr_retry_exceeded, 0x9u),
               (w::retry_exceeded, 0xau), (w::flushed, 0xbu));
}

// main.h, bnxt_re_change_cq_phase; the first phase is 1 (BNXT_RE_QUEUE_START_PHASE).
TEST(bnxt_wire, phase_of_a_lap) {
  EXPECT_PAIRS((w::cqe_phase_of(0, 3), 1u), (w::cqe_phase_of(7, 3), 1u), (w::cqe_phase_of(8, 3), 0u),
               (w::cqe_phase_of(16, 3), 1u));
}

}  // namespace of_bnxt

// --- ernic ------------------------------------------------------------------------------------------
// The bytes of the emulated NIC's legacy format, against values written by hand from the structures in
// linux/include/uapi/rdma/vmw_pvrdma-abi.h.

namespace of_ernic {

namespace w = xio::wire::ernic;

TEST(ernic_wire, header) {
  std::uint32_t dw[8];
  w::put_request(dw, 0x0102030405060708, 1, 0x11223344);
  w::put_operation(dw + 4, 1, 2, 0xa1b2c3d4);
  EXPECT_EQ(bytes_of(dw, 32), (bytes{8,    7,    6,    5,    4, 3, 2, 1,  // wr_id
                                     1,    0,    0,    0,                 // num_sge
                                     0x44, 0x33, 0x22, 0x11,              // total_len
                                     1,    0,    0,    0,    2, 0, 0, 0,  // opcode, send_flags
                                     0xa1, 0xb2, 0xc3, 0xd4,              // imm_data
                                     0,    0,    0,    0}));              // reserved
}

TEST(ernic_wire, remote_atomic_and_sge) {
  std::uint32_t dw[8];
  w::put_remote(dw, 0x0102030405060708, 0x11223344);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{8, 7, 6, 5, 4, 3, 2, 1, 0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0}));
  w::put_atomic(dw, 0x0102030405060708, 0x1112131415161718, 0x2122232425262728, 0x31323334);
  EXPECT_EQ(bytes_of(dw, 32), (bytes{8,    7,    6,    5,    4,    3,    2,    1,     // remote_addr
                                     0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11,  // compare_add
                                     0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21,  // swap
                                     0x34, 0x33, 0x32, 0x31, 0,    0,    0,    0}));
  w::put_sge(dw, 0x0102030405060708, 0x11223344, 0x55667788);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{8, 7, 6, 5, 4, 3, 2, 1, 0x44, 0x33, 0x22, 0x11, 0x88, 0x77, 0x66, 0x55}));
}

TEST(ernic_wire, doorbell) {
  const std::uint32_t bell = w::doorbell(0xff123456);
  EXPECT_EQ(bytes_of(&bell, 4), (bytes{0x56, 0x34, 0x12, 0x40}));
}

// A ring of 8 entries: indices 0 to 15.
TEST(ernic_wire, indices_count_two_laps) {
  EXPECT_PAIRS((w::index_of(7, 3), 7u), (w::index_of(15, 3), 15u), (w::index_of(16, 3), 0u),
               (w::index_of((std::uint64_t{1} << 40) + 9, 3), 9u));
  EXPECT_TRUE(w::is_index(15, 3));
  EXPECT_FALSE(w::is_index(16, 3));
  EXPECT_FALSE(w::is_index(0xffffffff, 3));
  EXPECT_EQ(w::between(14, 2, 3), 4u);
  EXPECT_EQ(w::between(8, 0, 3), 8u);   // full
  EXPECT_EQ(w::between(16, 0, 3), 0u);  // empty
  EXPECT_EQ(w::between((std::uint64_t{1} << 32) - 1, 0, 3), 1u);
}

TEST(ernic_wire, numbers) {
  EXPECT_PAIRS((w::op_rdma_write, 0u), (w::op_rdma_write_imm, 1u), (w::op_rdma_read, 4u), (w::op_atomic_cs, 5u),
               (w::op_atomic_fa, 6u), (w::k_signaled, 2u), (4 * w::k_cqe_qp_at, 8u), (4 * w::k_cqe_opcode_at, 16u),
               (4 * w::k_cqe_status_at, 20u), (4 * w::k_cqe_bytes_at, 24u), (4 * w::k_cqe_vendor_at, 40u));
}

}  // namespace of_ernic

// --- mlx5 -------------------------------------------------------------------------------------------
// The bytes of mlx5 segments, against values written by hand from the tables in rdma-core's mlx5dv.h. mlx5dv_wire has
// that header's own functions.

namespace of_mlx5 {

namespace w = xio::wire::mlx5;

TEST(mlx5_wire, control_segment) {
  std::uint32_t dw[4];
  w::put_control(dw, 0x12, 0x09, 0x1abcd, 0x123456, 4, w::k_ask_completion | w::k_plain_fence, 0xa1b2c3d4);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{0x09, 0xab, 0xcd, 0x12,  // opmod, 16-bit index, opcode
                                     0x12, 0x34, 0x56, 0x04,  // qpn, ds
                                     0x00, 0x00, 0x00, 0x48,  // signature, stream, fm_ce_se
                                     0xa1, 0xb2, 0xc3, 0xd4}));
}

TEST(mlx5_wire, index_and_flags_can_be_ored_in_later) {
  std::uint32_t whole[4], parts[4];
  w::put_control(whole, w::op_rdma_write, 0, 0xfffe, 77, 3, w::k_ask_completion);
  w::put_control(parts, w::op_rdma_write, 0, 0, 77, 3, 0);
  parts[0] |= w::control_index(0x5fffe);
  parts[2] |= w::control_flags(w::k_ask_completion);
  EXPECT_EQ(bytes_of(parts, 16), bytes_of(whole, 16));
}

TEST(mlx5_wire, remote_and_data_segments) {
  std::uint32_t dw[4];
  w::put_remote(dw, 0x0102030405060708, 0x11223344);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x22, 0x33, 0x44, 0, 0, 0, 0}));
  w::put_data(dw, 0x00010203, 0x55667788, 0x1112131415161718);
  EXPECT_EQ(bytes_of(dw, 16),
            (bytes{0, 1, 2, 3, 0x55, 0x66, 0x77, 0x88, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}));
}

TEST(mlx5_wire, inline_segment) {
  const std::uint32_t dw = w::inline_header(28);
  EXPECT_EQ(bytes_of(&dw, 4), (bytes{0x80, 0, 0, 28}));
  // ctrl + raddr + (4 + n) in units of 16.
  EXPECT_PAIRS((w::inline_segments(0), 3u), (w::inline_segments(12), 3u), (w::inline_segments(13), 4u),
               (w::inline_segments(28), 4u), (w::inline_segments(29), 5u), (w::blocks(4), 1u), (w::blocks(5), 2u));
}

TEST(mlx5_wire, atomic_segments) {
  std::uint32_t dw[8];
  w::put_atomic_fa(dw, 0x0102030405060708);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0}));
  w::put_atomic_cs(dw, 0x0102030405060708, 0x1112131415161718);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}));
  w::put_masked_fa_4(dw, 0x01020304, 0x80000000);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{1, 2, 3, 4, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  w::put_masked_cs_4(dw, 0x01020304, 0x05060708, 0x090a0b0c, 0x0d0e0f10);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}));
  w::put_masked_fa_8(dw, 1, 0x8000000000000000);
  EXPECT_EQ(bytes_of(dw, 16), (bytes{0, 0, 0, 0, 0, 0, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0}));
  w::put_masked_cs_8(dw, 1, 2, 3, 4);
  EXPECT_EQ(bytes_of(dw, 32),
            (bytes{0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0, 0, 4}));
}

TEST(mlx5_wire, doorbells) {
  const std::uint32_t record = w::record_value(0x7ffff8002);
  EXPECT_EQ(bytes_of(&record, 4), (bytes{0, 0, 0x80, 0x02}));
  // The first 8 bytes of a control segment, without opcode and ds.
  const std::uint64_t bell = w::doorbell_value(0x1fffe, 0x123456);
  EXPECT_EQ(bytes_of(&bell, 8), (bytes{0, 0xff, 0xfe, 0, 0x12, 0x34, 0x56, 0}));
  const w::doorbell d = w::get_doorbell(bell);
  EXPECT_PAIRS((d.producer, 0xfffeu), (d.qpn, 0x123456u), (d.reserved, 0u));
  EXPECT_NE(w::get_doorbell(bell | 0xff).reserved, 0u);
}

// Offsets of struct mlx5_cqe64 and mlx5_err_cqe, in a CQE laid down byte by byte.
TEST(mlx5_wire, completion) {
  unsigned char cqe[64];
  std::memset(cqe, 0, sizeof cqe);
  cqe[47] = 8;                                                     // byte_cnt
  cqe[54] = 0x99, cqe[55] = 0x13;                                  // vendor syndrome, syndrome
  cqe[56] = 0x12, cqe[57] = 0x01, cqe[58] = 0x02, cqe[59] = 0x03;  // send opcode, qpn
  cqe[60] = 0xab, cqe[61] = 0xcd, cqe[62] = 0, cqe[63] = 13 << 4;  // counter, signature, op_own
  std::uint32_t dw[16];
  std::memcpy(dw, cqe, sizeof dw);
  EXPECT_PAIRS((dw[w::k_cqe_bytes_at], xio::wire::be32(8)), (w::cqe_syndrome(dw[w::k_cqe_syndrome_at]), 0x13u),
               (w::cqe_vendor_syndrome(dw[w::k_cqe_syndrome_at]), 0x99u),
               (w::cqe_syndromes(0x13, 0x99), dw[w::k_cqe_syndrome_at]),
               (w::cqe_send_opcode_qpn(0x12, 0x010203), dw[w::k_cqe_qpn_at]),
               (w::cqe_state_opcode(dw[w::k_cqe_state_at]), 13u),
               (w::cqe_state_counter(dw[w::k_cqe_state_at]), 0xabcdu),
               (w::cqe_state(0xabcd, w::cqe_request_error), dw[w::k_cqe_state_at]));
}

TEST(mlx5_wire, decode_finds_stray_bits) {
  std::uint32_t dw[4];
  w::put_control(dw, 0x08, 0, 3, 0x40, 3, 8);
  const auto clean = w::get_control(dw);
  EXPECT_PAIRS((clean.reserved, 0u), (clean.op, 0x08u), (clean.index, 3u), (clean.qpn, 0x40u), (clean.segments, 3u),
               (clean.flags, 8u));
  auto* raw = reinterpret_cast<unsigned char*>(dw);
  for (const int at : {8, 9, 10}) {
    raw[at] ^= 1;
    EXPECT_NE(w::get_control(dw).reserved, 0u) << "byte " << at;
    raw[at] ^= 1;
  }
  raw[7] |= 0x40;
  EXPECT_NE(w::get_control(dw).reserved, 0u);
}

}  // namespace of_mlx5

}  // namespace
