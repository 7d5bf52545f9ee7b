// SPDX-License-Identifier: MIT
// The bytes of mlx5 segments, against values written by hand from the tables in rdma-core's mlx5dv.h. mlx5dv_wire has
// that header's own functions.
#include "../gtest.hpp"
#include "xio/wire/mlx5.hpp"

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

}  // namespace
