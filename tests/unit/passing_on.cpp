// SPDX-License-Identifier: MIT
// A PE that learns of data through third parties sees the data: barriers of many PEs, and signals and immediates that
// are passed on. PEs are threads that run the device code itself with the orders that it has on GPUs (traced/). Their
// events are then checked by the rules that C++, LLVM's model of AMD GPUs and PTX share: program order, and a release
// before a flag's store that is paired with an acquire after the load of that flag; nothing else orders. That this
// machine orders more does not matter.
#include <bitset>

#include "../gtest.hpp"
#include "ctx/ctx_value.hpp"
#include "xio/xio_device.hpp"

namespace {

using namespace xio::dev;
using traced::event;
using traced::kind;

constexpr u64 k_heap = 1 << 14;
constexpr std::size_t k_most_events = 16384;  // waits record every look at a word

// ---- worlds ---------------------------------------------------------------------------------------------------------

// One PE: a heap, and views that reach every other by loads and stores.
struct pe {
  std::vector<u64> heap = std::vector<u64>(k_heap / 8);
  std::vector<peer_view> peers;
  world_view w{};
  ctx_view c{};
  xio_ctx_t ctx{};
  std::vector<event> events;

  unsigned char* bytes() { return reinterpret_cast<unsigned char*>(heap.data()); }
  u64* word(u32 i) { return reinterpret_cast<u64*>(bytes() + sizeof(heap_head)) + i; }
  void mark() { events.push_back({kind::mark, order::relaxed, 0, 0, 0}); }
};

std::vector<pe> make_world(u32 n) {
  std::vector<pe> all(n);
  for (u32 me = 0; me < n; ++me) {
    pe& p = all[me];
    p.w.my_pe = me;
    p.w.n_pes = n;
    p.w.heap = p.bytes();
    p.w.heap_bytes = k_heap;
    p.w.ticks_per_ms = 1000000;
    p.w.timeout_ticks = 60000 * p.w.ticks_per_ms;
    for (u32 to = 0; to < n; ++to) {
      peer_view row{};
      row.direct = all[to].bytes();
      row.small = row.bulk = row.atomic = route::direct;
      p.peers.push_back(row);
    }
    p.c.world = &p.w;
    p.c.peers = p.peers.data();
    p.c.bulk_bytes = ~u64{0};
    p.c.pool_index = ~0u;
    p.c.inboxes = k_heap / 2;
    p.c.inbox_entries = 2;
    p.ctx = xio::ctx_value(&p.c, 1, p.c, p.w, p.peers.data());
  }
  return all;
}

// Each PE does work(me, its pe) in a thread, which marks what is to be ordered. True if all went well.
template <class Work>
bool run(std::vector<pe>& all, Work&& work) {
  std::vector<int> bad(all.size());
  xio::test::at_once<u32>(all.size(), [&](u32 me) {
    traced::events = &all[me].events;
    bad[me] = work(me, all[me]);
    traced::events = nullptr;
  });
  for (const int b : bad)
    if (b != XIO_OK) return false;
  return true;
}

// ---- the rules ------------------------------------------------------------------------------------------------------

bool releases(order o) { return o == order::release || o == order::acq_rel || o == order::seq_cst; }
bool acquires(order o) { return o == order::acquire || o == order::acq_rel || o == order::seq_cst; }
bool writes(const event& e) { return e.what == kind::store || e.what == kind::change; }

// The happens-before order over the events of all PEs, which are numbered as one.
class order_of {
 public:
  explicit order_of(const std::vector<std::vector<event>>& all) : first_(all.size()) {
    std::size_t count = 0;
    for (std::size_t p = 0; p < all.size(); ++p) {
      first_[p] = count;
      count += all[p].size();
    }
    EXPECT_LE(count, k_most_events);
    before_.resize(count);
    for (std::size_t p = 0; p < all.size(); ++p)
      for (std::size_t i = 1; i < all[p].size(); ++i) before_[first_[p] + i - 1].set(first_[p] + i);
    for (std::size_t p = 0; p < all.size(); ++p)
      for (std::size_t q = 0; q < all.size(); ++q)
        if (p != q) check_order(all[p], first_[p], all[q], first_[q]);
    for (std::size_t via = 0; via < count; ++via)
      for (auto& row : before_)
        if (row[via]) row |= before_[via];
  }

  bool holds(std::size_t p, std::size_t i, std::size_t q, std::size_t j) const {
    return before_[first_[p] + i][first_[q] + j];
  }

 private:
  // Flags that one PE wrote and another read: the releases before the one happen before the acquires after the other.
  void check_order(const std::vector<event>& from, std::size_t from_first, const std::vector<event>& to,
                   std::size_t to_first) {
    for (std::size_t s = 0; s < from.size(); ++s) {
      if (!writes(from[s])) continue;
      for (std::size_t l = 0; l < to.size(); ++l) {
        const bool reads = (to[l].what == kind::load && to[l].value == from[s].value) ||
                           (to[l].what == kind::change && to[l].before == from[s].value);
        if (!reads || to[l].at != from[s].at) continue;
        join(from, from_first, s, to, to_first, l);
      }
    }
  }
  void join(const std::vector<event>& from, std::size_t from_first, std::size_t s, const std::vector<event>& to,
            std::size_t to_first, std::size_t l) {
    for (std::size_t f = 0; f <= s; ++f) {
      if (f == s ? !releases(from[f].how) : from[f].what != kind::fence || !releases(from[f].how)) continue;
      for (std::size_t g = l; g < to.size(); ++g) {
        if (g == l ? !acquires(to[g].how) : to[g].what != kind::fence || !acquires(to[g].how)) continue;
        before_[from_first + f].set(to_first + g);
      }
    }
  }

  std::vector<std::size_t> first_;
  std::vector<std::bitset<k_most_events>> before_;
};

using pairs = std::set<std::pair<int, int>>;

std::vector<std::vector<event>> lists_of(const std::vector<pe>& all) {
  std::vector<std::vector<event>> lists;
  for (const pe& p : all) lists.push_back(p.events);
  return lists;
}

// Of PEs that each marked twice, before and behind: (a, b) where what a did before its first mark is not ordered before
// what b does behind its last.
pairs not_ordered(const std::vector<std::vector<event>>& lists) {
  const order_of rules(lists);
  pairs missing;
  for (std::size_t a = 0; a < lists.size(); ++a) {
    for (std::size_t b = 0; b < lists.size(); ++b) {
      if (a == b) continue;
      std::size_t from = 0, to = lists[b].size() - 1;
      while (lists[a][from].what != kind::mark) ++from;
      while (lists[b][to].what != kind::mark) --to;
      if (!rules.holds(a, from, b, to)) missing.emplace(static_cast<int>(a), static_cast<int>(b));
    }
  }
  return missing;
}

// ---- barriers -------------------------------------------------------------------------------------------------------

template <class Barrier>
std::vector<pe> after_barrier(u32 n, Barrier&& barrier) {
  std::vector<pe> all = make_world(n);
  EXPECT_TRUE(run(all, [&](u32, pe& p) {
    p.mark();
    const xio_status_t status = barrier(p.ctx);
    p.mark();
    return status;
  }));
  return all;
}

// The forms for a wave and a workgroup are collective calls of one thread's: alone in its group here.
TEST(passing_on, all_pairs_are_ordered_by_barriers_of_any_number_of_pes) {
  for (u32 n = 2; n <= 8; ++n) {
    SCOPED_TRACE(n);
    EXPECT_EQ(not_ordered(lists_of(after_barrier(n, [](const xio_ctx_t& c) { return xio_barrier_all(c); }))), pairs{});
    EXPECT_EQ(not_ordered(lists_of(after_barrier(n, [](const xio_ctx_t& c) { return xio_barrier_all_wave(c); }))),
              pairs{});
    EXPECT_EQ(not_ordered(lists_of(after_barrier(n, [](const xio_ctx_t& c) { return xio_barrier_all_wg(c); }))),
              pairs{});
  }
}

TEST(passing_on, all_pairs_are_ordered_by_syncs_of_any_number_of_pes) {
  for (u32 n = 2; n <= 8; ++n) {
    SCOPED_TRACE(n);
    EXPECT_EQ(not_ordered(lists_of(after_barrier(n, [](const xio_ctx_t& c) { return xio_sync_all(c); }))), pairs{});
    EXPECT_EQ(not_ordered(lists_of(after_barrier(n, [](const xio_ctx_t& c) { return xio_sync_all_wave(c); }))),
              pairs{});
    EXPECT_EQ(not_ordered(lists_of(after_barrier(n, [](const xio_ctx_t& c) { return xio_sync_all_wg(c); }))), pairs{});
  }
}

TEST(passing_on, all_pairs_are_ordered_among_more_than_a_ctx_knows_by_itself) {
  EXPECT_EQ(not_ordered(lists_of(after_barrier(13, [](const xio_ctx_t& c) { return xio_barrier_all(c); }))), pairs{});
}

// That the rules find what is missing: only the first release of each PE is left.
TEST(passing_on, barriers_with_one_release_do_not_order_four_pes) {
  const auto with_one_release = [](u32 n) {
    auto lists = lists_of(after_barrier(n, [](const xio_ctx_t& c) { return xio_sync_all(c); }));
    for (auto& list : lists) {
      bool first = true;
      for (event& e : list) {
        if (e.what != kind::fence || !releases(e.how)) continue;
        if (!first) e.how = order::relaxed;
        first = false;
      }
    }
    return not_ordered(lists);
  };
  EXPECT_PAIRS((with_one_release(2), pairs{}), (with_one_release(3), pairs{}),
               (with_one_release(4), (pairs{{0, 3}, {1, 0}, {2, 1}, {3, 2}})));
}

// And no fence is paid for that is not needed: what a PE pays for a barrier is one more release for each round that
// passes on.
TEST(passing_on, a_barrier_has_one_release_for_each_round_that_passes_on) {
  for (const auto& [n, most] : std::map<u32, int>{{2, 1}, {3, 1}, {4, 2}, {8, 3}}) {
    for (const auto& list : lists_of(after_barrier(n, [](const xio_ctx_t& c) { return xio_sync_all(c); }))) {
      int count = 0;
      for (const event& e : list) count += e.what == kind::fence && releases(e.how) ? 1 : 0;
      EXPECT_EQ(count, most) << n << " PEs";
    }
  }
}

// ---- what is relayed ------------------------------------------------------------------------------------------------

// PE 0 begins, 1 hands on, 2 looks. Whether what 0 did first comes before what 2 does last.
template <class Begin, class HandOn, class Look>
bool relayed(Begin&& begin, HandOn&& hand_on, Look&& look) {
  std::vector<pe> all = make_world(3);
  EXPECT_TRUE(run(all, [&](u32 me, pe& p) {
    p.mark();
    const int status = me == 0 ? begin(p) : me == 1 ? hand_on(p) : look(p);
    p.mark();
    return status;
  }));
  return not_ordered(lists_of(all)).count({0, 2}) == 0;
}

int wait_for_signal(pe& p) { return xio_signal_wait_until(p.ctx, p.word(0), XIO_CMP_EQ, 1); }
int signal_to(pe& p, int to) { return xio_signal_op(p.ctx, p.word(0), 1, XIO_SIGNAL_SET, to); }
int send_to(pe& p, int to) {
  const u64 value = 7;
  return xio_put_signal(p.ctx, p.word(1), &value, 8, p.word(0), 1, XIO_SIGNAL_SET, to);
}

TEST(passing_on, a_signal_behind_a_fence_passes_on_what_came_before) {
  const auto begin = [](pe& p) { return xio_quiet(p.ctx) == XIO_OK ? signal_to(p, 1) : 1; };
  const auto with_fence = [](pe& p) {
    return wait_for_signal(p) == XIO_OK && xio_fence(p.ctx) == XIO_OK ? signal_to(p, 2) : 1;
  };
  const auto without = [](pe& p) { return wait_for_signal(p) == XIO_OK ? signal_to(p, 2) : 1; };
  EXPECT_TRUE(relayed(begin, with_fence, wait_for_signal));
  // As docs/ordering.md says: a signal alone is not ordered with what its PE has seen.
  EXPECT_FALSE(relayed(begin, without, wait_for_signal));
}

TEST(passing_on, put_signal_passes_on_what_its_pe_has_seen) {
  EXPECT_TRUE(relayed([](pe& p) { return send_to(p, 1); },
                      [](pe& p) { return wait_for_signal(p) == XIO_OK ? send_to(p, 2) : 1; }, wait_for_signal));
}

TEST(passing_on, put_with_immediate_passes_on_what_its_pe_has_seen) {
  const auto send_immediate = [](pe& p, int to) { return xio_put_imm(p.ctx, nullptr, nullptr, 0, 5, to); };
  const auto take = [](pe& p, int from) {
    u32 immediate = 0;
    const int status = xio_imm_wait(p.ctx, &immediate, from);
    return immediate == 5 ? status : 1;
  };
  EXPECT_TRUE(relayed([&](pe& p) { return send_immediate(p, 1); },
                      [&](pe& p) { return take(p, 0) == XIO_OK ? send_immediate(p, 2) : 1; },
                      [&](pe& p) { return take(p, 1); }));
}

TEST(passing_on, a_value_behind_the_request_of_loads_and_stores_passes_on_what_came_before) {
  const auto look = [](pe& p) { return xio_wait_until(p.ctx, p.word(0), XIO_CMP_EQ, 1); };
  EXPECT_TRUE(relayed([](pe& p) { return xio_wait(p.ctx, 0) == XIO_OK ? xio_p(p.ctx, p.word(0), 1, 1) : 1; },
                      [&](pe& p) {
                        if (look(p) != XIO_OK || xio_wait(p.ctx, 0) != XIO_OK) return 1;
                        return static_cast<int>(xio_p(p.ctx, p.word(0), 1, 2));
                      },
                      look));
}

}  // namespace
