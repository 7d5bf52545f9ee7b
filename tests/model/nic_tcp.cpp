// SPDX-License-Identifier: MIT
// The TCP carrier: two NICs of one process over 127.0.0.1, polled by the test.
#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "gpu/gpu.hpp"
#include "proxy/tcp_fabric.hpp"

namespace {

namespace m = xio::proxy;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;
constexpr std::uint32_t k_all = m::local_read | m::local_write | m::remote_read | m::remote_write | m::remote_atomic;
constexpr std::size_t k_bytes = 1 << 20;

m::tcp_settings settings_of(int pe) {
  m::tcp_settings s;
  s.pe = pe;
  s.pes = 2;
  s.key_with = [](int) {
    m::tcp_key key;
    key.fill(0x5a);
    return key;
  };
  s.address = "127.0.0.1";
  s.seed = static_cast<std::uint32_t>(pe) + 1;
  s.ack_timeout = 20ms;
  s.connect_timeout = 2s;
  return s;
}

// Every frame's fate is drawn from a fixed sequence.
class dice final : public m::frame_faults {
 public:
  double drop = 0, twice = 0, swap = 0, wait = 0;
  m::frame_fate next_frame(std::uint32_t) override {
    m::frame_fate f;
    f.drop = roll() < drop;
    f.twice = roll() < twice;
    f.swap = roll() < swap;
    if (roll() < wait) f.wait = 300us;
    return f;
  }

 private:
  double roll() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(state_ >> 40) / (1 << 24);
  }
  std::uint64_t state_ = 1;
};

class nic_tcp : public testing::Test {
 protected:
  static constexpr std::uint32_t k_local_queue = 100, k_remote_queue = 200;

  void open(m::tcp_settings a, m::tcp_settings b) {
    local_ = std::make_unique<m::tcp_fabric>(xio::gpu::payload(), a);
    remote_ = std::make_unique<m::tcp_fabric>(xio::gpu::payload(), b);
    const std::vector<m::device_address> addresses = {local_->get_address(), remote_->get_address()};
    local_->connect_peers(addresses);
    remote_->connect_peers(addresses);
    mine_.assign(k_bytes, 0);
    theirs_.assign(k_bytes, 0x11);
    for (std::size_t i = 0; i < k_bytes; ++i) mine_[i] = static_cast<unsigned char>(i * 7 + (i >> 8) + 1);
    key_ = local_->register_memory(mine_.data(), k_bytes, k_all).lkey;
    remote_key_ = remote_->register_memory(theirs_.data(), k_bytes, k_all).rkey;
    ask_ = local_->connect(k_local_queue, 1, {}, k_remote_queue);
    back_ = remote_->connect(k_remote_queue, 0, {}, k_local_queue);
  }
  void SetUp() override { open(settings_of(0), settings_of(1)); }
  void TearDown() override { close(); }
  void close() {
    ask_.reset();
    back_.reset();
    local_.reset();
    remote_.reset();
  }

  m::op write(std::uint64_t to, std::uint64_t from, std::uint32_t bytes) {
    m::op o{};
    o.what = m::verb::write;
    o.bytes = bytes;
    o.remote = reinterpret_cast<std::uint64_t>(theirs_.data()) + to;
    o.remote_key = remote_key_;
    o.span_count = 1;
    o.spans[0] = {reinterpret_cast<std::uint64_t>(mine_.data()) + from, bytes, key_};
    return o;
  }
  m::op read(std::uint64_t from, std::uint64_t to, std::uint32_t bytes) {
    m::op o = write(from, to, bytes);
    o.what = m::verb::read;
    return o;
  }
  m::op add(std::uint64_t at, std::uint64_t operand, std::uint64_t result, std::uint8_t width = 8) {
    m::op o = write(at, result, width);
    o.what = m::verb::atomic;
    o.change.is_add = true;
    o.change.width = width;
    o.change.operand = operand;
    return o;
  }

  void turn() {
    if (local_) local_->poll();
    if (remote_) remote_->poll();
    if (ask_) ask_->advance(1 << 20);
    if (back_) back_->advance(1 << 20);
  }
  // Begins all in order and polls until all have ended or one has failed.
  m::op_error run(const std::vector<m::op>& ops, std::chrono::milliseconds limit = 20s) {
    const auto until = clock_type::now() + limit;
    std::size_t begun = 0, over = 0;
    m::op_error how;
    while (over < ops.size()) {
      while (begun < ops.size() && ask_->begin(ops[begun])) ++begun;
      turn();
      while (ask_->ended(&how)) {
        ++over;
        if (how) return how;
      }
      if (clock_type::now() > until) {
        ADD_FAILURE() << over << " of " << ops.size() << " ops ended in time";
        return {m::outcome::flushed, m::rule::none};
      }
    }
    return {};
  }
  static void expect(m::op_error got, m::outcome what, m::rule why) {
    EXPECT_EQ(static_cast<int>(got.what), static_cast<int>(what));
    EXPECT_EQ(static_cast<int>(got.why), static_cast<int>(why));
  }
  void expect_ok(m::op_error got) { expect(got, m::outcome::ok, m::rule::none); }

  // Writes, reads and atomics in a long mix, with everything compared.
  void mix(int rounds) {
    std::vector<m::op> ops;
    std::vector<unsigned char> wanted = theirs_;
    std::memset(theirs_.data() + 900'000, 0, 8);
    std::memset(wanted.data() + 900'000, 0, 8);
    std::uint64_t sum = 0;
    for (int i = 0; i < rounds; ++i) {
      const auto bytes = static_cast<std::uint32_t>((i * 7919) % 200'000 + 1);
      const auto to = static_cast<std::uint64_t>(i * 131 % 4096), from = static_cast<std::uint64_t>(i * 17 % 4096);
      ops.push_back(write(to, from, bytes));
      std::memcpy(wanted.data() + to, mine_.data() + from, bytes);
      ops.push_back(add(900'000, static_cast<std::uint64_t>(i) + 1, 800'000 + 8 * static_cast<std::uint64_t>(i)));
      // From where nothing is written: a read that is sent again may see what later writes left, as in InfiniBand.
      if (i % 3 == 0) ops.push_back(read(600'000 + to, 400'000, bytes));
    }
    for (std::size_t i = 600'000; i < 900'000; ++i)
      wanted[i] = theirs_[i] = static_cast<unsigned char>(i * 3 + (i >> 9));
    expect_ok(run(ops));
    for (int i = 0; i < rounds; ++i) {
      std::uint64_t old;
      std::memcpy(&old, mine_.data() + 800'000 + 8 * i, 8);
      ASSERT_EQ(old, sum) << "atomic " << i << " was done twice or not at all";
      sum += static_cast<std::uint64_t>(i) + 1;
    }
    std::memcpy(wanted.data() + 900'000, &sum, 8);
    EXPECT_TRUE(theirs_ == wanted);
    const int last = (rounds - 1) / 3 * 3;
    const auto bytes = static_cast<std::size_t>((last * 7919) % 200'000 + 1);
    EXPECT_EQ(0, std::memcmp(mine_.data() + 400'000, wanted.data() + 600'000 + last * 131 % 4096, bytes));
  }
  void mix_with(const dice& d, int rounds) {
    close();
    dice one = d, other = d;
    auto a = settings_of(0), b = settings_of(1);
    a.faults = &one;
    b.faults = &other;
    a.retries = 1000;
    open(a, b);
    mix(rounds);
    close();
  }

  std::unique_ptr<m::tcp_fabric> local_, remote_;
  std::unique_ptr<m::executor> ask_, back_;
  std::vector<unsigned char> mine_, theirs_;
  std::uint32_t key_ = 0, remote_key_ = 0;
};

TEST_F(nic_tcp, writes_and_reads_of_every_size) {
  std::vector<std::uint32_t> sizes;
  for (std::uint32_t n = 0; n < 200; ++n) sizes.push_back(n);
  for (std::uint32_t n = 65'500; n < 65'570; ++n) sizes.push_back(n);
  for (std::uint32_t n : {131'071u, 131'072u, 131'073u, 70'000u, 400'000u}) sizes.push_back(n);
  for (const std::uint32_t n : sizes) {
    std::memset(theirs_.data(), 0x11, k_bytes);
    std::memset(mine_.data() + 500'000, 0x22, 450'000);
    expect_ok(run({write(64, 3, n), read(64, 500'001, n)}));
    ASSERT_EQ(0, std::memcmp(theirs_.data() + 64, mine_.data() + 3, n)) << n;
    ASSERT_EQ(theirs_[63], 0x11);
    ASSERT_EQ(theirs_[64 + n], 0x11) << n;
    ASSERT_EQ(0, std::memcmp(mine_.data() + 500'001, mine_.data() + 3, n)) << n;
    ASSERT_EQ(mine_[500'000], 0x22);
    ASSERT_EQ(mine_[500'001 + n], 0x22) << n;
  }
}

TEST_F(nic_tcp, many_spans_across_frames) {
  m::op o = write(0, 0, 0);
  o.span_count = 3;
  std::uint64_t total = 0;
  const std::uint32_t sizes[] = {1, 100'000, 65'000};
  for (std::uint32_t i = 0; i < 3; ++i) {
    o.spans[i] = {reinterpret_cast<std::uint64_t>(mine_.data()) + 200'000 * i, sizes[i], key_};
    total += sizes[i];
  }
  o.bytes = total;
  expect_ok(run({o}));
  const unsigned char* at = theirs_.data();
  for (std::uint32_t i = 0; i < 3; ++i, at += sizes[i - 1])
    ASSERT_EQ(0, std::memcmp(at, mine_.data() + 200'000 * i, sizes[i])) << i;
}

TEST_F(nic_tcp, inline) {
  m::op o = write(8, 0, 8);
  o.is_inline = true;
  o.span_count = 0;
  std::memcpy(o.inlined.data(), "\1\2\3\4\5\6\7\10", 8);
  expect_ok(run({o}));
  EXPECT_EQ(0, std::memcmp(theirs_.data() + 8, "\1\2\3\4\5\6\7\10", 8));
}

TEST_F(nic_tcp, atomics) {
  const std::uint64_t start = 41;
  std::memcpy(theirs_.data() + 16, &start, 8);
  m::op swap = add(16, 7, 8);
  swap.change.is_add = false;
  swap.change.compare = 42;
  swap.change.swap_mask = swap.change.compare_mask = ~std::uint64_t{0};
  expect_ok(run({add(16, 1, 0), swap, add(16, 1, 16, 4)}));
  std::uint64_t v[3] = {};
  std::memcpy(v, mine_.data(), 20);
  EXPECT_EQ(v[0], 41u);
  EXPECT_EQ(v[1], 42u);
  EXPECT_EQ(static_cast<std::uint32_t>(v[2]), 7u);
  std::memcpy(v, theirs_.data() + 16, 8);
  EXPECT_EQ(v[0], 8u);
}

TEST_F(nic_tcp, mix_without_faults) { mix(200); }

// The table of ops begins small. It grows while their frames are under way, wherever in it the oldest op stands.
TEST_F(nic_tcp, ops_under_way_stay_the_same_when_their_table_grows) {
  constexpr std::uint64_t k_ops = 72, k_counter = 900'000, k_sums = 800'000, k_read_at = 600'000, k_reads = 400'000;
  const auto size_of = [](std::uint64_t i) { return static_cast<std::uint32_t>(100 + 37 * i); };
  for (std::uint64_t i = k_read_at; i < k_read_at + k_ops * 4096; ++i) theirs_[i] = static_cast<unsigned char>(i * 3);
  for (std::uint64_t before = 0; before < 17; ++before) {
    ask_.reset();
    back_.reset();
    const auto queue = static_cast<std::uint32_t>(1000 + before);
    ask_ = local_->connect(queue, 1, {}, queue);
    back_ = remote_->connect(queue, 0, {}, queue);
    std::memset(theirs_.data(), 0x11, k_ops * 4096);
    std::memset(theirs_.data() + k_counter, 0, 8);
    std::memset(mine_.data() + k_reads, 0x22, k_ops * 4096);
    expect_ok(run(std::vector<m::op>(before, write(0, 0, 0))));

    for (std::uint64_t i = 0; i < k_ops; ++i) {
      if (i % 3 == 0) {
        ASSERT_TRUE(ask_->begin(write(4096 * i, 5 * i, size_of(i))));
      }
      if (i % 3 == 1) {
        ASSERT_TRUE(ask_->begin(read(k_read_at + 4096 * i, k_reads + 4096 * i, size_of(i))));
      }
      if (i % 3 == 2) {
        ASSERT_TRUE(ask_->begin(add(k_counter, i, k_sums + 8 * i)));
      }
      ask_->advance(1 << 20);
    }
    const auto until = clock_type::now() + 20s;
    for (std::uint64_t over = 0; over < k_ops;) {
      turn();
      for (m::op_error how; ask_->ended(&how); ++over) expect_ok(how);
      ASSERT_LT(clock_type::now(), until) << over << " ops ended after " << before;
    }

    std::uint64_t sum = 0;
    for (std::uint64_t i = 0; i < k_ops; ++i) {
      const unsigned char* const to = i % 3 == 0 ? theirs_.data() + 4096 * i : mine_.data() + k_reads + 4096 * i;
      if (i % 3 == 0) {
        ASSERT_EQ(0, std::memcmp(to, mine_.data() + 5 * i, size_of(i))) << i << " after " << before;
      }
      if (i % 3 == 1) {
        ASSERT_EQ(0, std::memcmp(to, theirs_.data() + k_read_at + 4096 * i, size_of(i))) << i << " after " << before;
      }
      if (i % 3 != 2) {
        ASSERT_EQ(to[size_of(i)], i % 3 == 0 ? 0x11 : 0x22) << i << " after " << before;
      }
      if (i % 3 != 2) continue;
      std::uint64_t old;
      std::memcpy(&old, mine_.data() + k_sums + 8 * i, 8);
      ASSERT_EQ(old, sum) << i << " after " << before;
      sum += i;
    }
  }
}

TEST_F(nic_tcp, loss) {
  dice d;
  d.drop = 0.05;
  mix_with(d, 60);
}
TEST_F(nic_tcp, repetition) {
  dice d;
  d.twice = 0.2;
  mix_with(d, 100);
}
TEST_F(nic_tcp, reordering) {
  dice d;
  d.swap = 0.1;
  mix_with(d, 60);
}
TEST_F(nic_tcp, delay) {
  dice d;
  d.wait = 0.05;
  mix_with(d, 60);
}
TEST_F(nic_tcp, everything_at_once) {
  dice d;
  d.drop = d.twice = d.swap = d.wait = 0.03;
  mix_with(d, 60);
}

TEST_F(nic_tcp, nothing_arrives) {
  close();
  dice d;
  d.drop = 1;
  auto a = settings_of(0);
  a.faults = &d;
  a.retries = 3;
  open(a, settings_of(1));
  expect(run({write(0, 0, 8)}, 5s), m::outcome::retry_exceeded, m::rule::link_lost);
  EXPECT_EQ(theirs_[0], 0x11);
}

TEST_F(nic_tcp, wrong_remote_key) {
  m::op o = write(0, 0, 8);
  o.remote_key ^= 1;
  expect(run({o}), m::outcome::remote_access, m::rule::remote_key);
}
TEST_F(nic_tcp, outside_the_range) {
  expect(run({write(0, 0, 8), write(k_bytes - 4, 0, 8)}), m::outcome::remote_access, m::rule::remote_range);
}
TEST_F(nic_tcp, no_right) {
  remote_key_ = remote_->register_memory(theirs_.data(), k_bytes, m::remote_read).rkey;
  expect(run({read(0, 0, 8), write(0, 0, 8)}), m::outcome::remote_access, m::rule::remote_rights);
}
TEST_F(nic_tcp, crooked_atomic) {
  expect(run({add(4, 1, 0)}), m::outcome::remote_invalid_request, m::rule::atomic_alignment);
}
TEST_F(nic_tcp, wrong_local_key) {
  m::op o = write(0, 0, 8);
  o.spans[0].key ^= 1;
  expect(run({write(8, 0, 8), o, write(16, 0, 8)}), m::outcome::local_protection, m::rule::local_key);
  EXPECT_EQ(theirs_[0], 0x11);
  EXPECT_EQ(theirs_[8], mine_[0]);
  EXPECT_EQ(theirs_[16], 0x11);
}
TEST_F(nic_tcp, nothing_behind_a_refusal_is_carried_out) {
  m::op bad = write(0, 0, 8);
  bad.remote_key = 1;
  expect(run({write(8, 0, 8), bad, write(16, 0, 8)}), m::outcome::remote_access, m::rule::remote_key);
  for (int i = 0; i < 100; ++i) turn();
  EXPECT_EQ(theirs_[8], mine_[0]);
  EXPECT_EQ(theirs_[16], 0x11);
}

TEST_F(nic_tcp, immediate) {
  close();
  std::vector<std::uint32_t> got;
  int refusals = 3;
  auto b = settings_of(1);
  b.on_immediate = [&](std::uint32_t number, std::uint32_t immediate, std::uint64_t bytes) {
    EXPECT_EQ(number, k_remote_queue);
    EXPECT_EQ(bytes, 100'000u);
    EXPECT_EQ(theirs_[99'999], mine_[99'999]);
    if (refusals-- > 0) return false;
    got.push_back(immediate);
    return true;
  };
  open(settings_of(0), b);
  m::op o = write(0, 0, 100'000);
  o.has_immediate = true;
  o.immediate = 0x12345678;
  expect_ok(run({o}));
  EXPECT_EQ(got, std::vector<std::uint32_t>{0x12345678});
}
TEST_F(nic_tcp, nobody_takes_the_immediate) {
  close();
  auto a = settings_of(0);
  a.rnr_retries = 3;
  open(a, settings_of(1));
  m::op o = write(0, 0, 8);
  o.has_immediate = true;
  expect(run({o}), m::outcome::rnr_retry_exceeded, m::rule::not_connected);
}

TEST_F(nic_tcp, peer_goes) {
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

TEST_F(nic_tcp, silent_peer) {
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

TEST_F(nic_tcp, wrong_key) {
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

TEST_F(nic_tcp, without_a_timeout_there_is_no_end) {
  close();
  auto a = settings_of(0), b = settings_of(1);
  a.connect_timeout = b.connect_timeout = 0ms;
  open(a, b);
  for (int i = 0; i < 10; ++i) turn();
  expect_ok(run({write(0, 0, 8)}));
}

// Longer than a caller waits at one address.
TEST_F(nic_tcp, the_callee_stands_still_first) {
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

TEST_F(nic_tcp, nobody_listens_any_more) {
  close();
  auto a = settings_of(0);
  a.connect_timeout = 30s;
  open(a, settings_of(1));
  back_.reset();
  remote_.reset();
  expect(run({write(0, 0, 8)}, 5s), m::outcome::retry_exceeded, m::rule::link_lost);
}

// The sentence has the system's reason for each address.
TEST_F(nic_tcp, why_no_address_replies) {
  const auto gone = m::tcp::listen_at("127.0.0.1").places[0];
  const auto tried = [&] {
    const auto key = settings_of(0).key_with(1);
    m::tcp::caller c(key, 0, 1, {}, {gone, gone});
    const auto until = clock_type::now() + 5s;
    while (c.go_on() == m::tcp::step::pending && clock_type::now() < until) {
    }
    return c.tried();
  };
  EXPECT_EQ(tried(), gone.text() + ": Connection refused, " + gone.text() + ": Connection refused");
  rlimit old{};
  getrlimit(RLIMIT_NOFILE, &old);
  const rlimit none{0, old.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
  const std::string full = tried();
  setrlimit(RLIMIT_NOFILE, &old);
  EXPECT_EQ(full, gone.text() + ": Too many open files, " + gone.text() + ": Too many open files");
}

// Only the soft limit: what the process has stays open.
void limit_descriptors(rlim_t soft) {
  rlimit l{};
  getrlimit(RLIMIT_NOFILE, &l);
  l.rlim_cur = soft;
  setrlimit(RLIMIT_NOFILE, &l);
}

TEST_F(nic_tcp, the_limit_of_descriptors_is_raised_for_who_calls) {
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

TEST_F(nic_tcp, that_nobody_can_call_is_said_once) {
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

TEST_F(nic_tcp, strangers_are_in_nobodys_way) {
  strangers some(remote_->get_address());
  for (std::size_t i = 0; i < 8; ++i) some.come(std::string(i * 40, static_cast<char>('A' + i)));
  mix(10);
}

// More than there are places for, before anybody else.
TEST_F(nic_tcp, many_silent_strangers_are_in_nobodys_way) {
  close();
  auto a = settings_of(0), b = settings_of(1);
  a.connect_timeout = b.connect_timeout = 4s;  // less than silence is borne
  open(a, b);
  strangers many(remote_->get_address());
  for (int i = 0; i < 80; ++i) many.come("");
  mix(10);
}

TEST_F(nic_tcp, to_itself) {
  const std::uint32_t to = local_->register_memory(theirs_.data(), k_bytes, k_all).rkey;
  auto one = local_->connect(300, 0, {}, 301);
  auto other = local_->connect(301, 0, {}, 300);
  std::swap(ask_, one);
  remote_key_ = to;
  mix(20);
  std::swap(ask_, one);
}

TEST_F(nic_tcp, addresses_that_cannot_be) {
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
  addresses.pop_back();
  EXPECT_THROW(local_->connect_peers(addresses), xio::error);
}

}  // namespace
