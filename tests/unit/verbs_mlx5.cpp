// SPDX-License-Identifier: MIT
// The bytes of mlx5 firmware commands, written down from rdma-core providers/mlx5/mlx5_ifc.h (create_qp_in, qpc, ads)
// and Linux include/linux/mlx5/mlx5_ifc.h (create_cq_in, cqc): words are big endian and fields count from the upper
// end.
#include "../gtest.hpp"
#include "transport/rdma/mlx5/commands.hpp"

namespace xio::rdma::mlx5 {
namespace {

// The words that are not 0, by byte offset.
std::map<unsigned, std::uint32_t> words(const command& c) {
  std::map<unsigned, std::uint32_t> all;
  for (unsigned at = 0; at < c.size(); at += 4) {
    const std::uint32_t w = static_cast<std::uint32_t>(c[at]) << 24 | static_cast<std::uint32_t>(c[at + 1]) << 16 |
                            static_cast<std::uint32_t>(c[at + 2]) << 8 | c[at + 3];
    if (w != 0) all[at] = w;
  }
  return all;
}
using expected = std::map<unsigned, std::uint32_t>;

proxy::verbs_address address_with(std::uint32_t qpn, std::uint8_t last) {
  proxy::verbs_address c;
  c.device = "mlx5_0";
  c.port = 1;
  c.link = proxy::link_layer::ethernet;
  c.kind = proxy::gid_kind::roce_v2;
  c.mtu = 5;
  c.gid_index = 3;
  c.address = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last};
  c.qpn = qpn;
  c.psn = 0xabcdef;
  return c;
}

path_plan path() {
  path_plan p{};
  p.port = 1;
  p.pkey_index = 2;
  p.mtu = 5;
  p.sl = 3;
  p.traffic_class = 0x68;  // DSCP 26
  p.hop_limit = 64;
  p.timeout = 14;
  p.retry = 7;
  p.rnr_retry = 6;
  p.responder_depth = 16;
  p.initiator_depth = 8;
  p.source_port = 0xc123;
  p.remote_mac = {0x02, 0x11, 0x22, 0x33, 0x44, 0x55};
  return p;
}

TEST(mlx5_command, fields_lie_where_they_are_and_nowhere_else) {
  unsigned char bytes[8] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
  put(bytes, {6, 12}, 0x5a5);
  EXPECT_EQ(get(bytes, {6, 12}), 0x5a5u);
  // 111111 010110100101 11...
  EXPECT_PAIRS((bytes[0], 0xfd), (bytes[1], 0x69), (bytes[2], 0x7f));
  for (int i = 3; i < 8; ++i) EXPECT_EQ(bytes[i], 0xff);
  put(bytes, {0, 64}, 0x0102030405060708);
  EXPECT_PAIRS((bytes[0], 1), (bytes[7], 8));
}

TEST(mlx5_command, create_cq) {
  EXPECT_EQ(words(create_cq({8, 0x123456, 0x77, 0xa1, {0xb2, 0x40}})),
            (expected{{0, 0x04000000},     // opcode 0x400
                      {16, 0x02120000},    // dbr_umem_valid, cc, oi
                      {20, 0xb2},          // dbr_umem_id
                      {28, 0x08123456},    // log_cq_size, uar_page
                      {36, 0x77},          // c_eqn
                      {76, 0x40},          // dbr_addr, low half
                      {88, 0xa1},          // cq_umem_id
                      {92, 0x80000000}}))  // cq_umem_valid
      << "collapsed, no overrun";
}

TEST(mlx5_command, create_qp) {
  const qp_plan plan{8, 0x123456, 0x654321, 0x99, 0xa1, {0xb2, 0x0000000100000040}, false};
  expected bytes{{0, 0x05000000},     // opcode 0x500
                 {24, 0x00001800},    // RC, pm_state migrated
                 {28, 0x00654321},    // pd
                 {32, 0x00004000},    // log_sq_size 8 at bit 0x51
                 {36, 0x00123456},    // uar_page
                 {40, 0x00ffffff},    // user_index
                 {148, 0x99},         // cqn_snd
                 {180, 0x99},         // cqn_rcv
                 {184, 1},            // dbr_addr
                 {188, 0x40},         //
                 {196, 0x03000000},   // rq_type: none
                 {232, 0x10000000},   // dbr_umem_valid
                 {252, 0xb2},         // dbr_umem_id
                 {264, 0xa1},         // wq_umem_id
                 {268, 0x80000000}};  // wq_umem_valid
  EXPECT_EQ(words(create_qp(plan)), bytes);
  qp_plan other = plan;
  other.default_clock = true;
  bytes[32] |= 0x40;  // ts_format 1
  EXPECT_EQ(words(create_qp(other)), bytes);
}

TEST(mlx5_command, the_number_that_was_made) {
  reply a{};
  a[8] = 0xee;  // reserved
  a[9] = 0x12;
  a[10] = 0x34;
  a[11] = 0x56;
  EXPECT_EQ(made_number(a), 0x123456u);
}

TEST(mlx5_command, to_init) {
  EXPECT_EQ(words(rst2init(0x123456, path())), (expected{{0, 0x05020000},       // opcode 0x502
                                                         {8, 0x00123456},       // qpn
                                                         {24, 0x00001800},      // pm_state
                                                         {48, 0x00000002},      // pkey_index
                                                         {84, 0x00010000},      // vhca_port_num
                                                         {168, 0x0003e000}}));  // atomic_mode 3, rre, rwe, rae
}

TEST(mlx5_command, to_receive) {
  EXPECT_EQ(words(init2rtr(0x10, path(), address_with(0x10, 1), address_with(0x20, 2))),
            (expected{{0, 0x05030000},       // opcode 0x503
                      {8, 0x10},             // qpn
                      {16, 0x0000000e},      // what may be set beside the usual: read, atomic, write
                      {32, 0xbe000000},      // mtu 5, log_msg_max 30
                      {44, 0x20},            // remote_qpn
                      {48, 0x00000002},      // pkey_index
                      {56, 0x00030040},      // src_addr_index, hop_limit
                      {60, 0x06800000},      // tclass 0x68
                      {72, 0x0000ffff},      // rgid
                      {76, 0x0a000002},      //
                      {80, 0x001ac123},      // dscp 26, udp_sport
                      {84, 0x30010211},      // eth_prio 3, port 1, rmac
                      {88, 0x22334455},      //
                      {168, 0x0083e000},     // log_rra_max 4, atomic_mode, rre, rwe, rae
                      {172, 0x0cabcdef}}));  // min_rnr_nak 12, next_rcv_psn
}

TEST(mlx5_command, to_receive_on_infini_band) {
  auto mine = address_with(0x10, 1), remote = address_with(0x20, 2);
  for (auto* c : {&mine, &remote}) {
    c->link = proxy::link_layer::infiniband;
    c->kind = proxy::gid_kind::ib;
    c->address = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
  }
  remote.lid = 0x1234;
  auto w = words(init2rtr(0x10, path(), mine, remote));
  EXPECT_EQ(w[52], 0x1234u) << "rlid, no GRH in one subnet";
  EXPECT_EQ(w[84], 0x03010000u) << "sl, port";
  EXPECT_EQ(w.count(80), 0u) << "no UDP";
  EXPECT_EQ(w.count(88), 0u) << "no Ethernet address";
  path_plan demanding = path();
  demanding.needs_grh = true;
  EXPECT_EQ(words(init2rtr(0x10, demanding, mine, remote))[52], 0x00801234u) << "a port that wants it always";
  remote.address[7] = 1;
  w = words(init2rtr(0x10, path(), mine, remote));
  EXPECT_EQ(w[52], 0x00801234u) << "GRH to another subnet";
}

TEST(mlx5_command, to_send) {
  EXPECT_EQ(words(rtr2rts(0x10, path(), 0x00fedcba)), (expected{{0, 0x05040000},       // opcode 0x504
                                                                {8, 0x10},             // qpn
                                                                {56, 0x70000000},      // ack_timeout 14
                                                                {136, 0x0067c000},     // log_sra_max 3, retry 7, rnr 6
                                                                {144, 0x00fedcba}}));  // next_send_psn
}

}  // namespace
}  // namespace xio::rdma::mlx5
