// SPDX-License-Identifier: MIT
// Whole mlx5 entries and completions next to rdma-core's: what mlx5dv.h's structures and functions put together must be
// what xio/wire/mlx5.hpp does, byte by byte, and either reads what the other wrote. mlx5_wire has the single fields.
#include <endian.h>
#include <infiniband/mlx5dv.h>

#include "../gtest.hpp"
#include "xio/wire/mlx5.hpp"

namespace {

namespace w = xio::wire::mlx5;

constexpr std::uint64_t k_remote = 0x7fff12345678, k_local = 0x7ffe87654321;
constexpr std::uint32_t k_rkey = 0x1234abcd, k_lkey = 0xfeedbeef, k_qpn = 0xabcdef, k_immediate = 0xa1b2c3d4;
constexpr std::uint16_t k_index = 0xfffe;

// One entry of up to 128 bytes as rdma-core lays it out.
struct theirs {
  alignas(64) unsigned char at[128] = {};

  void control(std::uint8_t op, std::uint8_t opmod, std::uint8_t flags, std::uint8_t segments,
               std::uint32_t immediate = 0) {
    mlx5dv_set_ctrl_seg(reinterpret_cast<mlx5_wqe_ctrl_seg*>(at), k_index, op, opmod, k_qpn, flags, segments, 0,
                        htobe32(immediate));
    mlx5_wqe_raddr_seg remote{htobe64(k_remote), htobe32(k_rkey), 0};
    std::memcpy(at + 16, &remote, 16);
  }
  void data(std::size_t offset, std::uint32_t bytes) {
    mlx5dv_set_data_seg(reinterpret_cast<mlx5_wqe_data_seg*>(at + offset), bytes, k_lkey, k_local);
  }
};

struct ours {
  alignas(64) std::uint32_t dw[32] = {};

  void control(std::uint32_t op, std::uint32_t opmod, std::uint32_t flags, std::uint32_t segments,
               std::uint32_t immediate = 0) {
    w::put_control(dw, op, opmod, k_index, k_qpn, segments, flags, immediate);
    w::put_remote(dw + 4, k_remote, k_rkey);
  }
  void data(std::size_t offset, std::uint32_t bytes) { w::put_data(dw + offset / 4, bytes, k_lkey, k_local); }
};

void expect_same(const ours& a, const theirs& b) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(a.dw);
  for (std::size_t i = 0; i < sizeof b.at; ++i) EXPECT_EQ(unsigned{bytes[i]}, unsigned{b.at[i]}) << "byte " << i;
}

TEST(mlx5dv_wire, write_write_with_immediate_read) {
  const struct {
    std::uint8_t op;
    std::uint32_t immediate;
  } rows[] = {{MLX5_OPCODE_RDMA_WRITE, 0}, {MLX5_OPCODE_RDMA_WRITE_IMM, k_immediate}, {MLX5_OPCODE_RDMA_READ, 0}};
  for (const auto& row : rows)
    for (const std::uint8_t flags : {0, int{MLX5_WQE_CTRL_CQ_UPDATE}, MLX5_WQE_CTRL_CQ_UPDATE | MLX5_WQE_CTRL_FENCE}) {
      theirs b;
      ours a;
      b.control(row.op, 0, flags, 3, row.immediate);
      b.data(32, 0x7fffffff);
      a.control(row.op, 0, flags, 3, row.immediate);
      a.data(32, 0x7fffffff);
      expect_same(a, b);
    }
}

TEST(mlx5dv_wire, inline_of_every_length) {
  static_assert(sizeof(mlx5_wqe_inl_data_seg) == 4);
  for (std::uint32_t n = 1; n <= w::k_inline_in_block; ++n) {
    theirs b;
    ours a;
    // As providers/mlx5/qp.c counts: the header and its bytes, in units of 16.
    const auto segments = static_cast<std::uint8_t>(2 + (sizeof(mlx5_wqe_inl_data_seg) + n + 15) / 16);
    b.control(MLX5_OPCODE_RDMA_WRITE, 0, MLX5_WQE_CTRL_CQ_UPDATE, segments);
    reinterpret_cast<mlx5_wqe_inl_data_seg*>(b.at + 32)->byte_count = htobe32(n | MLX5_INLINE_SEG);
    a.control(w::op_rdma_write, 0, w::k_ask_completion, w::inline_segments(n));
    a.dw[8] = w::inline_header(n);
    for (std::uint32_t i = 0; i < n; ++i)
      b.at[36 + i] = reinterpret_cast<unsigned char*>(a.dw)[36 + i] = static_cast<unsigned char>(0xc0 + i);
    expect_same(a, b);
  }
}

TEST(mlx5dv_wire, atomics) {
  theirs b;
  ours a;
  b.control(MLX5_OPCODE_ATOMIC_CS, 0, MLX5_WQE_CTRL_CQ_UPDATE, 4);
  *reinterpret_cast<mlx5_wqe_atomic_seg*>(b.at + 32) = {htobe64(0x1122334455667788), htobe64(0x99aabbccddeeff00)};
  b.data(48, 8);
  a.control(w::op_atomic_cs, 0, w::k_ask_completion, 4);
  w::put_atomic_cs(a.dw + 8, 0x1122334455667788, 0x99aabbccddeeff00);
  a.data(48, 8);
  expect_same(a, b);
  b.control(MLX5_OPCODE_ATOMIC_FA, 0, MLX5_WQE_CTRL_CQ_UPDATE, 4);
  *reinterpret_cast<mlx5_wqe_atomic_seg*>(b.at + 32) = {htobe64(0x1122334455667788), 0};
  a.control(w::op_atomic_fa, 0, w::k_ask_completion, 4);
  w::put_atomic_fa(a.dw + 8, 0x1122334455667788);
  expect_same(a, b);
}

// The header names the opcodes of masked atomics but none of their segments.
TEST(mlx5dv_wire, masked_atomics_by_their_control) {
  theirs b;
  ours a;
  b.control(MLX5_OPCODE_ATOMIC_MASKED_FA, 0x08, 0, 4);
  a.control(w::op_masked_fa, w::k_opmod_masked_4, 0, 4);
  expect_same(a, b);
  b.control(MLX5_OPCODE_ATOMIC_MASKED_CS, 0x09, 0, 5);
  a.control(w::op_masked_cs, w::k_opmod_masked_8, 0, 5);
  expect_same(a, b);
}

TEST(mlx5dv_wire, what_they_wrote_is_read) {
  theirs b;
  b.control(MLX5_OPCODE_RDMA_WRITE_IMM, 0, MLX5_WQE_CTRL_CQ_UPDATE, 3, k_immediate);
  b.data(32, 4097);
  std::uint32_t dw[32];
  std::memcpy(dw, b.at, sizeof dw);
  const w::control c = w::get_control(dw);
  EXPECT_PAIRS((c.op, unsigned{MLX5_OPCODE_RDMA_WRITE_IMM}), (c.index, k_index), (c.qpn, k_qpn), (c.segments, 3u),
               (c.flags, unsigned{MLX5_WQE_CTRL_CQ_UPDATE}), (c.immediate, k_immediate), (c.reserved, 0u));
  const w::remote r = w::get_remote(dw + 4);
  EXPECT_PAIRS((r.address, k_remote), (r.rkey, k_rkey), (r.reserved, 0u));
  const w::data d = w::get_data(dw + 8);
  EXPECT_PAIRS((d.bytes, 4097u), (d.lkey, k_lkey), (d.address, k_local));
}

// A completion as their structure has it, read by ours; and one of ours, read by their functions.
TEST(mlx5dv_wire, completions) {
  for (const unsigned op : {MLX5_CQE_REQ, MLX5_CQE_REQ_ERR, MLX5_CQE_RESP_ERR, MLX5_CQE_INVALID})
    for (const unsigned owner : {0u, 1u}) {
      mlx5_cqe64 cqe{};
      cqe.wqe_counter = htobe16(0xabcd);
      cqe.byte_cnt = htobe32(8);
      cqe.sop_drop_qpn = htobe32((unsigned{MLX5_OPCODE_RDMA_WRITE} << 24) | k_qpn);
      cqe.op_own = static_cast<std::uint8_t>(op << 4);
      mlx5dv_set_cqe_owner(&cqe, static_cast<std::uint8_t>(owner));
      std::uint32_t dw[16];
      std::memcpy(dw, &cqe, sizeof dw);
      EXPECT_EQ(w::cqe_state_opcode(dw[w::k_cqe_state_at]), op);
      EXPECT_EQ(w::cqe_state_counter(dw[w::k_cqe_state_at]), 0xabcdu);
      EXPECT_EQ(dw[w::k_cqe_state_at], w::cqe_state(0xabcd, op, owner));
      EXPECT_EQ(dw[w::k_cqe_bytes_at], xio::wire::be32(8));
      EXPECT_EQ(dw[w::k_cqe_qpn_at], w::cqe_send_opcode_qpn(w::op_rdma_write, k_qpn));

      mlx5_cqe64 back{};
      const std::uint32_t state = w::cqe_state(0x1234, op, owner);
      std::memcpy(reinterpret_cast<unsigned char*>(&back) + std::size_t{4} * w::k_cqe_state_at, &state, 4);
      EXPECT_PAIRS((mlx5dv_get_cqe_opcode(&back), op), (mlx5dv_get_cqe_owner(&back), owner),
                   (be16toh(back.wqe_counter), 0x1234));
    }
}

TEST(mlx5dv_wire, error_completions) {
  static_assert(sizeof(mlx5_err_cqe) == 64);
  mlx5_err_cqe cqe{};
  cqe.vendor_err_synd = 0x99;
  cqe.syndrome = MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR;
  std::uint32_t dw[16];
  std::memcpy(dw, &cqe, sizeof dw);
  EXPECT_EQ(w::cqe_syndrome(dw[w::k_cqe_syndrome_at]), 0x13u);
  EXPECT_EQ(w::cqe_vendor_syndrome(dw[w::k_cqe_syndrome_at]), 0x99u);
  EXPECT_EQ(dw[w::k_cqe_syndrome_at], w::cqe_syndromes(0x13, 0x99));
}

// Numbers of the two, and where the fields of a completion lie.
#define SAME(OURS, THEIRS) static_assert(unsigned{w::OURS} == static_cast<unsigned>(THEIRS), #OURS)
XIO_EACH(SAME, (op_nop, MLX5_OPCODE_NOP), (op_rdma_write, MLX5_OPCODE_RDMA_WRITE),
         (op_rdma_write_imm, MLX5_OPCODE_RDMA_WRITE_IMM), (op_rdma_read, MLX5_OPCODE_RDMA_READ),
         (op_atomic_cs, MLX5_OPCODE_ATOMIC_CS), (op_atomic_fa, MLX5_OPCODE_ATOMIC_FA),
         (op_masked_cs, MLX5_OPCODE_ATOMIC_MASKED_CS), (op_masked_fa, MLX5_OPCODE_ATOMIC_MASKED_FA),
         (k_ask_completion, MLX5_WQE_CTRL_CQ_UPDATE), (k_solicited, MLX5_WQE_CTRL_SOLICITED),
         (k_small_fence, MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE), (k_fence, MLX5_WQE_CTRL_FENCE),
         (k_inline_flag, MLX5_INLINE_SEG), (cqe_request, MLX5_CQE_REQ), (cqe_request_error, MLX5_CQE_REQ_ERR),
         (cqe_response_error, MLX5_CQE_RESP_ERR), (cqe_invalid, MLX5_CQE_INVALID),
         (local_length, MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR), (local_qp_operation, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR),
         (local_protection, MLX5_CQE_SYNDROME_LOCAL_PROT_ERR), (flushed, MLX5_CQE_SYNDROME_WR_FLUSH_ERR),
         (bad_response, MLX5_CQE_SYNDROME_BAD_RESP_ERR), (local_access, MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR),
         (remote_invalid_request, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR),
         (remote_access, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR), (remote_operation, MLX5_CQE_SYNDROME_REMOTE_OP_ERR),
         (retry_exceeded, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR),
         (rnr_retry_exceeded, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR));
#undef SAME
static_assert(offsetof(mlx5_cqe64, byte_cnt) == 4 * w::k_cqe_bytes_at);
static_assert(offsetof(mlx5_cqe64, sop_drop_qpn) == 4 * w::k_cqe_qpn_at);
static_assert(offsetof(mlx5_cqe64, wqe_counter) == 4 * w::k_cqe_state_at);
static_assert(offsetof(mlx5_cqe64, op_own) == 63 && sizeof(mlx5_cqe64) == 64);

// The bytes that go to the doorbell register are the entry's first eight, but for opcode, opmod and length, which the
// device does not take from there.
TEST(mlx5dv_wire, doorbell_is_the_entrys_beginning) {
  theirs b;
  b.control(MLX5_OPCODE_RDMA_WRITE, 0, 0, 3);
  b.at[0] = b.at[3] = b.at[7] = 0;
  std::uint64_t first;
  std::memcpy(&first, b.at, 8);
  EXPECT_EQ(w::doorbell_value(k_index, k_qpn), first);
}

}  // namespace
