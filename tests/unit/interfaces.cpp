// SPDX-License-Identifier: MIT
// Which interfaces XIO_TCP_INTERFACE chooses, in which order addresses are given and tried, and ranges of ports.
#include "base/interfaces.hpp"

#include <arpa/inet.h>

#include "base/port_range.hpp"
#include "refusal.hpp"

namespace {

using namespace xio;
using xio::test::expect_words;
using xio::test::refusal;

socket_address at(const char* text) {
  unsigned char bytes[16];
  const int family = std::string(text).find(':') == std::string::npos ? AF_INET : AF_INET6;
  EXPECT_EQ(inet_pton(family, text, bytes), 1) << text;
  return socket_address::of(family, bytes, 0);
}

interface_address one(const char* name, const char* address, const char* mask, bool running = true) {
  return {name, at(address), at(mask), running};
}

// A node with a management network, rails, a bridge without guests, and two addresses at one interface.
std::vector<interface_address> node() {
  return {one("lo", "127.0.0.1", "255.0.0.0"),
          one("docker0", "172.17.0.1", "255.255.0.0", false),
          one("ib1", "10.1.1.5", "255.255.255.0"),
          one("ib10", "10.1.10.5", "255.255.255.0"),
          one("eth0", "192.168.7.5", "255.255.255.0"),
          one("eth0", "192.168.8.5", "255.255.255.0"),
          one("lo", "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
          one("eth0", "fd00:7::5", "ffff:ffff:ffff:ffff::")};
}

std::string text_of(const std::vector<interface_address>& all) {
  std::string out;
  for (const auto& i : all) out += (out.empty() ? "" : " ") + i.address.host_text();
  return out;
}

TEST(interfaces, that_are_chosen) {
  const struct {
    const char *value, *chosen;
  } rows[] = {
      {"", "127.0.0.1 172.17.0.1 10.1.1.5 10.1.10.5 192.168.7.5 192.168.8.5 ::1 fd00:7::5"},
      {"eth0", "192.168.7.5 192.168.8.5 fd00:7::5"},
      {"ib", "10.1.1.5 10.1.10.5"},
      {"ib1", "10.1.1.5"},
      {"i,lo", "127.0.0.1 10.1.1.5 10.1.10.5 ::1"},
      {"^docker,lo", "10.1.1.5 10.1.10.5 192.168.7.5 192.168.8.5 fd00:7::5"},
      {"10.1.0.0/16", "10.1.1.5 10.1.10.5"},
      {"10.1.8.0/21", "10.1.10.5"},
      {"0.0.0.0/0", "127.0.0.1 172.17.0.1 10.1.1.5 10.1.10.5 192.168.7.5 192.168.8.5"},
      {"192.168.8.5", "192.168.8.5"},
      {"fd00::/9", "fd00:7::5"},
      {"^fd00::/9,0.0.0.0/1,eth", "172.17.0.1 ::1"},
      {"ib10,192.168.8.0/24", "10.1.10.5 192.168.8.5"},
  };
  for (const auto& r : rows) EXPECT_EQ(text_of(interface_choice(r.value).of(node())), r.chosen) << r.value;
}

TEST(interfaces, that_cannot_be_are_refused) {
  const struct {
    const char *value, *why;
  } rows[] = {{"^", "'' is empty"},
              {"eth0,", "'' is empty"},
              {",eth0", "'' is empty"},
              {"eth0,^ib0", "'^ib0' cannot be the name"},
              {"eth 0", "cannot be the name"},
              {"a-name-of-16-chars", "cannot be the name"},
              {"10.1.0.0/33", "no such number of bits"},
              {"10.1.0.0/", "no such number of bits"},
              {"10.1.0.0/-1", "no such number of bits"},
              {"10.1.0.0/8x", "no such number of bits"},
              {"fd00::/129", "no such number of bits"},
              {"10.1.0/8", "no address before the /"},
              {"eth0/8", "no address before the /"}};
  for (const auto& r : rows)
    expect_words(refusal(XIO_ERR_CONFIG, [&] { interface_choice c(r.value); }), {"XIO_TCP_INTERFACE='", r.why});
  for (const char* nothing : {"ib2", "10.2.0.0/16", "^0.0.0.0/0,::/0"})
    expect_words(refusal(XIO_ERR_CONFIG, [&] { interface_choice(nothing).of(node()); }),
                 {nothing, "no interface that is up", "docker0 172.17.0.1"});
}

TEST(interfaces, come_by_the_default_route_first_then_one_of_each) {
  auto all = node();
  const socket_address from[] = {at("192.168.8.5"), at("fd00:7::5")};
  sort_by_likelihood(all, from);
  EXPECT_EQ(text_of(all), "192.168.8.5 fd00:7::5 10.1.1.5 10.1.10.5 192.168.7.5 172.17.0.1 127.0.0.1 ::1");
  all = node();
  sort_by_likelihood(all, {});
  EXPECT_EQ(text_of(all), "10.1.1.5 10.1.10.5 192.168.7.5 fd00:7::5 192.168.8.5 172.17.0.1 127.0.0.1 ::1");
}

TEST(interfaces, of_this_machine_have_masks_and_no_link_local_addresses) {
  const auto all = own_addresses();
  ASSERT_FALSE(all.empty());
  for (const auto& i : all) {
    EXPECT_EQ(i.mask.family(), i.address.family()) << i.name;
    EXPECT_FALSE(i.address.link_local()) << i.name;
    EXPECT_EQ(i.address.port(), 0) << i.name;
  }
}

TEST(interfaces, that_share_a_network_are_tried_first) {
  std::vector<socket_address> theirs{at("127.0.0.1"), at("10.2.1.9"),  at("192.168.7.9"),
                                     at("fd00:8::9"), at("fd00:7::9"), at("10.1.10.9")};
  sort_by_nearness(theirs, interface_choice("eth0").of(node()));
  std::string text;
  for (const auto& t : theirs) text += t.host_text() + " ";
  EXPECT_EQ(text, "192.168.7.9 fd00:7::9 10.2.1.9 fd00:8::9 10.1.10.9 127.0.0.1 ");
}

TEST(port_range, is_parsed_or_refused) {
  EXPECT_TRUE(port_range::parse("").any());
  EXPECT_EQ(port_range::parse("7000").last, 7000);
  const auto r = port_range::parse("1-65535");
  EXPECT_PAIRS((r.first, 1), (r.last, 65535));
  for (const char* wrong :
       {"0", "-", "7000-", "-7000", "7001-7000", "7000-65536", "7000-7001-7002", "a", " 7000", "0-1"})
    expect_words(refusal(XIO_ERR_CONFIG, [&] { port_range::parse(wrong); }), {"XIO_TCP_PORTS='", wrong, "7000-7099"});
}

TEST(port_range, is_searched_for_the_first_that_is_free) {
  const auto search = [](const char* range, std::set<int> taken, int other_errno_at = 0) {
    return port_range::parse(range).first_free([&](std::uint16_t port) {
      errno = port == other_errno_at ? EACCES : EADDRINUSE;
      return port != other_errno_at && !taken.contains(port) ? port : 0;
    });
  };
  EXPECT_PAIRS((search("7000-7003", {7000, 7001}), 7002), (search("7000-7001", {7000, 7001}), 0));
  EXPECT_EQ(search("7000-7003", {7000}, 7001), 0) << "another reason is no port that is taken";
  EXPECT_EQ(search("65535", {65535}), 0);
}

}  // namespace
