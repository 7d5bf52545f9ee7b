// SPDX-License-Identifier: MIT
// The bytes of the emulated NIC's legacy format, against values written by hand from the structures in
// linux/include/uapi/rdma/vmw_pvrdma-abi.h.
#include "../gtest.hpp"
#include "xio/wire/ernic.hpp"

namespace {

namespace w = xio::wire::ernic;
using bytes = std::vector<unsigned>;

bytes bytes_of(const void* p, std::size_t n) {
  const auto* b = static_cast<const unsigned char*>(p);
  return bytes(b, b + n);
}

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

}  // namespace
