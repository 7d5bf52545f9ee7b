// SPDX-License-Identifier: MIT
// Which RDMA ports are chosen, by which GID, and what is said when none can be.
#include "refusal.hpp"
#include "transport/rdma/verbs/port_choice.hpp"

namespace xio::rdma {
namespace {

using xio::test::expect_words;
using xio::test::refusal;

gid ipv4(std::uint8_t last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, last}; }
gid global6() { return {0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}; }
gid local6() { return {0xfe, 0x80, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0xff, 0xfe, 0, 0, 1}; }

// As a ConnectX in RoCE mode fills it: each address once as v1 and once as v2.
std::vector<gid_row> roce_table() {
  return {{0, gid_kind::roce_v1, local6()}, {1, gid_kind::roce_v2, local6()},  {2, gid_kind::roce_v1, ipv4(1)},
          {3, gid_kind::roce_v2, ipv4(1)},  {4, gid_kind::roce_v2, global6()}, {5, gid_kind::roce_v2, ipv4(2)}};
}

port_facts ethernet_port(std::uint8_t number = 1) {
  port_facts p;
  p.number = number;
  p.active = true;
  p.state = "PORT_ACTIVE";
  p.link = link_layer::ethernet;
  p.active_mtu = 5;
  p.max_message = 1 << 30;
  p.gid_count = 16;
  p.pkey_count = 1;
  p.gids = roce_table();
  return p;
}

port_facts infiniband_port(std::uint8_t number = 1) {
  port_facts p = ethernet_port(number);
  p.link = link_layer::infiniband;
  p.lid = 4;
  p.gids = {{0, gid_kind::ib, local6()}};
  return p;
}

device_facts device(const char* name, std::vector<port_facts> ports = {ethernet_port()}) {
  device_facts d;
  d.name = name;
  d.has_atomics = true;
  d.max_wr = 32768;
  d.max_sge = 30;
  d.max_cqe = 1 << 20;
  d.responder_depth = d.initiator_depth = 16;
  d.ports = std::move(ports);
  return d;
}

port_wishes wishes(const char* list = "", option::AUTO_UINT index = {}) {
  port_wishes w;
  w.list = parse_hca_list(list);
  w.gid_index = index;
  return w;
}

// "mlx5_0:1 gid 3, ..."
std::string chosen(const std::vector<device_facts>& devices, const port_wishes& w, std::vector<int> distances = {},
                   int local_rank = 0, std::size_t most = 4) {
  distances.resize(devices.size(), 0);
  std::string text;
  for (const chosen_port& c : choose_ports(devices, w, distances, local_rank, most))
    text += fmt::format("{}{}:{} gid {}", text.empty() ? "" : ", ", devices[c.device].name,
                        devices[c.device].ports[c.port].number, c.gid.index);
  return text;
}

std::string why_not(const std::vector<device_facts>& devices, const port_wishes& w) {
  return refusal([&] { chosen(devices, w); });
}

// --- The list ----------------------------------------------------------------------------------------

TEST(hca_list, names_ports_and_leaves_out) {
  const hca_list list = parse_hca_list("mlx5_0:1,mlx5_1");
  EXPECT_FALSE(list.excludes);
  EXPECT_TRUE(list.names("mlx5_0", 1));
  EXPECT_FALSE(list.names("mlx5_0", 2));
  EXPECT_TRUE(list.names("mlx5_1", 2));
  EXPECT_FALSE(list.names("mlx5_10", 1));
  EXPECT_TRUE(parse_hca_list("^rxe0").excludes);
  EXPECT_TRUE(parse_hca_list("").entries.empty());
}

TEST(hca_list, nonsense_is_refused) {
  for (const char* bad : {",", "mlx5_0,", ",mlx5_0", "^", "^,", "mlx5_0:", "mlx5_0:0", "mlx5_0:256", "mlx5_0:-1",
                          "mlx5_0:1:2", "mlx5_0:1x", ":1", "mlx5_0 mlx5_1", "mlx5_0,^rxe0", "../mlx5_0"})
    expect_words(refusal([&] { parse_hca_list(bad); }), {"XIO_HCA_LIST", bad});
}

TEST(hca_list, what_does_not_exist_is_an_error_that_says_what_does) {
  const std::vector<device_facts> devices = {device("mlx5_0", {ethernet_port(1), ethernet_port(2)}), device("rxe0")};
  expect_words(why_not(devices, wishes("mlx5_7")), {"mlx5_7", "mlx5_0 (ports 1 to 2)", "rxe0 (port 1)"});
  expect_words(why_not(devices, wishes("mlx5_0:3")), {"port 3", "mlx5_0", "ports 1 to 2"});
  expect_words(why_not(devices, wishes("^mlx5_7")), {"mlx5_7", "does not exist"});
  expect_words(why_not({}, wishes("mlx5_0")), {"mlx5_0", "none"});
}

// --- GIDs --------------------------------------------------------------------------------------------

TEST(gid_choice, prefers_routable_roce) {
  port_facts p = ethernet_port();
  const auto index = [&] { return best_gid(p)->index; };
  const auto drop = [&](std::uint32_t i) { std::erase_if(p.gids, [=](const gid_row& g) { return g.index == i; }); };
  for (const std::uint32_t best : {3u, 5u, 4u, 1u, 0u}) {
    EXPECT_EQ(index(), best);
    drop(best);
  }
  p.gids = {};
  EXPECT_EQ(best_gid(p), nullptr);
  p.gids = {{0, gid_kind::ib, local6()}};
  EXPECT_EQ(best_gid(p), nullptr) << "an InfiniBand GID on Ethernet";
  p.gids = {{256, gid_kind::roce_v2, ipv4(1)}};
  EXPECT_EQ(best_gid(p), nullptr) << "an index that no address handle holds";
  EXPECT_EQ(best_gid(infiniband_port())->index, 0u);
}

TEST(gid_choice, indexes_are_checked) {
  EXPECT_EQ(chosen({device("mlx5_0")}, wishes("", 1)), "mlx5_0:1 gid 1");
  expect_words(why_not({device("mlx5_0")}, wishes("", 16)),
               {"XIO_RDMA_GID_INDEX=16", "beyond", "mlx5_0 port 1", "16 entries"});
  expect_words(why_not({device("mlx5_0")}, wishes("", 9)), {"XIO_RDMA_GID_INDEX=9", "empty", "mlx5_0 port 1", "3"});
}

// --- Ports -------------------------------------------------------------------------------------------

TEST(port_choice, takes_the_nearest_and_spreads_equals) {
  const std::vector<device_facts> devices = {device("mlx5_0"), device("mlx5_1"), device("mlx5_2"), device("mlx5_3")};
  const std::vector<int> distances = {6, 2, 6, 2};
  EXPECT_EQ(chosen(devices, wishes(), distances, 0), "mlx5_1:1 gid 3");
  EXPECT_EQ(chosen(devices, wishes(), distances, 1), "mlx5_3:1 gid 3");
  EXPECT_EQ(chosen(devices, wishes(), distances, 2), "mlx5_1:1 gid 3");
  EXPECT_EQ(chosen(devices, wishes("^mlx5_1,mlx5_3"), distances, 1), "mlx5_2:1 gid 3");
}

TEST(port_choice, takes_all_that_are_named_nearest_first) {
  const std::vector<device_facts> devices = {device("mlx5_0"), device("mlx5_1", {ethernet_port(1), ethernet_port(2)}),
                                             device("mlx5_2")};
  EXPECT_EQ(chosen(devices, wishes("mlx5_2,mlx5_0"), {6, 2, 2}), "mlx5_2:1 gid 3, mlx5_0:1 gid 3");
  EXPECT_EQ(chosen(devices, wishes("mlx5_1")), "mlx5_1:1 gid 3, mlx5_1:2 gid 3");
  EXPECT_EQ(chosen(devices, wishes("mlx5_1:2")), "mlx5_1:2 gid 3");
  EXPECT_EQ(chosen(devices, wishes("mlx5_0,mlx5_1,mlx5_2"), {}, 0, 2), "mlx5_0:1 gid 3, mlx5_1:1 gid 3");
}

TEST(port_choice, passes_over_what_cannot_be_unless_it_is_named) {
  port_facts down = ethernet_port();
  down.active = false;
  down.state = "PORT_DOWN";
  port_facts bare = ethernet_port();
  bare.gids = {};
  const std::vector<device_facts> devices = {device("mlx5_0", {down}), device("mlx5_1", {bare}), device("mlx5_2")};
  EXPECT_EQ(chosen(devices, wishes()), "mlx5_2:1 gid 3");
  expect_words(why_not(devices, wishes("mlx5_0,mlx5_2")), {"mlx5_0 port 1", "PORT_DOWN", "bring up"});
  expect_words(why_not(devices, wishes("mlx5_1")), {"mlx5_1 port 1", "empty GID table", "address"});
  expect_words(why_not(devices, wishes("^mlx5_2")), {"mlx5_0 port 1", "PORT_DOWN"});
}

std::vector<std::string> left_out(const std::vector<device_facts>& devices, const port_wishes& w) {
  std::vector<std::string> sentences;
  choose_ports(devices, w, std::vector<int>(devices.size()), 0, 4, &sentences);
  return sentences;
}

port_facts at_rate(port_facts p, std::uint32_t gbits) {
  p.gbits = gbits;
  return p;
}

TEST(port_choice, leaves_a_nic_for_management_out_and_says_so) {
  const std::vector<device_facts> devices = {device("bnxt_re0", {at_rate(ethernet_port(), 25)}),
                                             device("mlx5_0", {at_rate(ethernet_port(), 400)}),
                                             device("mlx5_1", {at_rate(ethernet_port(), 200)})};
  for (const int rank : {0, 2})
    EXPECT_EQ(chosen(devices, wishes(), {2, 6, 6}, rank), "mlx5_0:1 gid 3") << "though nearer";
  EXPECT_EQ(chosen(devices, wishes(), {2, 6, 6}, 1), "mlx5_1:1 gid 3") << "half of the fastest is no management";
  const auto said = left_out(devices, wishes());
  ASSERT_EQ(said.size(), 1u);
  expect_words(said[0], {"bnxt_re0 port 1", "25 Gbit/s", "left out", "400 Gbit/s", "XIO_HCA_LIST=bnxt_re0"});
  EXPECT_EQ(chosen(devices, wishes("bnxt_re0")), "bnxt_re0:1 gid 3") << "named, it is meant";
  EXPECT_EQ(chosen(devices, wishes("^mlx5_0,mlx5_1")), "bnxt_re0:1 gid 3") << "alone, it is the fastest";
  EXPECT_TRUE(left_out({device("rxe0"), device("rxe1")}, wishes()).empty()) << "rates that are not known";
}

TEST(port_choice, takes_one_link_layer_the_one_that_carries_more) {
  std::vector<device_facts> devices = {device("mlx5_0", {at_rate(infiniband_port(), 400)}),
                                       device("mlx5_1", {at_rate(infiniband_port(), 400)}),
                                       device("mlx5_2", {at_rate(ethernet_port(), 400)})};
  for (int rank = 0; rank < 4; ++rank)
    EXPECT_EQ(chosen(devices, wishes(), {6, 6, 2}, rank), rank % 2 == 0 ? "mlx5_0:1 gid 0" : "mlx5_1:1 gid 0");
  const auto said = left_out(devices, wishes());
  ASSERT_EQ(said.size(), 1u);
  expect_words(said[0], {"mlx5_2 port 1", "Ethernet", "left out", "InfiniBand", "XIO_HCA_LIST=mlx5_2"});
  devices.erase(devices.begin());
  EXPECT_EQ(chosen(devices, wishes(), {6, 2}), "mlx5_1:1 gid 0") << "InfiniBand where both carry as much";
  devices[0].ports[0].gbits = 100;
  EXPECT_EQ(chosen(devices, wishes(), {2, 6}), "mlx5_2:1 gid 3");
}

TEST(port_choice, says_why_there_is_none) {
  expect_words(why_not({}, wishes()), {"no RDMA device was found", "rxe"});
  expect_words(why_not({device("rxe0")}, wishes("^rxe0")), {"left by XIO_HCA_LIST", "rxe0"});
  device_facts d = device("efa_0");
  d.has_atomics = false;
  expect_words(why_not({d}, wishes()), {"efa_0", "atomics"});
  d = device("siw0");
  d.is_iwarp = true;
  expect_words(why_not({d}, wishes()), {"siw0", "iWARP"});
  d = device("mlx5_0", {});
  d.closed = "Permission denied";
  expect_words(why_not({d}, wishes()), {"mlx5_0", "Permission denied", "/dev/infiniband"});
  expect_words(why_not({d}, wishes("mlx5_0:1")), {"mlx5_0", "Permission denied"});
}

TEST(port_choice, checks_what_the_device_can) {
  const std::vector<device_facts> devices = {device("mlx5_0")};
  port_wishes w = wishes();
  w.depth = 0;
  expect_words(why_not(devices, w), {"depth of 0", "mlx5_0", "1 to 32768", "XIO_RING_DEPTH"});
  w.depth = 32769;
  expect_words(why_not(devices, w), {"depth of 32769", "mlx5_0", "1 to 32768"});
  w.depth = 32768;
  EXPECT_EQ(why_not(devices, w), "");
  w.pkey_index = 1;
  expect_words(why_not(devices, w), {"XIO_RDMA_PKEY_INDEX=1", "mlx5_0 port 1", "1 entries"});
  w.pkey_index = 0;
  std::vector<device_facts> slow = {device("rxe0")};
  slow[0].ports[0].active_mtu = 3;
  w.mtu = 5;
  EXPECT_EQ(why_not(devices, w), "");
  expect_words(why_not(slow, w), {"XIO_RDMA_MTU=4096", "rxe0 port 1", "1024"});
}

}  // namespace
}  // namespace xio::rdma
