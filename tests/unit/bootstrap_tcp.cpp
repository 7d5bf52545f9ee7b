// SPDX-License-Identifier: MIT
// The TCP bootstrap among honest ranks: worlds form, data is right, what goes wrong is named.
#include "bootstrap/bytes.hpp"
#include "bootstrap/star_message.hpp"
#include "bootstrap/tcp.hpp"
#include "bootstrap_rig.hpp"

using namespace rig;
using namespace xio::bootstrap;

namespace {

class world_of : public testing::TestWithParam<int> {};

TEST_P(world_of, gathers_every_ranks_bytes_in_order) {
  const int size = GetParam(), port = free_port();
  expect_all_ok(in_threads(size, [&](int rank) {
    auto c = connect_tcp(tcp_options(port, rank, size, 60000));
    ASSERT_EQ(c->rank(), rank);
    ASSERT_EQ(c->size(), size);
    ASSERT_STREQ(c->name(), "tcp");
    unsigned salt = 0;
    // 65520 and 65521: a message with its 16 byte header that just fits a frame of 64 KiB, and one that does not.
    for (const std::size_t bytes : {0, 1, 8, 4097, 65520, 65521}) check_allgather(*c, bytes, ++salt);
    c->barrier();
    const auto squares = allgather_value(*c, rank * rank);
    for (int r = 0; r < size; ++r) EXPECT_EQ(squares[static_cast<std::size_t>(r)], r * r);
    // The same from all, which the root sends once, and from all but one.
    for (const int odd : {-1, 0, size - 1}) {
      const auto all = allgather_value(*c, std::uint64_t{rank == odd ? 1u : 2u});
      for (int r = 0; r < size; ++r) EXPECT_EQ(all[static_cast<std::size_t>(r)], r == odd ? 1u : 2u);
    }
  }));
}

// Cells all alike, of sizes of their own, none, all but a few empty, and larger than a frame.
TEST_P(world_of, gives_each_rank_its_own_cell) {
  const int size = GetParam(), port = free_port();
  expect_all_ok(in_threads(size, [&](int rank) {
    auto c = connect_tcp(tcp_options(port, rank, size, 60000));
    check_all_to_all(*c, [](int, int) { return std::size_t{32}; });
    check_all_to_all(*c, [](int from, int to) { return static_cast<std::size_t>(from * 5 + to * 3); });
    check_all_to_all(*c, [](int, int) { return std::size_t{0}; });
    check_all_to_all(
        *c, [](int from, int to) { return static_cast<std::size_t>(from == 0 && to == 0 ? 0 : (from + to) % 7 == 3); });
    if (size <= 8)
      check_all_to_all(*c,
                       [size](int from, int to) { return std::size_t{from == size - 1 || to == 0 ? 70'001u : 1u}; });
    check_allgather(*c, 100, 1);
  }));
}
INSTANTIATE_TEST_SUITE_P(tcp, world_of, testing::Values(1, 2, 3, 8, 64));

TEST(bootstrap_tcp, moves_messages_of_many_frames) {
  const int port = free_port();
  expect_all_ok(in_threads(3, [&](int rank) {
    auto c = connect_tcp(tcp_options(port, rank, 3, 60000));
    check_allgather(*c, 5'000'001, 9);
  }));
}

// More than the root keeps at a time, both for one rank and for all.
TEST(bootstrap_tcp, forwards_more_cells_than_the_root_keeps) {
  const int port = free_port();
  expect_all_ok(in_threads(3, [&](int rank) {
    auto c = connect_tcp(tcp_options(port, rank, 3, 60000));
    check_all_to_all(*c, [](int from, int to) {
      return std::size_t{to == 1 ? 6'000'000u : 2'000'000u} + static_cast<std::size_t>(from);
    });
  }));
}

// Equal parts go to each rank once: 8 and 32 ranks, each of which sends 256 bytes and gets 256.
TEST(bootstrap_tcp, counts_bytes_of_an_exchange) {
  for (const int size : {8, 32}) {
    const int port = free_port();
    expect_all_ok(in_threads(size, [&](int rank) {
      const auto c = connect_tcp(tcp_options(port, rank, size, 60000));
      const std::array<std::byte, 256> ballot{};
      const auto cost_of = [&](auto&& exchange) {
        const std::uint64_t before = c->bytes_moved();
        exchange();
        return c->bytes_moved() - before;
      };
      // A frame has 21 bytes around its payload, a message 16 in front of its data, and cells 4 for the size of each.
      const auto n = static_cast<std::uint64_t>(size), others = rank == 0 ? n - 1 : 1;
      EXPECT_EQ(cost_of([&] { c->allgather(ballot); }), others * 2 * (21 + 16 + 256));
      EXPECT_EQ(cost_of([&] { allgather_value(*c, rank); }), others * (2 * (21 + 16) + 4 + 4 * n));
      EXPECT_EQ(cost_of([&] { check_all_to_all(*c, [](int, int) { return std::size_t{32}; }); }),
                others * 2 * (21 + 16 + n * (4 + 32)));
    }));
  }
}

TEST(bootstrap_tcp, waits_for_a_root_that_comes_later) {
  const int port = free_port();
  expect_all_ok(in_threads(2, [&](int rank) {
    if (rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(400));
    check_allgather(*connect_tcp(tcp_options(port, rank, 2)), 10, 1);
  }));
}

TEST(bootstrap_tcp, connects_over_ipv6_and_by_name) {
  const int six = free_port(true), named = free_port();
  expect_all_ok(in_threads(2, [&](int rank) {
    auto o = tcp_options(six, rank, 2);
    o.tcp_root = "[::1]:" + std::to_string(six);
    check_allgather(*connect_tcp(o), 10, 1);
    o.tcp_root = "localhost:" + std::to_string(named);
    check_allgather(*connect_tcp(o), 10, 2);
  }));
}

TEST(bootstrap_tcp, forms_worlds_one_after_another_and_at_once_at_one_port) {
  const int port = free_port();
  expect_all_ok(in_threads(4, [&](int rank) {
    auto first = connect_tcp(tcp_options(port, rank, 4));
    for (unsigned i = 0; i < 5; ++i) check_allgather(*connect_tcp(tcp_options(port, rank, 4)), 100, i);
    auto second = connect_tcp(tcp_options(port, rank, 4));
    check_allgather(*second, 100, 7);
    check_allgather(*first, 100, 8);
  }));
}

TEST(bootstrap_tcp, names_the_rank_that_does_not_come) {
  const int port = free_port();
  const auto all = in_threads(2, [&](int i) { connect_tcp(tcp_options(port, i, 3, 2000)); });  // rank 2 is missing
  // On a loaded machine; each of two deadlines would be 4.
  for (const auto& o : all) expect_outcome(o, XIO_ERR_TIMEOUT, {"1 missing (rank 2)"}, 3.6);
}

// Rank 1 comes late to each of three exchanges, and in time to any of them alone.
TEST(bootstrap_tcp, a_call_of_several_exchanges_has_one_deadline) {
  const int port = free_port();
  const auto all = in_threads(2, [&](int rank) {
    const auto c = connect_tcp(tcp_options(port, rank, 2, 2000));
    const one_call whole(*c, 2000);
    for (unsigned i = 0; i < 3; ++i) {
      if (rank == 1) std::this_thread::sleep_for(std::chrono::milliseconds(1200));
      const one_call within(*c, 2000);
      check_allgather(*c, 100, i);
    }
  });
  for (const auto& o : all) expect_outcome(o, XIO_ERR_TIMEOUT, {"1 of 2 ranks did not take part in exchange 2"});
  EXPECT_LT(all[0].seconds, 3.6 + 1.4);  // three deadlines would be 6
}

TEST(bootstrap_tcp, gives_up_on_a_root_that_never_comes) {
  const auto o = outcome_of([] { connect_tcp(tcp_options(free_port(), 1, 2, 300)); });
  expect_outcome(o, XIO_ERR_TIMEOUT, {"Connection refused"}, 3.0);
  EXPECT_GE(o.seconds, 0.29);
}

TEST(bootstrap_tcp, gives_up_on_a_root_that_listens_and_says_nothing) {
  const int port = free_port();
  const auto listeners = listen_on(port);
  expect_outcome(outcome_of([&] { connect_tcp(tcp_options(port, 1, 2, 300)); }), XIO_ERR_TIMEOUT,
                 {"was silent for 300 ms"}, 3.0);
}

TEST(bootstrap_tcp, tells_every_rank_of_a_wrong_world_size) {
  const int port = free_port();
  const auto all = in_threads(3, [&](int rank) { connect_tcp(tcp_options(port, rank, rank == 2 ? 5 : 3, 1000)); });
  for (const auto& o : all) {
    // Rank 1 may still have been on its way when the world was given up, and then finds nobody.
    if (o.status == XIO_ERR_TIMEOUT && &o == &all[1]) continue;
    expect_outcome(o, XIO_ERR_CONFIG, {"rank 2 (127.0.0.1:", "has 5 ranks, rank 0 says 3", "XIO_TCP_SIZE"}, 3.0);
  }
}

TEST(bootstrap_tcp, tells_every_rank_of_a_rank_that_is_there_twice) {
  const int port = free_port();
  const int ranks[] = {0, 1, 1};
  const auto all = in_threads(3, [&](int i) { connect_tcp(tcp_options(port, ranks[i], 3, 1000)); });
  for (const auto& o : all) expect_outcome(o, XIO_ERR_CONFIG, {"rank 1 is there twice"}, 3.0);
}

TEST(bootstrap_tcp, refuses_a_second_rank_0) {
  const int port = free_port();
  const auto listeners = listen_on(port);
  expect_outcome(outcome_of([&] { connect_tcp(tcp_options(port, 0, 2)); }), XIO_ERR_IO, {"Address already in use"});
}

TEST(bootstrap_tcp, names_a_rank_with_another_key_on_both_sides) {
  const int port = free_port();
  const auto all = in_threads(3, [&](int rank) {
    auto o = tcp_options(port, rank, 3, 3000);
    if (rank == 2) o.tcp_key = k_other_key;
    connect_tcp(o);
  });
  for (const auto& o : all) expect_outcome(o, XIO_ERR_AUTH, {"rank 2", "XIO_TCP_KEY"}, 5);
  EXPECT_LT(all[2].seconds, 2) << "the one with the wrong key need not wait";
}

class death_of : public testing::TestWithParam<int> {};

TEST_P(death_of, a_rank_is_named_on_every_other_rank) {
  const int port = free_port(), dead = GetParam();
  std::atomic<int> formed{0};
  const auto all = in_threads(4, [&](int rank) {
    auto c = connect_tcp(tcp_options(port, rank, 4));
    c->barrier();
    if (rank == dead) return;
    ++formed;
    const auto first = outcome_of([&] { c->barrier(); });
    const auto again = outcome_of([&] { c->barrier(); });
    EXPECT_EQ(again.status, first.status) << again.sentence;
    EXPECT_LT(again.seconds, 1.0) << "a broken channel fails at once";
    throw xio::error(first.status, first.sentence);
  });
  EXPECT_EQ(formed, 3);
  for (int r = 0; r < 4; ++r) {
    const auto& o = all[static_cast<std::size_t>(r)];
    EXPECT_EQ(o.status, r == dead ? XIO_OK : XIO_ERR_PEER) << o.sentence;
    EXPECT_EQ(o.sentence.find("rank " + std::to_string(dead)) != std::string::npos, r != dead) << o.sentence;
    EXPECT_LT(o.seconds, 3.0);
  }
}
INSTANTIATE_TEST_SUITE_P(tcp, death_of, testing::Values(0, 1, 3));

// Rank 2 of 3 holds the key, sends one message of an all-to-all that it made itself, and then closes its connection or
// stays.
struct made_message {
  const char* what;
  exchange_head head;
  std::vector<std::uint32_t> sizes;
  std::size_t data;
  bool stays;
  xio_status_t status;
  const char* sentence;
};

void send_made(const made_message& m, int port) {
  xio::crypto::start();
  sealed_link root = join_world(tcp_settings::from(tcp_options(port, 2, 3)));
  std::vector<std::byte> data(m.sizes.size() * 4 + m.data);
  for (std::size_t i = 0; i < m.sizes.size(); ++i) store_le32(data.data() + i * 4, m.sizes[i]);
  root.queue(m.head.kind, make_message(m.head, data));
  while (root.sending()) root.send_some();
  if (m.stays) std::this_thread::sleep_for(std::chrono::milliseconds(2500));
}

class made_cells : public testing::TestWithParam<made_message> {};

TEST_P(made_cells, end_the_exchange_and_name_their_rank) {
  const made_message& m = GetParam();
  const int port = free_port();
  const auto all = in_threads(3, [&](int rank) {
    if (rank == 2) return send_made(m, port);
    auto c = connect_tcp(tcp_options(port, rank, 3, m.stays ? 1000 : 10000));
    check_all_to_all(*c, [](int, int) { return std::size_t{8}; });
  });
  SCOPED_TRACE(m.what);
  for (const std::size_t r : {0, 1}) expect_outcome(all[r], m.status, {"rank 2 (127.0.0.1:", m.sentence}, 3.0);
}

constexpr auto k_cells = frame_kind::cells;
constexpr auto k_none = static_cast<frame_kind>(9);
constexpr const char* k_silent = "did not take part in exchange 1 within 1000 ms";
const made_message k_made[] = {
    {"one cell too few", {k_cells, 1, 2}, {8, 8}, 16, true, XIO_ERR_ARG, "gave 2 cells to exchange 1, this rank 3"},
    {"one too many", {k_cells, 1, 4}, {8, 8, 8, 8}, 32, true, XIO_ERR_ARG, "gave 4 cells to exchange 1, this rank 3"},
    {"another exchange", {k_cells, 2, 3}, {8, 8, 8}, 24, true, XIO_ERR_STATE, "is at exchange 2, this rank at 1"},
    {"beyond the most", {k_cells, 1, 3}, {8, ~0u, ~0u}, 8, true, XIO_ERR_PEER, "announces cells of 8589934598 bytes"},
    {"more than it announced", {k_cells, 1, 3}, {8, 8, 8}, 25, true, XIO_ERR_PEER, "malformed"},
    {"the root's kind", {frame_kind::same, 1, 3}, {8, 8, 8}, 24, true, XIO_ERR_STATE, "another kind of exchange"},
    {"a kind that is none", {k_none, 1, 3}, {8, 8, 8}, 24, true, XIO_ERR_PEER, "malformed"},
    {"dies behind the sizes", {k_cells, 1, 3}, {8, 8, 8}, 0, false, XIO_ERR_PEER, "is gone"},
    {"dies within a cell", {k_cells, 1, 3}, {8, 8, 8}, 13, false, XIO_ERR_PEER, "is gone"},
    {"dies within the sizes", {k_cells, 1, 3}, {8}, 0, false, XIO_ERR_PEER, "is gone"},
    {"silent behind the sizes", {k_cells, 1, 3}, {8, 8, 8}, 0, true, XIO_ERR_TIMEOUT, k_silent},
    {"silent within a cell", {k_cells, 1, 3}, {8, 8, 8}, 23, true, XIO_ERR_TIMEOUT, k_silent}};
INSTANTIATE_TEST_SUITE_P(tcp, made_cells, testing::ValuesIn(k_made));

TEST(bootstrap_tcp, names_a_rank_that_does_not_call_the_collective) {
  const int port = free_port();
  std::atomic<int> done{0};
  const auto all = in_threads(3, [&](int rank) {
    auto c = connect_tcp(tcp_options(port, rank, 3, 500));
    c->barrier();
    if (rank == 1) {  // alive, but silent
      while (done < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      return;
    }
    const auto o = outcome_of([&] { c->barrier(); });
    ++done;
    throw xio::error(o.status, o.sentence);
  });
  for (const std::size_t r : {0, 2}) expect_outcome(all[r], XIO_ERR_TIMEOUT, {"rank 1 (127.0.0.1:"});
}

TEST(bootstrap_tcp, names_a_rank_that_is_at_another_kind_of_exchange) {
  const int port = free_port();
  const auto all = in_threads(3, [&](int rank) {
    auto c = connect_tcp(tcp_options(port, rank, 3));
    if (rank == 2)
      c->barrier();
    else
      check_all_to_all(*c, [](int, int) { return std::size_t{1}; });
  });
  for (const auto& o : all)
    expect_outcome(o, XIO_ERR_STATE, {"rank 2 (127.0.0.1:", "is at another kind of exchange 1"});
}

TEST(bootstrap_tcp, names_a_rank_that_gives_another_number_of_bytes) {
  const int port = free_port();
  const auto all = in_threads(3, [&](int rank) {
    auto c = connect_tcp(tcp_options(port, rank, 3));
    std::vector<std::byte> mine(rank == 2 ? 9 : 8);
    c->allgather(mine);
  });
  for (const auto& o : all) expect_outcome(o, XIO_ERR_ARG, {"gave 9 bytes to exchange 1, this rank 8"});
}

TEST(bootstrap_tcp, refuses_an_exchange_beyond_its_bound_and_stays_usable) {
  const int port = free_port();
  expect_all_ok(in_threads(2, [&](int rank) {
    auto c = connect_tcp(tcp_options(port, rank, 2));
    std::vector<std::byte> big((std::size_t{128} << 20) + 1);
    EXPECT_EQ(outcome_of([&] { c->allgather(big); }).status, XIO_ERR_ARG);
    EXPECT_EQ(outcome_of([&] { c->all_to_all(cells::same({}, 3)); }).status, XIO_ERR_ARG);
    EXPECT_EQ(outcome_of([&] { c->all_to_all(cells::same(big, 2)); }).status, XIO_ERR_ARG);
    check_allgather(*c, 10, 1);
  }));
}

TEST(bootstrap_tcp, names_the_setting_that_is_wrong) {
  const bad_setting all[] = {
      {"no root", [](auto& o) { o.tcp_root = ""; }, "XIO_TCP_ROOT is not set"},
      {"no port", [](auto& o) { o.tcp_root = "host"; }, "XIO_TCP_ROOT='host' has no port"},
      {"port 0", [](auto& o) { o.tcp_root = "host:0"; }, "has no port between 1 and 65535"},
      {"port too large", [](auto& o) { o.tcp_root = "host:65536"; }, "has no port between 1 and 65535"},
      {"bare v6", [](auto& o) { o.tcp_root = "::1:4711"; }, "IPv6 address without brackets"},
      {"no host", [](auto& o) { o.tcp_root = ":4711"; }, "has no host"},
      {"unknown host", [](auto& o) { o.tcp_root = "no-such-host.invalid:4711"; }, "'no-such-host.invalid'"},
      {"no rank", [](auto& o) { o.tcp_rank = ""; }, "XIO_TCP_RANK is not set"},
      {"rank = size", [](auto& o) { o.tcp_rank = "2"; }, "XIO_TCP_RANK='2' is not a whole number in 0..1"},
      {"rank < 0", [](auto& o) { o.tcp_rank = "-1"; }, "XIO_TCP_RANK='-1'"},
      {"rank no number", [](auto& o) { o.tcp_rank = "1x"; }, "XIO_TCP_RANK='1x'"},
      {"no size", [](auto& o) { o.tcp_size = ""; }, "XIO_TCP_SIZE is not set"},
      {"size 0", [](auto& o) { o.tcp_size = "0"; }, "XIO_TCP_SIZE='0'"},
      {"size above", [](auto& o) { o.tcp_size = "65537"; }, "XIO_TCP_SIZE='65537' is not a whole number in 1..65536"},
      {"size most", [](auto& o) { o.tcp_size = "65536", o.tcp_rank = "65536"; },
       "XIO_TCP_RANK='65536' is not a whole number in 0..65535"},
      {"size huge", [](auto& o) { o.tcp_size = "99999999999"; }, "XIO_TCP_SIZE='99999999999'"},
      {"no key", [](auto& o) { o.tcp_key = ""; }, "has no key"},
      {"short key", [](auto& o) { o.tcp_key = "123456789012345"; }, "has 15 characters, fewer than 16"},
      {"two keys", [](auto& o) { o.tcp_key_file = "/dev/null"; }, "are both set"},
  };
  for (const auto& bad : all) {
    auto o = tcp_options(4711, 1, 2, 300);
    bad.spoil(o);
    const auto out = outcome_of([&] { connect_tcp(o); });
    const bool unresolved = std::string(bad.what) == "unknown host" && out.status == XIO_ERR_TIMEOUT;
    EXPECT_TRUE(out.status == XIO_ERR_CONFIG || unresolved) << bad.what << ": " << out.sentence;
    EXPECT_NE(out.sentence.find(bad.expected), std::string::npos) << bad.what << ": " << out.sentence;
    EXPECT_LT(out.seconds, 2.0) << bad.what;
  }
}

}  // namespace
