// SPDX-License-Identifier: MIT
// What ports and queue pairs of real RDMA devices say of themselves, and which two can talk.
#include "proxy/verbs_address.hpp"

#include <random>

#include "refusal.hpp"

namespace xio::proxy {
namespace {

using xio::test::expect_words;
using xio::test::refusal;

gid ipv4(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 77, 0, last}; }

verbs_address roce(const char* device, std::uint8_t last, std::uint32_t qpn) {
  verbs_address c;
  c.device = device;
  c.port = 1;
  c.link = link_layer::ethernet;
  c.kind = gid_kind::roce_v2;
  c.mtu = 5;
  c.gid_index = 3;
  c.address = ipv4(last);
  c.responder_depth = 16;
  c.qpn = qpn;
  c.psn = qpn != 0 ? 0xabcdef : 0;
  return c;
}

TEST(verbs_address, arrives_as_it_was_sent) {
  const verbs_address sent = roce("mlx5_11", 2, 0x123456);
  const verbs_address got = unpack(pack(sent), 3, true);
  EXPECT_PAIRS((got.device, "mlx5_11"), (got.port, 1), (got.link, link_layer::ethernet), (got.kind, gid_kind::roce_v2),
               (got.mtu, 5), (got.gid_index, 3), (got.address, ipv4(2)), (got.responder_depth, 16),
               (got.qpn, 0x123456u), (got.psn, 0xabcdefu),
               (text_of(got), "mlx5_11:1 gid[3] ::ffff:10.77.0.2 qpn 1193046"));
}

TEST(verbs_address, a_peer_without_rdma_is_named) {
  expect_words(refusal([] { unpack(device_address{}, 7, false); }), {"PE 7", "no RDMA device"});
}

TEST(verbs_address, nonsense_is_refused) {
  const device_address good = pack(roce("rxe0", 2, 17));
  struct spoiled {
    const char* what;
    std::size_t at;
    int value;
  };
  // Offsets: magic 0, version 4, link 6, GID type 7, port 8, MTU 9, qpn 16, psn 20, GID 24, device 40.
  for (const spoiled s : {spoiled{"magic", 0, 'Y'},
                          {"version", 4, 1},
                          {"no link layer", 6, 0},
                          {"a third link", 6, 3},
                          {"InfiniBand GID on Ethernet", 7, 0},
                          {"GID type", 7, 3},
                          {"port 0", 8, 0},
                          {"MTU 0", 9, 0},
                          {"MTU 6", 9, 6},
                          {"a qpn of 25 bits", 19, 1},
                          {"a psn of 25 bits", 23, 1},
                          {"an unprintable name", 41, 7}}) {
    device_address bad = good;
    bad[s.at] = static_cast<std::byte>(s.value);
    expect_words(refusal([&] { unpack(bad, 5, true); }), {"PE 5"});
  }
  // No name, a name that is too long, and all that is shorter than what has a fixed size.
  for (const std::size_t bytes : {40, 40 + 64, 39, 6, 1}) {
    device_address other = good;
    other.resize(bytes, std::byte{'x'});
    expect_words(refusal([&] { unpack(other, 5, true); }), {"PE 5"});
  }
  device_address no_address = good;
  std::memset(&no_address[24], 0, 16);
  EXPECT_NE(refusal([&] { unpack(no_address, 5, true); }), "");
  EXPECT_NE(refusal([&] { unpack(pack(roce("rxe0", 2, 0)), 5, true); }), "") << "a port is no queue pair";
  EXPECT_NE(refusal([&] { unpack(pack(roce("rxe0", 2, 17)), 5, false); }), "") << "a queue pair is no port";
  EXPECT_NE(refusal([&] { unpack(pack(roce("rxe0", 2, 1)), 5, true); }), "") << "queue pairs 0 and 1 are management's";
}

TEST(verbs_address, random_bytes_are_never_taken) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    device_address noise(random() % 256);
    for (std::byte& b : noise) b = static_cast<std::byte>(random());
    if (i % 2 == 0) std::memcpy(noise.data(), pack(roce("rxe0", 2, 17)).data(), std::min<std::size_t>(6, noise.size()));
    const std::string said = refusal([&] { unpack(noise, 1, true); });
    EXPECT_NE(said, "");
  }
}

TEST(verbs_pair, unequal_ports_are_refused_by_name_of_both_ends) {
  const verbs_address mine = roce("mlx5_0", 1, 10);
  verbs_address remote = roce("mlx5_3", 2, 20);
  EXPECT_EQ(refusal([&] { check_pair(mine, remote, 4); }), "");
  remote.link = link_layer::infiniband;
  remote.kind = gid_kind::ib;
  remote.lid = 9;
  expect_words(refusal([&] { check_pair(mine, remote, 4); }),
               {"mlx5_0:1", "mlx5_3:1", "lid 9", "PE 4", "Ethernet", "InfiniBand", "XIO_HCA_LIST"});
  remote = roce("mlx5_3", 2, 20);
  remote.kind = gid_kind::roce_v1;
  expect_words(refusal([&] { check_pair(mine, remote, 4); }),
               {"mlx5_0:1", "mlx5_3:1", "RoCE v1", "XIO_RDMA_GID_INDEX"});
  remote = roce("mlx5_3", 2, 20);
  remote.address = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  expect_words(refusal([&] { check_pair(mine, remote, 4); }), {"IPv4", "IPv6", "fe80:0:0:0:102:304:506:708"});
}

TEST(verbs_pair, the_smaller_mtu_is_taken) {
  verbs_address mine = roce("mlx5_0", 1, 10), remote = roce("mlx5_3", 2, 20);
  remote.mtu = 3;
  EXPECT_PAIRS((agree_mtu(mine, remote, 4, 0), 3), (agree_mtu(remote, mine, 4, 0), 3),
               (agree_mtu(mine, remote, 4, 2), 2));
  expect_words(refusal([&] { agree_mtu(mine, remote, 4, 5); }),
               {"XIO_RDMA_MTU=4096", "mlx5_0:1", "mlx5_3:1", "PE 4", "at most 1024"});
}

// enum ibv_mtu: IBV_MTU_256 is 1, IBV_MTU_4096 is 5.
TEST(verbs_pair, mtu_codes) { EXPECT_PAIRS((mtu_bytes(1), 256u), (mtu_bytes(3), 1024u), (mtu_bytes(5), 4096u)); }

}  // namespace
}  // namespace xio::proxy
