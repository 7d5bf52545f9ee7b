// SPDX-License-Identifier: MIT
// How two NICs prove themselves to each other, and what somebody between them, or a stranger, can do about it.

#include "../gtest.hpp"
#include "proxy/tcp_handshake.hpp"

namespace {

namespace tcp = xio::proxy::tcp;
using xio::ephemeral_key;
using xio::proxy::tcp_key;

std::string text_of(const void* bytes, std::size_t count) { return {static_cast<const char*>(bytes), count}; }

tcp_key key_of(unsigned char fill) {
  tcp_key key;
  key.fill(fill);
  return key;
}

// PE 0 calls PE 1; both hold the key.
struct nic_tcp_proof : testing::Test {
  void SetUp() override {
    xio::crypto::start();
    caller_.emplace();
    callee_.emplace();
    hello_ = tcp::make_hello(0, 1, target_, *caller_);
    reply_ = tcp::make_reply(key_, hello_, *callee_);
    proof_ = tcp::make_proof(key_, hello_, reply_);
  }
  static std::string keys_of(const tcp::session& s) {
    return text_of(s.from_caller.data(), s.from_caller.size()) + text_of(s.from_callee.data(), s.from_callee.size());
  }
  std::string agreed(const ephemeral_key& mine, bool is_caller) const {
    tcp::session s;
    EXPECT_TRUE(tcp::agree(key_, hello_, reply_, mine, is_caller, s));
    return keys_of(s);
  }

  const tcp_key key_ = key_of(0x5a);
  const tcp::identity target_{1, 2, 3};
  std::optional<ephemeral_key> caller_, callee_;
  tcp::hello hello_{};
  tcp::reply reply_{};
  tcp::proof proof_{};
};

template <class Message>
Message altered(const Message& m, std::size_t byte) {
  unsigned char bytes[sizeof m];
  std::memcpy(bytes, &m, sizeof m);
  bytes[byte] ^= 1;
  Message out;
  std::memcpy(&out, bytes, sizeof out);
  return out;
}

TEST_F(nic_tcp_proof, every_byte_of_every_message_is_proven) {
  ASSERT_TRUE(tcp::is_proven(key_, hello_, reply_));
  ASSERT_TRUE(tcp::is_proven(key_, hello_, reply_, proof_));
  for (std::size_t i = 0; i < sizeof hello_; ++i) {
    EXPECT_FALSE(tcp::is_proven(key_, altered(hello_, i), reply_)) << i;
    EXPECT_FALSE(tcp::is_proven(key_, altered(hello_, i), reply_, proof_)) << i;
  }
  for (std::size_t i = 0; i < sizeof reply_; ++i) {
    EXPECT_FALSE(tcp::is_proven(key_, hello_, altered(reply_, i))) << i;
    EXPECT_FALSE(tcp::is_proven(key_, hello_, altered(reply_, i), proof_)) << i;
  }
  for (std::size_t i = 0; i < sizeof proof_; ++i)
    EXPECT_FALSE(tcp::is_proven(key_, hello_, reply_, altered(proof_, i))) << i;
  EXPECT_FALSE(tcp::is_proven(key_of(0x5b), hello_, reply_));
  EXPECT_FALSE(tcp::is_proven(key_of(0x5b), hello_, reply_, proof_));
}

TEST_F(nic_tcp_proof, a_side_cannot_be_given_back_its_own_proof) {
  tcp::proof reflected;
  std::memcpy(reflected.mac, reply_.mac, sizeof reflected.mac);
  EXPECT_FALSE(tcp::is_proven(key_, hello_, reply_, reflected));
}

TEST_F(nic_tcp_proof, this_handshakes_proof_is_none_of_the_next) {
  const tcp::hello next = tcp::make_hello(0, 1, target_, *caller_);
  EXPECT_FALSE(tcp::is_proven(key_, next, reply_));
  const tcp::reply next_reply = tcp::make_reply(key_, hello_, *callee_);
  EXPECT_FALSE(tcp::is_proven(key_, hello_, next_reply, proof_));
}

// An attacker that has the key and a recording, but neither of the two key pairs, gets other keys: forward secrecy.
TEST_F(nic_tcp_proof, the_key_and_a_recording_do_not_make_the_sessions_keys) {
  const std::string keys = agreed(*caller_, true);
  EXPECT_EQ(keys, agreed(*callee_, false));
  EXPECT_NE(keys.substr(0, 32), keys.substr(32));
  const ephemeral_key late;
  EXPECT_NE(keys, agreed(late, true));
  EXPECT_NE(keys, agreed(late, false));
}

TEST_F(nic_tcp_proof, an_open_key_that_is_none_is_refused) {
  std::memset(reply_.public_key, 0, sizeof reply_.public_key);
  tcp::session s;
  EXPECT_FALSE(tcp::agree(key_, hello_, reply_, *caller_, true, s));
}

// ---- over sockets --------------------------------------------------------------------------------------------------

class nic_tcp_handshake : public nic_tcp_proof {
 protected:
  const tcp::clock::time_point until_ = tcp::clock::now() + std::chrono::seconds(10);
  const xio::proxy::tcp_key_source key_with_ = [](int) { return key_of(0x5a); };

  // A visitor of PE 1 that says `words`; goes on until it is decided.
  struct judged {
    tcp::step how;
    bool other_version;
    double seconds;
  };
  judged visit(const std::string& words) {
    auto [local, remote] = tcp::socket_pair();
    tcp::visitor v(key_with_, std::move(local), until_, false);
    EXPECT_EQ(send(remote.get(), words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
    const auto begin = tcp::clock::now();
    tcp::step how = tcp::step::pending;
    while (how == tcp::step::pending && tcp::clock::now() - begin < std::chrono::seconds(1)) how = v.go_on(1, target_);
    return {how, v.is_of_another_version(), std::chrono::duration<double>(tcp::clock::now() - begin).count()};
  }
};

TEST_F(nic_tcp_handshake, an_older_version_is_refused_at_once_and_by_name) {
  const judged old = visit("XIO.NIC1" + std::string(56, 'o'));  // as long as its hello was
  EXPECT_EQ(old.how, tcp::step::failed);
  EXPECT_TRUE(old.other_version);
  const judged http = visit("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(http.how, tcp::step::failed);
  EXPECT_FALSE(http.other_version);
  EXPECT_EQ(visit("XIO").how, tcp::step::pending);
}

TEST_F(nic_tcp_handshake, a_recorded_call_is_refused) {
  EXPECT_EQ(visit(text_of(&hello_, sizeof hello_) + text_of(&proof_, sizeof proof_)).how, tcp::step::failed);
}

// A whole handshake passes through a recorder of every byte: the recording has neither the key nor the seals' keys.
TEST_F(nic_tcp_handshake, an_eavesdropper_hears_no_key) {
  tcp::listener at = tcp::listen_at("127.0.0.1"), between = tcp::listen_at("127.0.0.1");
  tcp::caller c(key_, 0, 1, target_, between.places, false);
  xio::connect_race onward({at.places[0]});
  std::optional<tcp::visitor> v;
  xio::unique_fd to_caller, to_callee;
  std::string heard;
  const auto pass = [&](const xio::unique_fd& from, const xio::unique_fd& to) {
    char bytes[4096];
    const ssize_t n = recv(from.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (n <= 0) return;
    heard.append(bytes, static_cast<std::size_t>(n));
    EXPECT_EQ(send(to.get(), bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL), n);
  };
  bool called = false, visited = false;
  for (int err = 0; !(called && visited) && tcp::clock::now() < until_;) {
    if (!called) called = c.go_on() == tcp::step::done;
    if (!to_caller) to_caller = tcp::accept_one(between.fd.get(), err);
    if (!to_caller) continue;
    if (!to_callee && onward.step() == xio::connect_race::state::connected) to_callee = onward.take();
    if (!to_callee) continue;
    if (!v) {
      if (auto fd = tcp::accept_one(at.fd.get(), err)) v.emplace(key_with_, std::move(fd), until_, false);
      continue;
    }
    pass(to_caller, to_callee);
    pass(to_callee, to_caller);
    if (!visited) visited = v->go_on(1, target_) == tcp::step::done;
  }
  ASSERT_TRUE(called && visited);
  ASSERT_EQ(heard.size(), sizeof(tcp::hello) + sizeof(tcp::reply) + sizeof(tcp::proof));
  EXPECT_EQ(heard.find(text_of(key_.data(), 8)), std::string::npos);

  // Both ends seal and check alike; a seal made from the key and the recording is another.
  tcp::seal caller_out, caller_in, callee_out, callee_in, forged;
  c.take(caller_out, caller_in);
  v->take(callee_out, callee_in);
  const unsigned char body[16] = {1, 2, 3};
  tcp::record_head honest{}, forgery{};
  honest.bytes = forgery.bytes = sizeof body;
  caller_out.put(honest, body);
  std::memcpy(&hello_, heard.data(), sizeof hello_);
  std::memcpy(&reply_, heard.data() + sizeof hello_, sizeof reply_);
  tcp::session s;
  ASSERT_TRUE(tcp::agree(key_, hello_, reply_, ephemeral_key(), true, s));
  forged.start(s.from_caller);
  forged.put(forgery, body);
  EXPECT_NE(text_of(honest.tag, sizeof honest.tag), text_of(forgery.tag, sizeof forgery.tag));
  EXPECT_TRUE(callee_in.check(honest, body));
  callee_out.put(forgery, body);
  EXPECT_TRUE(caller_in.check(forgery, body));
}

}  // namespace
