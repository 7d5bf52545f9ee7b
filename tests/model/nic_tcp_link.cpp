// SPDX-License-Identifier: MIT
// Links of the TCP carrier and the buffers that they share: a link that has nothing under way keeps none.
#include "proxy/tcp_link.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include "../gtest.hpp"
#include "base/error.hpp"
#include "proxy/tcp_socket.hpp"

namespace {

namespace tcp = xio::proxy::tcp;

// The other end is the test's own: it reads what the link sends and writes what the link gets.
struct wired_link {
  std::unique_ptr<tcp::link> way;
  xio::unique_fd remote;
};

struct nic_tcp_link : testing::Test {
  nic_tcp_link() {
    keys_.from_caller.fill(0x5a);
    keys_.from_callee.fill(0xa5);
  }

  std::unique_ptr<tcp::link> link_at(xio::unique_fd fd, bool is_caller) {
    auto way = std::make_unique<tcp::link>(0, tcp::clock::now(), nullptr, room_);
    way->open(std::move(fd), keys_, is_caller);
    return way;
  }
  wired_link wire(bool is_caller) {
    auto [local, remote] = tcp::socket_pair();
    return {link_at(std::move(local), is_caller), std::move(remote)};
  }

  static void put_ack(tcp::link& way) {
    tcp::frame_head ack{};
    ack.kind = tcp::frame_kind::ack;
    way.put(ack);
  }

  static void lose_while_sending(wired_link& lost) {
    lost.remote = {};
    put_ack(*lost.way);
    lost.way->send();
    ASSERT_TRUE(lost.way->lost());
  }

  // The bytes of a caller's next record: one frame with `payload`.
  std::string record_of(const std::string& payload) { return record_of(wire(true), payload); }
  static std::string record_of(const wired_link& caller, const std::string& payload) {
    tcp::frame_head h{};
    h.kind = tcp::frame_kind::write;
    h.bytes = static_cast<std::uint32_t>(payload.size());
    std::memcpy(caller.way->begin(h), payload.data(), payload.size());
    caller.way->put();
    const std::uint64_t went = caller.way->send();
    std::string record(went, '\0');
    EXPECT_EQ(recv(caller.remote.get(), record.data(), went, MSG_WAITALL), static_cast<ssize_t>(went));
    return record;
  }
  static void write(const wired_link& to, const std::string& bytes) {
    ASSERT_EQ(::send(to.remote.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  // The payloads that came in one turn.
  static std::vector<std::string> receive(const wired_link& at) {
    std::vector<std::string> came;
    at.way->receive([&](const tcp::frame_head& h, const unsigned char* payload) {
      came.emplace_back(reinterpret_cast<const char*>(payload), h.bytes);
      return true;
    });
    return came;
  }
  using payloads = std::vector<std::string>;

  tcp::link_room room_;
  tcp::session keys_;
};

// Of many links the kernel names those on which something has come, and no other, until it is read or they are lost.
TEST_F(nic_tcp_link, is_named_when_something_comes) {
  room_.ready = xio::unique_fd(epoll_create1(EPOLL_CLOEXEC));
  std::vector<wired_link> wired;
  for (int i = 0; i < 9; ++i) wired.push_back(wire(false));
  const auto named = [&] {
    std::vector<const void*> out;
    epoll_event ready[20];
    for (int i = 0, n = epoll_wait(room_.ready.get(), ready, 20, 0); i < n; ++i) out.push_back(ready[i].data.ptr);
    return out;
  };
  using links = std::vector<const void*>;
  EXPECT_EQ(named(), links{});
  write(wired[4], record_of("a"));
  EXPECT_PAIRS((named(), links{wired[4].way.get()}), (receive(wired[4]), payloads{"a"}), (named(), links{}));
  wired[7].remote.reset();
  EXPECT_EQ(named(), links{wired[7].way.get()});
  receive(wired[7]);
  EXPECT_TRUE(wired[7].way->lost());
  EXPECT_EQ(named(), links{});
  // Also where another descriptor of the socket stays open, as in a forked child.
  for (const bool destroyed : {false, true}) {
    auto [local, remote] = tcp::socket_pair();
    const xio::unique_fd childs(dup(local.get()));
    wired_link held{link_at(std::move(local), false), std::move(remote)};
    held.remote.reset();
    EXPECT_EQ(named(), links{held.way.get()});
    if (destroyed)
      held.way.reset();
    else
      receive(held);
    EXPECT_EQ(named(), links{});
  }

  EXPECT_FALSE(wired[2].way->has_output());
  put_ack(*wired[2].way);
  EXPECT_TRUE(wired[2].way->has_output());
  wired[2].way->send();
  EXPECT_FALSE(wired[2].way->has_output());
}

// One buffer for all links that have nothing under way, and a buffer that is sent is kept for the next link that sends.
TEST_F(nic_tcp_link, idle_links_share_their_buffers) {
  std::vector<std::unique_ptr<tcp::link>> links;
  for (int i = 0; i < 20; ++i) {
    auto [one, other] = tcp::socket_pair();
    links.push_back(link_at(std::move(one), true));
    links.push_back(link_at(std::move(other), false));
  }
  int came = 0;
  for (auto& l : links) {
    put_ack(*l);
    l->send();
  }
  for (auto& l : links) l->receive([&](const tcp::frame_head&, const unsigned char*) { return ++came != 0; });
  EXPECT_PAIRS((came, 40), (room_.in.size(), 1u), (room_.out.size(), 1u));
}

TEST_F(nic_tcp_link, who_is_lost_while_sending_gives_its_buffer_back) {
  const std::string record = record_of("a frame that comes in two pieces");
  wired_link lost = wire(false), other = wire(false);
  write(lost, record.substr(0, record.size() / 2));
  EXPECT_EQ(receive(lost), payloads{});
  ASSERT_EQ(room_.in.size(), 0u) << "the half record lies in it";

  lose_while_sending(lost);
  EXPECT_EQ(lost.way->why(), xio::errno_text(EPIPE));
  ASSERT_EQ(room_.in.size(), 1u);
  const unsigned char* const buffer = room_.in[0].data();

  write(other, record);
  EXPECT_PAIRS((receive(other), payloads{"a frame that comes in two pieces"}), (receive(lost), payloads{}));
  ASSERT_EQ(room_.in.size(), 1u);
  EXPECT_EQ(room_.in[0].data(), buffer);
}

// A buffer of no bytes would look to the next link as if its peer had gone.
TEST_F(nic_tcp_link, who_is_lost_while_sending_without_a_buffer_gives_none_back) {
  const std::string record = record_of("whole");
  wired_link lost = wire(false), other = wire(false);
  lose_while_sending(lost);
  EXPECT_EQ(room_.in.size(), 0u);
  write(other, record);
  EXPECT_EQ(receive(other), payloads{"whole"});
  EXPECT_TRUE(other.way->up()) << other.way->why();
  EXPECT_EQ(room_.in.size(), 1u);
}

TEST_F(nic_tcp_link, who_is_lost_while_receiving_gives_its_buffer_back) {
  const std::string record = record_of("half of it");
  wired_link lost = wire(false);
  write(lost, record.substr(0, record.size() / 2));
  EXPECT_EQ(receive(lost), payloads{});
  lost.remote = {};
  EXPECT_EQ(receive(lost), payloads{});
  ASSERT_TRUE(lost.way->lost());
  EXPECT_PAIRS((lost.way->why(), "the peer has closed it"), (room_.in.size(), 1u));
}

// Cut within the head, behind it, within the payload, and before the last byte.
TEST_F(nic_tcp_link, half_a_record_stays_while_others_use_the_buffers) {
  const std::string long_one(60'001, 'l'), other_one(50'003, 'o'), whole_one(40'009, 'w');
  constexpr std::size_t head = sizeof(tcp::record_head);
  const std::size_t all = record_of(long_one).size();
  for (const std::size_t cut : {std::size_t{1}, head - 1, head, head + 1, all / 2, all - 1}) {
    room_.in.clear();
    const wired_link caller = wire(true), half = wire(false), other_half = wire(false), busy = wire(false);
    const std::string first = record_of(caller, whole_one), second = record_of(caller, long_one);
    const std::string other = record_of(other_one);
    // One begins at its buffer's begin, one behind a record that is taken.
    write(half, first + second.substr(0, cut));
    EXPECT_EQ(receive(half), payloads{whole_one});
    EXPECT_EQ(room_.in.size(), 0u) << cut;
    write(other_half, other.substr(0, cut < head + 1 ? cut : other.size() / 2));
    EXPECT_EQ(receive(other_half), payloads{});
    EXPECT_EQ(room_.in.size(), 0u) << cut;

    for (int i = 0; i < 3; ++i) {
      const wired_link passing = wire(false);
      write(passing, record_of(std::string(60'000, static_cast<char>('A' + i))));
      EXPECT_EQ(receive(passing), payloads{std::string(60'000, static_cast<char>('A' + i))});
      EXPECT_EQ(room_.in.size(), 1u) << cut;
    }
    write(busy, first);
    EXPECT_EQ(receive(busy), payloads{whole_one});
    EXPECT_EQ(room_.in.size(), 1u) << cut;

    write(half, second.substr(cut));
    EXPECT_EQ(receive(half), payloads{long_one}) << cut;
    EXPECT_EQ(room_.in.size(), 2u) << cut;
    write(other_half, other.substr(cut < head + 1 ? cut : other.size() / 2));
    EXPECT_EQ(receive(other_half), payloads{other_one}) << cut;
    EXPECT_EQ(room_.in.size(), 3u) << cut;
    for (const wired_link* w : {&half, &other_half, &busy}) EXPECT_TRUE(w->way->up()) << w->way->why();
  }
}

// A peer that asks on and on and does not read: what waits for it is bounded, and it is read from again when it reads.
TEST_F(nic_tcp_link, who_reads_nothing_is_heard_no_more_until_it_reads) {
  constexpr std::uint64_t k_most = 70 << 20;
  const wired_link caller = wire(true), local = wire(false);
  const std::string request = record_of(caller, "?");
  const std::string reply(60'000, 'a');
  const auto reply_to_all = [&] {
    local.way->receive([&](const tcp::frame_head&, const unsigned char*) {
      tcp::frame_head h{};
      h.kind = tcp::frame_kind::read_data;
      h.bytes = static_cast<std::uint32_t>(reply.size());
      unsigned char* room = local.way->begin(h);
      if (room != nullptr) std::memcpy(room, reply.data(), reply.size());
      if (room != nullptr) local.way->put();
      return true;
    });
    local.way->send();
  };
  int asked = 0;
  // Records are numbered, so that each is another.
  for (std::string next = request; asked < 2000; next = record_of(caller, "?"), ++asked) {
    if (::send(local.remote.get(), next.data(), next.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0) break;
    reply_to_all();
  }
  EXPECT_LT(local.way->backlog(), k_most);
  ASSERT_TRUE(local.way->up());
  const std::uint64_t before = local.way->backlog();
  EXPECT_GT(before, std::uint64_t{60} << 20) << "the test did not get so far";
  std::vector<char> sink(1 << 20);
  for (int i = 0; i < 400 && local.way->backlog() > (std::uint64_t{1} << 20); ++i) {
    while (recv(local.remote.get(), sink.data(), sink.size(), MSG_DONTWAIT) > 0) continue;
    local.way->send();
  }
  EXPECT_LT(local.way->backlog(), before / 2);
  EXPECT_NE(local.way->receive([](const tcp::frame_head&, const unsigned char*) { return true; }), 0u) << "heard again";
}

}  // namespace
