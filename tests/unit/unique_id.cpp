// SPDX-License-Identifier: MIT
// Worlds by unique id: PEs that have the 128 bytes find each other; one that comes twice, too late or with other
// numbers gets the reason in time, and so do the others.

#include "bootstrap/unique_id.hpp"
#include "base/fnv.hpp"
#include "bootstrap_rig.hpp"
#include "says.hpp"

using namespace rig;
using xio::bootstrap::connect_unique_id;

namespace {

xio_unique_id_t fresh_id() {
  xio_unique_id_t id;
  EXPECT_EQ(xio_get_unique_id(&id), XIO_OK) << xio_last_error();
  return id;
}

xio::options options_for(std::uint64_t timeout_ms) {
  auto o = xio::options::defaults();
  o.timeout_ms = timeout_ms;
  return o;
}

std::unique_ptr<xio::bootstrap::channel> join(const xio_unique_id_t& id, int rank, int size,
                                              std::uint64_t timeout_ms = 20000) {
  return connect_unique_id(options_for(timeout_ms), {id, rank, size});
}

xio_init_attr_t attr_for(const xio_unique_id_t* id, int rank, int size) {
  xio_init_attr_t attr = XIO_INIT_ATTR_INIT;
  attr.heap_bytes = 1 << 20;
  attr.unique_id = id;
  attr.unique_rank = rank;
  attr.unique_size = size;
  return attr;
}

class world_by_id : public testing::TestWithParam<int> {};

// The PEs are threads of one process. The first to come takes the sockets and is the root, of any rank.
TEST_P(world_by_id, gathers_every_ranks_bytes_in_order_with_any_rank_as_root) {
  const int size = GetParam();
  for (int root = 0; root < size; ++root) {
    const auto id = fresh_id();
    std::atomic<bool> root_is_there{false};
    const auto all = in_threads(size, [&](int rank) {
      while (rank != root && !root_is_there) std::this_thread::yield();
      if (rank == root)
        std::thread([&] {
          std::this_thread::sleep_for(std::chrono::milliseconds(20));
          root_is_there = true;
        }).detach();
      auto c = join(id, rank, size);
      ASSERT_EQ(c->rank(), rank);
      ASSERT_EQ(c->size(), size);
      EXPECT_TRUE(c->sealed());
      unsigned salt = 0;
      for (const std::size_t bytes : {0, 1, 4097, 65521}) check_allgather(*c, bytes, ++salt);
      check_all_to_all(*c, [](int from, int to) { return static_cast<std::size_t>(from * 5 + to * 3); });
      c->barrier();
      while (size > 1 && !root_is_there) std::this_thread::yield();
    });
    for (const auto& o : all) EXPECT_EQ(o.status, XIO_OK) << "root " << root << ": " << o.sentence;
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  }
}
INSTANTIATE_TEST_SUITE_P(unique_id, world_by_id, testing::Values(1, 2, 5));

TEST(unique_id, makes_worlds_of_the_c_interface_beside_other_words_of_the_environment) {
  setenv("XIO_TCP_ROOT", "127.0.0.1:1", 1);
  setenv("XIO_TCP_SIZE", "7", 1);
  const auto id = fresh_id();
  const auto all = in_threads(3, [&](int rank) {
    const auto attr = attr_for(&id, rank, 3);
    xio_world_t* w = nullptr;
    ASSERT_EQ(xio_init(&attr, &w), XIO_OK) << xio_last_error();
    EXPECT_PAIRS((xio_my_pe(w), rank), (xio_n_pes(w), 3), (xio_host_barrier(w), XIO_OK) << xio_last_error(),
                 (xio_finalize(w), XIO_OK) << xio_last_error());
  });
  unsetenv("XIO_TCP_ROOT");
  unsetenv("XIO_TCP_SIZE");
  expect_all_ok(all);
}

TEST(unique_id, is_another_each_time) {
  const auto a = fresh_id(), b = fresh_id();
  EXPECT_NE(std::memcmp(a.bytes + 8, b.bytes + 8, 32), 0) << "the key";
  EXPECT_NE(std::memcmp(a.bytes + 48, b.bytes + 48, 2), 0) << "the port";
}

void expect_gone(const outcome& o) {
  expect_outcome(o, XIO_ERR_PEER, {"nobody listens for this unique id"}, 5);  // the deadline is 20 s
}

TEST(unique_id, used_twice_is_refused_at_once_on_every_rank) {
  const auto id = fresh_id();
  expect_all_ok(in_threads(2, [&](int rank) { join(id, rank, 2); }));
  for (const auto& o : in_threads(2, [&](int rank) { join(id, rank, 2); })) expect_gone(o);
}

// The PE that made the id is there first, as rank 0 of the first size; the world cannot be whole, and all hear it.
TEST(unique_id, numbers_that_do_not_fit_are_named_on_every_rank) {
  const struct {
    int size, rank, other_size, pes;
    std::initializer_list<std::string_view> words;
  } rows[] = {{3, 1, 3, 3, {"rank 1 is there twice", "unique_rank"}},
              {3, 1, 4, 2, {"has 4 ranks, the PE that made the unique id says 3", "xio_init_attr_t.unique_size"}},
              {2, 2, 2, 2, {"is outside 1..1"}}};
  for (const auto& row : rows) {
    const auto id = fresh_id();
    const auto all = in_threads(row.pes, [&](int i) {
      if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      join(id, i == 0 ? 0 : row.rank, i == 0 ? row.size : row.other_size);
    });
    for (const auto& o : all) expect_outcome(o, XIO_ERR_CONFIG, row.words, 5);
  }
}

TEST(unique_id, one_rank_too_many_is_refused_and_the_world_lives) {
  const auto id = fresh_id();
  std::atomic<int> whole{0};
  const auto all = in_threads(3, [&](int i) {
    while (i == 2 && whole != 2) std::this_thread::yield();
    auto c = join(id, i == 2 ? 1 : i, 2);
    ++whole;
    for (int n = 0; n < 20; ++n) {
      check_allgather(*c, 100, static_cast<unsigned>(n));
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  EXPECT_EQ(all[0].status, XIO_OK) << all[0].sentence;
  EXPECT_EQ(all[1].status, XIO_OK) << all[1].sentence;
  expect_gone(all[2]);
}

TEST(unique_id, ends_the_wait_of_others_when_its_makers_own_rank_cannot_be) {
  const auto id = fresh_id();
  expect_outcome(outcome_of([&] { join(id, 2, 2); }), XIO_ERR_CONFIG, {"unique_rank 2 of unique_size 2"});
  expect_gone(outcome_of([&] { join(id, 1, 2); }));
}

// A process that makes an id, and lives until it is killed.
class maker {
 public:
  maker() {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    child_ = fork();
    if (child_ == 0) {
      const auto id = xio::bootstrap::make_unique_id({});
      (void)!write(ends[1], &id, sizeof id);
      for (;;) pause();
    }
    EXPECT_EQ(read(ends[0], &id_, sizeof id_), static_cast<ssize_t>(sizeof id_));
    close(ends[0]);
    close(ends[1]);
  }
  ~maker() { end(); }
  const xio_unique_id_t& id() const { return id_; }
  void end() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    child_ = -1;
  }

 private:
  pid_t child_ = -1;
  xio_unique_id_t id_{};
};

TEST(unique_id, whose_maker_does_not_come_is_waited_for_until_the_deadline) {
  maker m;
  const auto o = outcome_of([&] { join(m.id(), 1, 2, 400); });
  expect_outcome(o, XIO_ERR_TIMEOUT, {"the PE that made the unique id at 127.0.0.1:", "was silent for 400 ms"}, 5);
  EXPECT_GE(o.seconds, 0.35);
}

TEST(unique_id, whose_maker_has_died_is_not_waited_for) {
  maker m;
  m.end();
  expect_gone(outcome_of([&] { join(m.id(), 1, 2); }));
}

TEST(unique_id, that_was_changed_is_refused) {
  const auto good = fresh_id();
  const auto refused = [&](std::size_t at, const char* why) {
    auto id = good;
    id.bytes[at] ^= 1;
    SCOPED_TRACE(at);
    expect_outcome(outcome_of([&] { join(id, 0, 1); }), XIO_ERR_CONFIG, {why});
  };
  for (std::size_t at = 0; at < 7; ++at) refused(at, "holds no unique id");
  refused(7, "another version of XIO");
  for (std::size_t at = 8; at < 128; ++at) refused(at, "was changed on its way");
  EXPECT_EQ(join(good, 0, 1)->size(), 1);
}

// --- Addresses and ports -----------------------------------------------------------------------------

constexpr std::size_t k_place_at = 40, k_port_at = 48, k_counts_at = 51, k_addresses_at = 52, k_check_at = 120;

int port_of(const xio_unique_id_t& id) { return id.bytes[k_port_at] | id.bytes[k_port_at + 1] << 8; }

xio_unique_id_t id_by(const char* interfaces, const std::string& ports = "") {
  xio::network_options o;
  o.tcp_interface = interfaces;
  o.tcp_ports = ports;
  return xio::bootstrap::make_unique_id(o);
}

// As if another machine had made it, which has these addresses of IPv4.
xio_unique_id_t from_elsewhere(xio_unique_id_t id, const std::vector<std::array<unsigned char, 4>>& addresses,
                               unsigned char counts) {
  id.bytes[k_place_at] ^= 1;
  id.bytes[k_counts_at] = counts;
  for (std::size_t i = 0; i < addresses.size(); ++i)
    std::copy(addresses[i].begin(), addresses[i].end(), id.bytes + k_addresses_at + 4 * i);
  const std::uint64_t check = xio::fnv_1a(std::as_bytes(std::span(id.bytes).first(k_check_at)));
  std::memcpy(id.bytes + k_check_at, &check, sizeof check);
  return id;
}

TEST(unique_id, names_the_addresses_of_chosen_interfaces_alone) {
  const auto id = id_by("127.0.0.1");
  EXPECT_EQ(id.bytes[k_counts_at], 1);
  EXPECT_EQ(std::memcmp(id.bytes + k_addresses_at, "\x7f\0\0\1", 5), 0);
  expect_outcome(outcome_of([] { id_by("no-interface"); }), XIO_ERR_CONFIG,
                 {"XIO_TCP_INTERFACE='no-interface' leaves no interface"});
}

TEST(unique_id, of_another_machine_is_joined_by_its_addresses_but_not_by_those_of_this_one) {
  const auto id = fresh_id();
  const auto listed = from_elsewhere(id, {{127, 0, 0, 1}, {127, 0, 0, 2}}, 2);
  const auto all = in_threads(2, [&](int rank) { check_allgather(*join(rank == 0 ? id : listed, rank, 2), 9, 1); });
  expect_all_ok(all);
  const auto own = outcome_of([&] { join(from_elsewhere(fresh_id(), {{127, 0, 0, 1}}, 1), 1, 2); });
  EXPECT_EQ(own.status, XIO_ERR_NO_ROUTE) << own.sentence;
  expect_gone(outcome_of([&] { join(listed, 1, 2); }));
}

TEST(unique_id, with_more_addresses_than_it_has_room_for_is_refused) {
  for (const unsigned char counts : {0xff, 0x50, 0x1e, 0x4f}) {
    SCOPED_TRACE(int{counts});
    expect_outcome(outcome_of([&] { join(from_elsewhere(fresh_id(), {}, counts), 1, 2); }), XIO_ERR_CONFIG,
                   {"more addresses than it has room for"});
  }
}

TEST(unique_id, listens_at_the_ports_that_are_allowed_and_the_oldest_makes_room) {
  const int first = free_port();
  const auto ports = std::to_string(first) + "-" + std::to_string(std::min(first + 1, 65535));
  std::vector<xio_unique_id_t> made;
  for (int i = 0; i < 3; ++i) {
    made.push_back(id_by("", ports));
    EXPECT_GE(port_of(made.back()), first);
    EXPECT_LE(port_of(made.back()), first + 1);
  }
  expect_all_ok(in_threads(2, [&](int rank) { join(made[2], rank, 2); }));
  const auto wrong = outcome_of([] { id_by("", "7000-"); });
  EXPECT_EQ(wrong.status, XIO_ERR_CONFIG);
}

TEST(unique_id, that_no_world_takes_is_released_when_more_are_made) {
  const auto first = fresh_id();
  std::vector<xio_unique_id_t> more;
  for (int i = 0; i < 16; ++i) more.push_back(fresh_id());
  expect_gone(outcome_of([&] { join(first, 0, 1 + 1); }));
  expect_all_ok(in_threads(2, [&](int rank) { join(more.front(), rank, 2); }));
}

TEST(unique_id, and_its_numbers_are_checked_in_the_attributes) {
  const auto id = fresh_id();
  xio_world_t* w = nullptr;
  auto attr = attr_for(nullptr, 1, 2);
  EXPECT_REFUSED(xio_init(&attr, &w), XIO_ERR_CONFIG, "unique_id is null");
  attr = attr_for(&id, 0, 1);
  attr.bootstrap = "mpi";
  EXPECT_REFUSED(xio_init(&attr, &w), XIO_ERR_CONFIG, "a unique id is for \"tcp\"");
  EXPECT_REFUSED(xio_get_unique_id(nullptr), XIO_ERR_ARG, "id is null");
  for (const auto& [rank, size] : {std::pair{0, 0}, {-1, 2}, {2, 2}, {0, 65537}, {0, -1}}) {
    const auto other = fresh_id();
    attr = attr_for(&other, rank, size);
    EXPECT_REFUSED(xio_init(&attr, &w), XIO_ERR_CONFIG, "0 <= unique_rank < unique_size");
  }
  // A program that was compiled before the id was there.
  attr = attr_for(&id, 3, 9);
  attr.size = offsetof(xio_init_attr_t, unique_id);
  attr.bootstrap = "local";
  ASSERT_EQ(xio_init(&attr, &w), XIO_OK) << xio_last_error();
  EXPECT_EQ(xio_n_pes(w), 1);
  EXPECT_EQ(xio_finalize(w), XIO_OK);
}

TEST(unique_id, belongs_to_the_process_that_made_it) {
  const auto id = fresh_id();
  const int status = in_child([&] {
    xio_world_t* w = nullptr;
    const auto attr = attr_for(&id, 0, 1);
    return xio_init(&attr, &w) == XIO_ERR_STATE ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
