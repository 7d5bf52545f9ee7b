// SPDX-License-Identifier: MIT
// Peers that do not hold the key, and peers that change what key holders send to each other, are kept out.
#include "bootstrap_rig.hpp"

using namespace rig;
using namespace xio::bootstrap;

namespace {

// The key pairs of the two ends, where it does not matter which.
const xio::ephemeral_key& root_pair() {
  static const xio::ephemeral_key one;
  return one;
}
const xio::ephemeral_key& peer_pair() {
  static const xio::ephemeral_key one;
  return one;
}
session_keys peer_keys(const secret& key, const banner_bytes& banner, const hello_bytes& hello) {
  return derive_keys(key, banner, hello, peer_pair(), link_end::peer).value();
}

// Runs a world of two while `stranger` does its thing; the world must form and its data be right.
void expect_world_forms_beside(const char* warning, const std::function<void(int port)>& stranger) {
  const int port = free_port();
  testing::internal::CaptureStderr();
  const auto all = in_threads(3, [&](int i) {
    if (i == 2) return stranger(port);
    // The honest peer comes when the stranger has had its time.
    if (i == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    check_allgather(*connect_tcp(tcp_options(port, i, 2)), 100, 1);
  });
  const auto log = testing::internal::GetCapturedStderr();
  for (const auto& o : all) expect_outcome(o, XIO_OK, {}, 3.0);
  EXPECT_NE(log.find(warning), std::string::npos) << log;
}

TEST(stranger, http_client_is_dropped) {
  expect_world_forms_beside("does not speak XIO's protocol", [](int port) {
    raw_connection c(port);
    const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    c.send_bytes(request, sizeof request - 1);
    c.receive(k_banner_bytes);
    EXPECT_TRUE(c.closed_by_peer());
  });
}

TEST(stranger, of_an_older_version_is_dropped_with_both_versions) {
  expect_world_forms_beside(
      "it speaks version 1 of XIO's TCP protocol, and this rank version 4; run the same XIO on every rank",
      [](int port) {
        raw_connection c(port);
        c.receive(k_banner_bytes);
        c.send_bytes("XIO.TCP1, and what its version had behind", 41);
        EXPECT_TRUE(c.closed_by_peer());
      });
}

TEST(stranger, random_bytes_are_dropped) {
  expect_world_forms_beside("does not speak XIO's protocol", [](int port) {
    unsigned char noise[5000];
    xio::crypto::fill_random(noise, sizeof noise);
    noise[0] = 0;  // never the first byte of the magic
    raw_connection c(port);
    c.send_bytes(noise, sizeof noise);
    c.receive(k_banner_bytes);
    EXPECT_TRUE(c.closed_by_peer());
  });
}

TEST(stranger, that_is_silent_does_not_hold_up_the_world) {
  expect_world_forms_beside("", [](int port) {
    raw_connection c(port);
    c.receive(k_banner_bytes);
    EXPECT_TRUE(c.closed_by_peer());  // when the world is complete
  });
}

TEST(stranger, that_connects_and_leaves_is_dropped) {
  expect_world_forms_beside("went away before it proved the key", [](int port) { raw_connection c(port); });
}

TEST(stranger, with_another_key_does_not_take_the_honest_rank_s_place) {
  expect_world_forms_beside("it claims to be rank 1 but holds another key", [](int port) {
    auto o = tcp_options(port, 1, 2);
    o.tcp_key = k_other_key;
    expect_outcome(outcome_of([&] { connect_tcp(o); }), XIO_ERR_AUTH, {"do not hold the same key"});
  });
}

TEST(stranger, that_repeats_a_recorded_hello_is_refused) {
  expect_world_forms_beside("holds another key", [](int port) {
    banner_bytes other = make_banner(root_pair());  // of another connection
    const auto hello = make_hello(key_of(k_key), other, 1, 2, peer_pair());
    raw_connection c(port);
    EXPECT_EQ(c.receive(k_banner_bytes).size(), k_banner_bytes);
    c.send_bytes(hello.data(), hello.size());
    const auto reply = c.receive(k_reply_bytes);
    ASSERT_EQ(reply.size(), k_reply_bytes);
    EXPECT_EQ(std::to_integer<int>(reply[k_magic_bytes]), static_cast<int>(verdict::refused));
    EXPECT_TRUE(c.closed_by_peer());
  });
}

TEST(stranger, many_at_once_are_bounded) {
  expect_world_forms_beside("more of them will be dropped without a word", [](int port) {
    std::vector<std::unique_ptr<raw_connection>> crowd;
    for (int i = 0; i < 400; ++i) crowd.push_back(std::make_unique<raw_connection>(port));
    crowd.front()->receive(k_banner_bytes);
    EXPECT_TRUE(crowd.front()->closed_by_peer());
  });
}

// Expects what rank 1 says when the server at the root's address begins with these words.
void expect_of_server(const std::string& words, const char* said) {
  const int port = free_port();
  const auto listeners = listen_on(port);
  std::thread server([&] {
    const auto fd = accept_from(listeners);
    (void)!send(fd.get(), words.data(), words.size(), MSG_NOSIGNAL);
    poll(nullptr, 0, 200);
  });
  const auto o = outcome_of([&] { connect_tcp(tcp_options(port, 1, 2, 2000)); });
  server.join();
  expect_outcome(o, XIO_ERR_PEER, {said});
}

TEST(stranger, at_the_root_s_address_is_named) {
  expect_of_server("220 mail ready\r\n", "is not rank 0 of an XIO world");
}

TEST(stranger, that_is_an_older_rank_0_is_named_with_both_versions) {
  expect_of_server("XIO.TCP1 and a nonce of its version",
                   "speaks version 1 of XIO's TCP protocol, and this rank version 4");
}

// A false root that lets a peer's hello arrive and then claims to accept it.
TEST(stranger, that_plays_root_cannot_be_believed) {
  const int port = free_port();
  const auto listeners = listen_on(port);
  std::thread server([&] {
    byte_stream s(accept_from(listeners));
    const auto banner = make_banner(root_pair());
    s.queue(banner);
    s.send_some();
    hello_bytes hello;
    while (s.receive_up_to(k_hello_bytes) == byte_stream::state::blocked) poll(nullptr, 0, 1);
    std::copy(s.in().begin(), s.in().end(), hello.begin());
    s.queue(make_reply(key_of(k_other_key), banner, hello, verdict::accepted));
    s.send_some();
    poll(nullptr, 0, 200);
  });
  const auto o = outcome_of([&] { connect_tcp(tcp_options(port, 1, 2, 2000)); });
  server.join();
  EXPECT_EQ(o.status, XIO_ERR_AUTH) << o.sentence;
}

// ---- the handshake's rules -----------------------------------------------------------------------------------------

TEST(handshake, proof_binds_rank_size_and_both_nonces) {
  const auto key = key_of(k_key);
  const auto banner = make_banner(root_pair());
  const auto hello = make_hello(key, banner, 3, 8, peer_pair());
  EXPECT_TRUE(hello_proves_key(key, banner, hello));
  EXPECT_EQ(hello_rank(hello), 3u);
  EXPECT_EQ(hello_size(hello), 8u);
  for (std::size_t i = 0; i < hello.size(); ++i) {
    auto altered = hello;
    altered[i] ^= std::byte{1};
    EXPECT_FALSE(hello_proves_key(key, banner, altered)) << "byte " << i;
  }
  for (std::size_t i = 0; i < banner.size(); ++i) {
    auto altered = banner;
    altered[i] ^= std::byte{1};
    EXPECT_FALSE(hello_proves_key(key, altered, hello)) << "byte " << i << " of the banner";
  }
  EXPECT_FALSE(hello_proves_key(key, make_banner(root_pair()), hello));
  EXPECT_FALSE(hello_proves_key(key_of(k_other_key), banner, hello));
}

TEST(handshake, reply_binds_verdict_and_hello) {
  const auto key = key_of(k_key);
  const auto banner = make_banner(root_pair());
  const auto hello = make_hello(key, banner, 3, 8, peer_pair());
  const auto reply = make_reply(key, banner, hello, verdict::accepted);
  EXPECT_TRUE(reply_accepts(key, banner, hello, reply));
  EXPECT_FALSE(reply_accepts(key, banner, make_hello(key, banner, 3, 8, peer_pair()), reply));  // another nonce
  auto altered = make_reply(key, banner, hello, verdict::refused);
  altered[k_magic_bytes] = std::byte{1};  // refused made into accepted
  EXPECT_FALSE(reply_accepts(key, banner, hello, altered));
}

// Both ends come to the same keys; a root that only has the key, and another key pair, does not.
TEST(handshake, gives_both_ends_keys_that_the_shared_key_alone_does_not) {
  const auto key = key_of(k_key);
  const auto banner = make_banner(root_pair());
  const auto hello = make_hello(key, banner, 1, 2, peer_pair());
  const auto peer = peer_keys(key_of(k_key), banner, hello);
  const auto root = derive_keys(key, banner, hello, root_pair(), link_end::root).value();
  const auto late = derive_keys(key, banner, hello, xio::ephemeral_key(), link_end::root).value();
  const auto same = [](const secret& a, const secret& b) {
    return std::memcmp(a.data(), b.data(), secret::k_bytes) == 0;
  };
  EXPECT_TRUE(same(peer.to_root, root.to_root) && same(peer.from_root, root.from_root));
  EXPECT_FALSE(same(peer.to_root, late.to_root) || same(peer.from_root, late.from_root));
}

TEST(handshake, keys_differ_by_direction_and_connection) {
  const auto key = key_of(k_key);
  const auto banner = make_banner(root_pair());
  const auto a = peer_keys(key, banner, make_hello(key, banner, 1, 2, peer_pair()));
  const auto b = peer_keys(key, banner, make_hello(key, banner, 1, 2, peer_pair()));
  EXPECT_NE(std::memcmp(a.to_root.data(), a.from_root.data(), secret::k_bytes), 0);
  EXPECT_NE(std::memcmp(a.to_root.data(), b.to_root.data(), secret::k_bytes), 0);
}

// ---- frames --------------------------------------------------------------------------------------------------------

struct frames : testing::Test {
  void SetUp() override {
    int fds[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    const auto key = key_of(k_key);
    const auto banner = make_banner(root_pair());
    keys_ = peer_keys(key, banner, make_hello(key, banner, 1, 2, peer_pair()));
    wire_ = xio::unique_fd(fds[0]);
    root_ = sealed_link(byte_stream(xio::unique_fd(fds[1])), keys_, link_end::root, "rank 1 (test)");
  }

  // The bytes that peer `sender` would put on the wire.
  static std::vector<std::byte> sealed(sealed_link& sender, int reader, const std::string& text) {
    sender.queue(frame_kind::gather, std::as_bytes(std::span(text)));
    sender.send_some();
    std::vector<std::byte> bytes(text.size() + 4 + 1 + k_frame_tag_bytes);
    EXPECT_EQ(read(reader, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    return bytes;
  }
  std::vector<std::byte> peer_says(const std::string& text) {
    if (!peer_.is_open()) {
      int fds[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
      peer_ = sealed_link(byte_stream(xio::unique_fd(fds[0])), keys_, link_end::peer, "rank 0 (test)");
      peer_out_ = xio::unique_fd(fds[1]);
    }
    return sealed(peer_, peer_out_.get(), text);
  }
  void put(std::span<const std::byte> bytes) {
    ASSERT_EQ(write(wire_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  }
  outcome root_receives(frame& f, bool* whole = nullptr) {
    return outcome_of([&] {
      const bool got = root_.receive(f);
      if (whole != nullptr) *whole = got;
    });
  }
  void expect_rejected(std::span<const std::byte> bytes, const char* why) {
    put(bytes);
    frame f;
    SCOPED_TRACE(why);
    expect_outcome(root_receives(f), XIO_ERR_AUTH, {"rank 1 (test)"});
  }

  session_keys keys_;
  xio::unique_fd wire_, peer_out_;
  sealed_link root_, peer_;
};

TEST_F(frames, arrive_whole_when_they_come_byte_by_byte) {
  const auto bytes = peer_says("hello");
  frame f;
  bool whole = true;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    put(std::span(bytes).subspan(i, 1));
    EXPECT_EQ(root_receives(f, &whole).status, XIO_OK);
    EXPECT_EQ(whole, i + 1 == bytes.size());
  }
  EXPECT_EQ(f.kind, frame_kind::gather);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(f.payload.data()), f.payload.size()), "hello");
}

TEST_F(frames, hide_their_payload) {
  const auto bytes = peer_says("a capability to my memory");
  const std::string seen(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  EXPECT_EQ(seen.find("capability"), std::string::npos);
}

TEST_F(frames, altered_anywhere_are_rejected) {
  const auto honest = peer_says("payload");
  for (std::size_t i = 0; i < honest.size(); ++i) {
    SetUp();
    auto bytes = peer_says("payload");
    // Of the length, bytes that make it shorter or too long; one that makes it longer is a frame yet to come.
    if (i == 1) continue;
    bytes[i] = i == 0 ? std::byte{20} : bytes[i] ^ std::byte{0x80};
    expect_rejected(bytes, ("byte " + std::to_string(i)).c_str());
    peer_ = sealed_link();
  }
}

TEST_F(frames, repeated_are_rejected) {
  const auto bytes = peer_says("once");
  put(bytes);
  frame f;
  EXPECT_EQ(root_receives(f).status, XIO_OK);
  expect_rejected(bytes, "the same frame again");
}

TEST_F(frames, left_out_are_noticed) {
  peer_says("first, lost");
  expect_rejected(peer_says("second"), "a frame after a lost one");
}

TEST_F(frames, sent_back_are_rejected) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
  sealed_link mirror(byte_stream(xio::unique_fd(fds[0])), keys_, link_end::root, "mirror");
  xio::unique_fd out(fds[1]);
  expect_rejected(sealed(mirror, out.get(), "what root said"), "a frame of the other direction");
}

TEST_F(frames, with_a_length_out_of_bounds_are_rejected_before_their_bytes_come) {
  // 0x11 = 17 = kind and tag is the least, 1 + 65536 + 16 = 0x10011 the most.
  for (const std::uint32_t length : {0u, 1u, 16u, 0x10012u, 0x7fffffffu, 0xffffffffu}) {
    SetUp();
    std::byte bytes[4];
    for (int i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(length >> (8 * i) & 0xff);
    expect_rejected(bytes, std::to_string(length).c_str());
  }
}

TEST_F(frames, cut_by_the_end_of_the_connection_are_a_dead_peer) {
  const auto bytes = peer_says("half a frame");
  put(std::span(bytes).first(bytes.size() / 2));
  wire_.reset();
  frame f;
  expect_outcome(root_receives(f), XIO_ERR_PEER, {"rank 1 (test) is gone"});
}

// Says hello as a rank that has the key, and returns it with the banner that came before.
std::pair<banner_bytes, hello_bytes> said_hello(raw_connection& c, std::uint32_t rank, std::uint32_t size) {
  banner_bytes banner{};
  const auto got = c.receive(k_banner_bytes);
  EXPECT_EQ(got.size(), k_banner_bytes);
  std::copy_n(got.begin(), std::min(got.size(), banner.size()), banner.begin());
  const auto hello = make_hello(key_of(k_key), banner, rank, size, peer_pair());
  c.send_bytes(hello.data(), hello.size());
  return {banner, hello};
}

void expect_welcome(raw_connection& c) {
  for (const std::size_t bytes : {k_reply_bytes, 4 + 1 + k_frame_tag_bytes}) EXPECT_EQ(c.receive(bytes).size(), bytes);
}

// In a whole world: a proven rank that sends an altered frame ends it for everybody, with its name.
TEST(meddling, with_a_frame_is_named_on_every_rank) {
  const int port = free_port();
  const auto all = in_threads(3, [&](int rank) {
    if (rank < 2) return connect_tcp(tcp_options(port, rank, 3))->barrier();
    raw_connection c(port);
    said_hello(c, 2, 3);
    expect_welcome(c);
    const std::byte forged[4 + 17 + 16] = {std::byte{17 + 16}};
    c.send_bytes(forged, sizeof forged);
    c.receive(4096);
  });
  for (const std::size_t r : {0, 1}) expect_outcome(all[r], XIO_ERR_AUTH, {"from rank 2 (127.0.0.1:"});
}

// Frames without content would keep rank 0 reading and from its deadline.
TEST(meddling, with_empty_frames_is_refused) {
  const int port = free_port();
  const auto all = in_threads(2, [&](int rank) {
    if (rank == 0) return connect_tcp(tcp_options(port, 0, 2))->barrier();
    raw_connection c(port);
    const auto [banner, hello] = said_hello(c, 1, 2);
    expect_welcome(c);
    sealed_link link(byte_stream(xio::unique_fd(c.release())), peer_keys(key_of(k_key), banner, hello), link_end::peer,
                     "rank 0");
    link.queue(frame_kind::gather, {});
    link.send_some();
    poll(nullptr, 0, 300);
  });
  expect_outcome(all[0], XIO_ERR_PEER, {"malformed"});
}

// A rank that dies after it was accepted and before the world is complete.
TEST(meddling, or_dying_while_the_world_forms_is_named) {
  const int port = free_port();
  const auto all = in_threads(2, [&](int i) {
    if (i == 0) {
      connect_tcp(tcp_options(port, 0, 3));
      return;
    }
    raw_connection c(port);
    said_hello(c, 2, 3);
    c.receive(k_reply_bytes);
  });
  expect_outcome(all[0], XIO_ERR_PEER, {"rank 2 (127.0.0.1:"}, 2.0);
}

}  // namespace
