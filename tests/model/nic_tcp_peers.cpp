// SPDX-License-Identifier: MIT
// The TCP carrier and the other end of its links: a peer that goes, is silent, has another key or another address, and
// strangers.
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "../gtest.hpp"
#include "base/error.hpp"
#include "nic_tcp_rig.hpp"

namespace {

using namespace xio::test;

class nic_tcp_peers : public tcp_pair {};

TEST_F(nic_tcp_peers, peer_goes) {
  expect_ok(run({write(0, 0, 8)}));
  back_.reset();
  remote_.reset();
  expect(run({write(0, 0, 8)}, 5s), m::outcome::retry_exceeded, m::rule::link_lost);
  EXPECT_TRUE(ask_->begin(write(0, 0, 8)));
  m::op_error how;
  turn();
  ASSERT_TRUE(ask_->ended(&how));
  expect(how, m::outcome::retry_exceeded, m::rule::link_lost);
}

TEST_F(nic_tcp_peers, silent_peer) {
  expect_ok(run({write(0, 0, 8)}));
  const auto until = clock_type::now() + 5s;
  ASSERT_TRUE(ask_->begin(write(0, 0, 8)));
  m::op_error how;
  bool over = false;
  while (!over && clock_type::now() < until) {
    local_->poll();
    ask_->advance(1 << 20);
    over = ask_->ended(&how);
  }
  ASSERT_TRUE(over);
  expect(how, m::outcome::retry_exceeded, m::rule::link_lost);
}

TEST_F(nic_tcp_peers, wrong_key) {
  close();
  auto b = settings_of(1);
  b.key_with = [](int) {
    m::tcp_key key;
    key.fill(0x5a);
    key[31] ^= 1;
    return key;
  };
  auto a = settings_of(0);
  a.connect_timeout = b.connect_timeout = 300ms;
  open(a, b);
  expect(run({write(0, 0, 8)}, 5s), m::outcome::retry_exceeded, m::rule::link_lost);
  EXPECT_EQ(theirs_[0], 0x11);
}

TEST_F(nic_tcp_peers, without_a_timeout_there_is_no_end) {
  close();
  auto a = settings_of(0), b = settings_of(1);
  a.connect_timeout = b.connect_timeout = 0ms;
  open(a, b);
  for (int i = 0; i < 10; ++i) turn();
  expect_ok(run({write(0, 0, 8)}));
}

// Longer than a caller waits at one address.
TEST_F(nic_tcp_peers, the_callee_stands_still_first) {
  close();
  auto a = settings_of(0), b = settings_of(1);
  a.connect_timeout = b.connect_timeout = 30s;
  open(a, b);
  ASSERT_TRUE(ask_->begin(write(0, 0, 8)));
  for (const auto until = clock_type::now() + 4s; clock_type::now() < until;) local_->poll();
  m::op_error how;
  for (const auto until = clock_type::now() + 20s; !ask_->ended(&how);) {
    turn();
    ASSERT_LT(clock_type::now(), until);
  }
  expect_ok(how);
  EXPECT_EQ(theirs_[0], mine_[0]);
}

TEST_F(nic_tcp_peers, nobody_listens_any_more) {
  close();
  auto a = settings_of(0);
  a.connect_timeout = 30s;
  open(a, settings_of(1));
  back_.reset();
  remote_.reset();
  expect(run({write(0, 0, 8)}, 5s), m::outcome::retry_exceeded, m::rule::link_lost);
}

// The sentence has the system's reason for each address.
TEST_F(nic_tcp_peers, why_no_address_replies) {
  const auto gone = m::tcp::listen_at("127.0.0.1").places[0];
  const auto tried = [&] {
    const auto key = settings_of(0).key_with(1);
    m::tcp::caller c(key, 0, 1, {}, {gone, gone}, false);
    const auto until = clock_type::now() + 5s;
    while (c.go_on() == m::tcp::step::pending && clock_type::now() < until) {
    }
    return c.tried();
  };
  EXPECT_EQ(tried(), gone.text() + ": Connection refused, " + gone.text() + ": Connection refused");
  // In a child, for a hard limit cannot be raised again.
  const auto say_without_descriptors = [&] {
    const rlimit none = {0, 0};
    setrlimit(RLIMIT_NOFILE, &none);
    std::fprintf(stderr, "%s\n", tried().c_str());
    _exit(0);
  };
  EXPECT_EXIT(say_without_descriptors(), testing::ExitedWithCode(0),
              gone.text() + ": Too many open files, " + gone.text() + ": Too many open files");
}

// Only the soft limit: what the process has stays open.
void limit_descriptors(rlim_t soft) {
  rlimit l{};
  getrlimit(RLIMIT_NOFILE, &l);
  l.rlim_cur = soft;
  setrlimit(RLIMIT_NOFILE, &l);
}

TEST_F(nic_tcp_peers, the_limit_of_descriptors_is_raised_for_who_calls) {
  ASSERT_TRUE(ask_->begin(write(0, 0, 8)));
  local_->poll();  // has its socket
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  limit_descriptors(1);  // poll(2) itself refuses to look at more than that
  expect_ok(run({write(8, 8, 8)}));
  limit_descriptors(old.rlim_cur);
}

// In a child of its own, for a hard limit cannot be raised again.
[[noreturn]] void poll_without_descriptors(m::tcp_fabric& f) {
  const rlimit none{1, 1};  // poll(2) itself refuses to look at more than that
  setrlimit(RLIMIT_NOFILE, &none);
  for (int i = 0; i < 1000; ++i) f.poll();
  _exit(0);
}

TEST_F(nic_tcp_peers, that_nobody_can_call_is_said_once) {
  EXPECT_EXIT(poll_without_descriptors(*remote_), testing::ExitedWithCode(0), "^$") << "nobody has called yet";
  local_->poll();
  EXPECT_EXIT(poll_without_descriptors(*remote_), testing::ExitedWithCode(0),
              "^[^\n]*no file descriptor is left[^\n]*raise the limit of open files \\(ulimit -n\\)\n$");
}

class strangers {
 public:
  explicit strangers(const m::device_address& to) { std::memcpy(&port_, to.data() + 12, 2); }
  ~strangers() {
    for (const int fd : fds_) ::close(fd);
  }
  strangers(const strangers&) = delete;
  strangers& operator=(const strangers&) = delete;

  void come(const std::string& words) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port_);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fds_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(0, connect(fds_.back(), reinterpret_cast<sockaddr*>(&to), sizeof to));
    (void)!send(fds_.back(), words.data(), words.size(), MSG_NOSIGNAL);
  }

 private:
  std::uint16_t port_;
  std::vector<int> fds_;
};

TEST_F(nic_tcp_peers, strangers_are_in_nobodys_way) {
  strangers some(remote_->get_address());
  for (std::size_t i = 0; i < 8; ++i) some.come(std::string(i * 40, static_cast<char>('A' + i)));
  mix(10);
}

// More than there are places for, before anybody else.
TEST_F(nic_tcp_peers, many_silent_strangers_are_in_nobodys_way) {
  close();
  auto a = settings_of(0), b = settings_of(1);
  a.connect_timeout = b.connect_timeout = 4s;  // less than silence is borne
  open(a, b);
  strangers many(remote_->get_address());
  for (int i = 0; i < 80; ++i) many.come("");
  mix(10);
}

TEST_F(nic_tcp_peers, to_itself) {
  const std::uint32_t to = local_->register_memory(theirs_.data(), k_bytes, k_all).rkey;
  auto one = local_->connect(300, 0, {}, 301);
  auto other = local_->connect(301, 0, {}, 300);
  std::swap(ask_, one);
  remote_key_ = to;
  mix(20);
  std::swap(ask_, one);
}

TEST_F(nic_tcp_peers, addresses_that_cannot_be) {
  const std::vector<m::device_address> good = {local_->get_address(), remote_->get_address()};
  auto addresses = good;
  addresses[1][0] ^= std::byte{1};
  EXPECT_THROW(local_->connect_peers(addresses), xio::error);
  addresses = good;
  std::swap(addresses[0], addresses[1]);
  EXPECT_THROW(local_->connect_peers(addresses), xio::error);
  addresses = good;
  addresses[1][14] = std::byte{200};  // more addresses than fit
  EXPECT_THROW(local_->connect_peers(addresses), xio::error);
  addresses = good;
  addresses[1][32] = std::byte{5};  // no family
  EXPECT_THROW(local_->connect_peers(addresses), xio::error);
  for (const std::size_t bytes : {0, 1, 31}) {
    addresses = good;
    addresses[1].resize(bytes);
    EXPECT_THROW(local_->connect_peers(addresses), xio::error);
  }
  addresses = good;
  addresses[1].push_back({});  // longer than its count of addresses says
  EXPECT_THROW(local_->connect_peers(addresses), xio::error);
  addresses.pop_back();
  EXPECT_THROW(local_->connect_peers(addresses), xio::error);
}

}  // namespace
