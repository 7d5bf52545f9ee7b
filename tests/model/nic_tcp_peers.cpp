// SPDX-License-Identifier: MIT
// The TCP carrier and the other end of its links: a peer that goes, is silent, has another key or another address, and
// strangers.
#include <arpa/inet.h>
#include <sys/resource.h>

#include <list>

#include "base/error.hpp"
#include "nic_tcp_rig.hpp"

namespace {

using namespace xio::test;

class nic_tcp_peers : public tcp_pair {
 protected:
  void reopen(std::chrono::milliseconds connect_timeout) {
    close();
    auto a = settings_of(0), b = settings_of(1);
    a.connect_timeout = b.connect_timeout = connect_timeout;
    open(a, b);
  }
};

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
  reopen(0ms);
  for (int i = 0; i < 10; ++i) turn();
  expect_ok(run({write(0, 0, 8)}));
}

// Longer than a caller waits at one address.
TEST_F(nic_tcp_peers, the_callee_stands_still_first) {
  reopen(30s);
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
  reopen(30s);
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
  strangers& operator=(strangers&&) = delete;

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
  reopen(4s);  // less than silence is borne
  strangers many(remote_->get_address());
  for (int i = 0; i < 80; ++i) many.come("");
  mix(10);
}

// A slow network between the two: takes PE 0's call, calls PE 1, and lets so many bytes a second through each way.
class slow_network {
 public:
  slow_network() : listener_(m::tcp::listen_at("127.0.0.1")) {
    const int little = 16 << 10;
    setsockopt(listener_.fd.get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
  }
  const xio::socket_address& at() const { return listener_.places[0]; }
  void connect(std::uint16_t port) {
    xio::socket_address to = at();
    to.set_port(port);
    ends_[1] = xio::unique_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int little = 16 << 10;
    setsockopt(ends_[1].get(), SOL_SOCKET, SO_RCVBUF, &little, sizeof little);
    ASSERT_EQ(::connect(ends_[1].get(), to.get(), to.length), 0);
  }
  void turn() {
    int err = 0;
    if (!ends_[0]) ends_[0] = m::tcp::accept_one(listener_.fd.get(), err);
    const auto now = clock_type::now();
    const double seconds = std::min(std::chrono::duration<double>(now - std::exchange(last_, now)).count(), 0.005);
    for (int from = 0; from < 2; ++from) {
      way& w = ways[from];
      w.allowance = std::min(w.allowance + seconds * w.rate, 64e3);
      if (w.held.empty()) {
        w.held.resize(static_cast<std::size_t>(w.allowance));
        const ssize_t n = recv(ends_[from].get(), w.held.data(), w.held.size(), MSG_DONTWAIT);
        w.held.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
        w.allowance -= static_cast<double>(w.held.size());
      }
      const ssize_t n = ::send(ends_[1 - from].get(), w.held.data(), w.held.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n <= 0) continue;
      w.held.erase(0, static_cast<std::size_t>(n));
      w.went += static_cast<std::uint64_t>(n);
    }
  }
  struct way {
    double rate = 1e9, allowance = 0;
    std::uint64_t went = 0;
    std::string held{};
  };
  way ways[2];  // from PE 0, from PE 1

 private:
  m::tcp::listener listener_;
  xio::unique_fd ends_[2];
  clock_type::time_point last_ = clock_type::now();
};

class nic_tcp_slow : public tcp_pair {
 protected:
  static constexpr auto k_silence = 320ms;
  void SetUp() override {
    by_port_ = net_.at().port();
    m::tcp_settings a = settings_of(0), b = settings_of(1);
    a.ack_timeout = b.ack_timeout = k_silence / (a.retries + 1);
    open(a, b);
    std::uint16_t port;
    std::memcpy(&port, remote_->get_address().data() + 12, sizeof port);
    net_.connect(port);
    expect_ok(run_all({&add_flow({write(0, 0, 8)})}));
  }
  void TearDown() override {
    flows_.clear();
    close();
  }

  // A write of 8 bytes by PE 1.
  m::op write_back() {
    m::op o{};
    o.what = m::verb::write;
    o.bytes = 8;
    o.remote = reinterpret_cast<std::uint64_t>(mine_.data());
    o.remote_key = local_->register_memory(mine_.data(), 8, k_all).rkey;
    o.span_count = 1;
    o.spans[0] = {reinterpret_cast<std::uint64_t>(theirs_.data()), 8,
                  remote_->register_memory(theirs_.data(), 8, k_all).lkey};
    return o;
  }
  // Ops of a queue pair of its own, of PE 0 unless said otherwise.
  struct flow {
    std::unique_ptr<m::executor> ask, back;
    std::vector<m::op> ops;
    std::size_t begun = 0, over = 0;
    m::op_error how{};
    bool ended() const { return over == ops.size() || how; }
  };
  flow& add_flow(std::vector<m::op> ops, int pe = 0) {
    const auto number = static_cast<std::uint32_t>(1000 + flows_.size());
    flow& f = flows_.emplace_back();
    f.ask = (pe == 0 ? local_ : remote_)->connect(number, 1 - pe, {}, number);
    f.back = (pe == 0 ? remote_ : local_)->connect(number, pe, {}, number);
    f.ops = std::move(ops);
    return f;
  }
  void turn_all() {
    net_.turn();
    local_->poll();
    remote_->poll();
    for (flow& f : flows_) {
      while (!f.ended() && f.begun < f.ops.size() && f.ask->begin(f.ops[f.begun])) ++f.begun;
      if (!f.ended()) f.ask->advance(1 << 20);
      while (!f.ended() && f.ask->ended(&f.how)) f.over += f.how ? 0 : 1;
    }
  }
  // Until these have ended: the first one's error.
  m::op_error run_all(const std::vector<flow*>& wanted) {
    const auto until = clock_type::now() + 20s;
    for (const flow* f : wanted)
      while (!f->ended()) {
        turn_all();
        if (clock_type::now() < until) continue;
        ADD_FAILURE() << f->over << " of " << f->ops.size() << " ops ended in time";
        return {m::outcome::flushed, m::rule::none};
      }
    return wanted[0]->how;
  }

  slow_network net_;
  std::list<flow> flows_;
};

// Bytes on the way, not time, are counted: they are the same on a busy machine. In none of the rows is a queue pair
// late, though each waits for longer than it would for a silent peer, and nothing is sent a second time.
TEST_F(nic_tcp_slow, who_waits_behind_others_bytes_is_not_late) {
  constexpr std::uint64_t k_bulk = 8 << 20;
  const std::vector<m::op> puts(k_bulk >> 18, write(0, 0, 1 << 18)), gets(k_bulk >> 18, read(0, 0, 1 << 18));
  const struct {
    const char* what;
    const std::vector<m::op>& bulk;
    std::vector<m::op> others;
    int from;            // the PE that sends the bulk
    double rate, share;  // bytes a second; of the bulk that may pass until the others are over
    int by = 0;          // the PE that asks for the others
  } rows[] = {
      {"8 bytes behind puts", puts, {write(0, 0, 8)}, 0, 6e6, 0.1},
      {"8 bytes behind gets", gets, {write(0, 0, 8)}, 1, 6e6, 0.5},
      {"puts beside puts", puts, std::vector<m::op>(8, write(0, 0, 1 << 18)), 0, 16e6, 0.6},
      {"a get beside puts", puts, {read(0, 0, 8)}, 0, 16e6, 0.1},
      {"8 bytes of a PE that replies to gets", gets, {write_back()}, 1, 6e6, 0.5, 1},
  };
  for (const auto& row : rows) {
    SCOPED_TRACE(row.what);
    net_.ways[row.from].rate = row.rate;
    const std::uint64_t before = net_.ways[row.from].went;
    flow& bulk = add_flow(row.bulk);
    while (net_.ways[row.from].went < before + (1 << 20) && !bulk.ended()) turn_all();
    const std::uint64_t begun = net_.ways[row.from].went;
    flow& others = add_flow(row.others, row.by);
    expect_ok(run_all({&others}));
    EXPECT_LT(static_cast<double>(net_.ways[row.from].went - begun), row.share * k_bulk);
    EXPECT_FALSE(bulk.ended());
    expect_ok(run_all({&bulk}));
    std::uint64_t all = k_bulk;
    for (const m::op& o : row.others) all += o.bytes;
    EXPECT_LT(net_.ways[row.from].went - before, all + all / 100);
  }
}

// One that could not even send anything is as late as the others.
TEST_F(nic_tcp_slow, a_link_that_stands_still_is_a_silent_peer) {
  net_.ways[0].rate = 0;
  const auto began = clock_type::now();
  flow &bulk = add_flow(std::vector<m::op>(32, write(0, 0, 1 << 18))), &small = add_flow({write(0, 0, 8)});
  expect(run_all({&bulk, &small}), m::outcome::retry_exceeded, m::rule::link_lost);
  expect(small.how, m::outcome::retry_exceeded, m::rule::link_lost);
  EXPECT_GE(clock_type::now() - began, k_silence);
}

// Reads beyond what a peer keeps for them are asked for again.
TEST_F(nic_tcp_slow, more_reads_than_a_peer_has_room_for) {
  net_.ways[1].rate = 0;
  std::vector<flow*> all;
  for (int i = 0; i < 20; ++i) all.push_back(&add_flow(std::vector<m::op>(8, read(0, 0, 1 << 18))));
  for (const auto until = clock_type::now() + 150ms; clock_type::now() < until;) turn_all();
  net_.ways[1].rate = 1e9;
  expect_ok(run_all(all));
  for (const flow* f : all) expect_ok(f->how);
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
  const auto expect_refused = [&](const std::function<void(std::vector<m::device_address>&)>& spoil) {
    std::vector<m::device_address> addresses = {local_->get_address(), remote_->get_address()};
    spoil(addresses);
    EXPECT_THROW(local_->connect_peers(addresses), xio::error);
  };
  expect_refused([](auto& a) { a[1][0] ^= std::byte{1}; });
  expect_refused([](auto& a) { std::swap(a[0], a[1]); });
  expect_refused([](auto& a) { a[1][14] = std::byte{200}; });  // more addresses than fit
  expect_refused([](auto& a) { a[1][32] = std::byte{5}; });    // no family
  for (const std::size_t bytes : {0, 1, 31}) expect_refused([=](auto& a) { a[1].resize(bytes); });
  expect_refused([](auto& a) { a[1].push_back({}); });  // longer than its count of addresses says
  expect_refused([](auto& a) { a.pop_back(); });
}

}  // namespace
