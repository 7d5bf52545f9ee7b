// SPDX-License-Identifier: MIT
// The bytes of mlx5 segments, against values written by hand from the tables in rdma-core's mlx5dv.h, and against that
// header's own functions where it is installed.
#include "../gtest.hpp"
#include "xio/wire/mlx5.hpp"

#if __has_include(<infiniband/mlx5dv.h>)
#include <infiniband/mlx5dv.h>
#define HAVE_MLX5DV_HEADER 1
#endif

namespace {

namespace w = xio::wire::mlx5;
using bytes = std::vector<unsigned>;

bytes bytes_of(const void* p, std::size_t n) {
  const auto* b = static_cast<const unsigned char*>(p);
  return bytes(b, b + n);
}

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
  EXPECT_EQ(dw[w::k_cqe_bytes_at], xio::wire::be32(8));
  EXPECT_EQ(w::cqe_syndrome(dw[w::k_cqe_syndrome_at]), 0x13u);
  EXPECT_EQ(w::cqe_vendor_syndrome(dw[w::k_cqe_syndrome_at]), 0x99u);
  EXPECT_EQ(w::cqe_syndromes(0x13, 0x99), dw[w::k_cqe_syndrome_at]);
  EXPECT_EQ(w::cqe_send_opcode_qpn(0x12, 0x010203), dw[w::k_cqe_qpn_at]);
  EXPECT_EQ(w::cqe_state_opcode(dw[w::k_cqe_state_at]), 13u);
  EXPECT_EQ(w::cqe_state_counter(dw[w::k_cqe_state_at]), 0xabcdu);
  EXPECT_EQ(w::cqe_state(0xabcd, w::cqe_request_error), dw[w::k_cqe_state_at]);
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

#ifdef HAVE_MLX5DV_HEADER

TEST(mlx5_wire, control_like_rdma_core) {
  mlx5_wqe_ctrl_seg theirs{};  // its reserved bytes are left as they were
  mlx5dv_set_ctrl_seg(&theirs, 0x4321, MLX5_OPCODE_ATOMIC_MASKED_CS, 0x09, 0xabcdef, MLX5_WQE_CTRL_CQ_UPDATE, 5, 0, 0);
  std::uint32_t ours[4];
  w::put_control(ours, w::op_masked_cs, w::k_opmod_masked_8, 0x4321, 0xabcdef, 5, w::k_ask_completion);
  EXPECT_EQ(bytes_of(ours, 16), bytes_of(&theirs, 16));
}

TEST(mlx5_wire, segments_like_rdma_core) {
  std::uint32_t ours[4];
  mlx5_wqe_data_seg data;
  mlx5dv_set_data_seg(&data, 4097, 0xfeedbeef, 0x7fff12345678);
  w::put_data(ours, 4097, 0xfeedbeef, 0x7fff12345678);
  EXPECT_EQ(bytes_of(ours, 16), bytes_of(&data, 16));

  static_assert(sizeof(mlx5_wqe_raddr_seg) == 16);
  mlx5_wqe_raddr_seg remote{htobe64(0x7fff12345678), htobe32(0x1234), 0};
  w::put_remote(ours, 0x7fff12345678, 0x1234);
  EXPECT_EQ(bytes_of(ours, 16), bytes_of(&remote, 16));

  static_assert(sizeof(mlx5_wqe_atomic_seg) == 16);
  mlx5_wqe_atomic_seg atomic{htobe64(11), htobe64(22)};
  w::put_atomic_cs(ours, 11, 22);
  EXPECT_EQ(bytes_of(ours, 16), bytes_of(&atomic, 16));
}

TEST(mlx5_wire, numbers_like_rdma_core) {
  EXPECT_EQ(w::op_nop, static_cast<unsigned>(MLX5_OPCODE_NOP));
  EXPECT_EQ(w::op_rdma_write, static_cast<unsigned>(MLX5_OPCODE_RDMA_WRITE));
  EXPECT_EQ(w::op_rdma_write_imm, static_cast<unsigned>(MLX5_OPCODE_RDMA_WRITE_IMM));
  EXPECT_EQ(w::op_rdma_read, static_cast<unsigned>(MLX5_OPCODE_RDMA_READ));
  EXPECT_EQ(w::op_atomic_cs, static_cast<unsigned>(MLX5_OPCODE_ATOMIC_CS));
  EXPECT_EQ(w::op_atomic_fa, static_cast<unsigned>(MLX5_OPCODE_ATOMIC_FA));
  EXPECT_EQ(w::op_masked_cs, static_cast<unsigned>(MLX5_OPCODE_ATOMIC_MASKED_CS));
  EXPECT_EQ(w::op_masked_fa, static_cast<unsigned>(MLX5_OPCODE_ATOMIC_MASKED_FA));
  EXPECT_EQ(w::k_ask_completion, static_cast<unsigned>(MLX5_WQE_CTRL_CQ_UPDATE));
  EXPECT_EQ(w::k_solicited, static_cast<unsigned>(MLX5_WQE_CTRL_SOLICITED));
  EXPECT_EQ(w::k_small_fence, static_cast<unsigned>(MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE));
  EXPECT_EQ(w::k_fence, static_cast<unsigned>(MLX5_WQE_CTRL_FENCE));
  EXPECT_EQ(w::k_inline_flag, static_cast<unsigned>(MLX5_INLINE_SEG));
  EXPECT_EQ(w::cqe_request, static_cast<unsigned>(MLX5_CQE_REQ));
  EXPECT_EQ(w::cqe_request_error, static_cast<unsigned>(MLX5_CQE_REQ_ERR));
  EXPECT_EQ(w::cqe_response_error, static_cast<unsigned>(MLX5_CQE_RESP_ERR));
  EXPECT_EQ(w::cqe_invalid, static_cast<unsigned>(MLX5_CQE_INVALID));
  EXPECT_EQ(offsetof(mlx5_cqe64, byte_cnt), 4u * w::k_cqe_bytes_at);
  EXPECT_EQ(offsetof(mlx5_cqe64, sop_drop_qpn), 4u * w::k_cqe_qpn_at);
  EXPECT_EQ(offsetof(mlx5_cqe64, wqe_counter), 4u * w::k_cqe_state_at);
  EXPECT_EQ(offsetof(mlx5_cqe64, op_own), 63u);
  EXPECT_EQ(sizeof(mlx5_cqe64), 64u);
}

#endif

}  // namespace
