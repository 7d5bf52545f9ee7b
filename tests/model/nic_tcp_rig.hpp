// SPDX-License-Identifier: MIT
// Two NICs of one process that reach each other over TCP on 127.0.0.1, polled by the test.
#pragma once
#include "../gtest.hpp"
#include "gpu/gpu.hpp"
#include "proxy/tcp_fabric.hpp"

namespace xio::test {

namespace m = xio::proxy;
using namespace std::chrono_literals;
using clock_type = std::chrono::steady_clock;
constexpr std::uint32_t k_all = m::local_read | m::local_write | m::remote_read | m::remote_write | m::remote_atomic;
constexpr std::size_t k_bytes = 1 << 20;

inline m::tcp_settings settings_of(int pe) {
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

struct tcp_pair : testing::Test {
  static constexpr std::uint32_t k_local_queue = 100, k_remote_queue = 200;

  void open(m::tcp_settings a, m::tcp_settings b) {
    local_ = std::make_unique<m::tcp_fabric>(xio::gpu::payload(), a);
    remote_ = std::make_unique<m::tcp_fabric>(xio::gpu::payload(), b);
    std::vector<m::device_address> addresses = {local_->get_address(), remote_->get_address()};
    if (by_port_ != 0) std::memcpy(addresses[1].data() + 12, &by_port_, sizeof by_port_);
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

  std::uint16_t by_port_ = 0;  // where PE 0 calls PE 1, if not where it listens
  std::unique_ptr<m::tcp_fabric> local_, remote_;
  std::unique_ptr<m::executor> ask_, back_;
  std::vector<unsigned char> mine_, theirs_;
  std::uint32_t key_ = 0, remote_key_ = 0;
};

}  // namespace xio::test
