// SPDX-License-Identifier: MIT
#include "transport/rdma/connector.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/peer_word.hpp"
#include "xio/device/impl/dormant.hpp"

namespace xio::rdma {

namespace {

// Links are looked at so often while a thread is awake, and more often while one is in use; their descriptors wake one
// that sleeps.
constexpr std::chrono::milliseconds k_between{1};
constexpr std::chrono::microseconds k_in_use{100};
// A link by which nothing came or went between two sweeps is given up: idle ones would cost a descriptor each.
constexpr std::chrono::milliseconds k_sweep{1000};
// Words of host memory that kernels store to. The bell has a line of its own.
constexpr std::size_t k_first_ask = 32;

// A kernel that asks waits as long as any op: it is to get the sentence's status, and not its own deadline's.
std::uint64_t patience_of(std::uint64_t timeout_ms) { return timeout_ms - timeout_ms / 4; }

}  // namespace

connector::connector(progress::machine& m, int rank, int size, std::shared_ptr<const bootstrap::world_keys> keys,
                     const rdma_options& o)
    : machine_(m),
      rank_(rank),
      size_(size),
      network_(o),
      patience_ms_(patience_of(o.timeout_ms)),
      links_({rank, std::move(keys), {}, o.tcp_trust_network != 0},
             std::vector<bootstrap::member_place>(static_cast<std::size_t>(size))) {
  auto listening = bootstrap::listen_for_members(network_);
  links_.listen(std::move(listening.listeners));
  place_ = listening.id;
}

connector::~connector() {
  if (runs_) machine_.remove(this);
}

void connector::begin(place_of_pe place_of) {
  place_of_ = std::move(place_of);
  machine_.add(this);
  runs_ = true;
}

bool connector::is_asking(std::uint64_t set, int pe) const {
  return std::ranges::any_of(asks_, [&](const asking& a) { return a.set == set && a.pe == pe; });
}

// A kernel's store may come late, so that the word of a connected PE says that one is wanted: the host repeats itself.
bool connector::take_asks() {
  bool any = false;
  for (const auto& [number, set] : sets_) {
    if (__atomic_load_n(set->bell(), __ATOMIC_RELAXED) == 0) continue;
    any = true;
    __atomic_exchange_n(set->bell(), 0u, __ATOMIC_ACQ_REL);
    for (int pe = 0; pe < size_; ++pe) {
      if (__atomic_load_n(set->ask(pe), __ATOMIC_ACQUIRE) != dev::k_ask_wanted || is_asking(number, pe)) continue;
      if (set->at(pe) == lazy_set::state::connected)
        end(number, pe, XIO_OK, "");
      else if (set->at(pe) == lazy_set::state::excluded)
        end(number, pe, XIO_ERR_PEER, "it was excluded");
      else
        begin_ask(*set, pe);
    }
  }
  return any;
}

// Collectives and loops over all PEs ask for one after the other, each a round trip: behind three in a row those that
// follow are asked for ahead, twice as many each time.
void connector::begin_ask(lazy_set& set, int pe) {
  constexpr int k_row = 3, k_ahead_most = 128;
  const auto begin = [&](int to) {
    try {
      links_.learn(to, {bootstrap::addresses_in(place_of_(to), network_), 0});
    } catch (...) {
      const xio_status_t status = status_of_current_exception();
      return end(set.number_, to, status, last_error());
    }
    asks_.push_back({set.number_, to, bootstrap::deadline::in(patience_ms_)});
  };
  const auto after = [&](int to) {
    do to = (to + 1) % size_;
    while (to != pe && (to == rank_ || !set.is_wanted(to)));
    return to;
  };
  begin(pe);
  auto& row = set.row_;
  row = pe == row.next ? lazy_set::asked_row{0, row.length + 1, row.ahead} : lazy_set::asked_row{0, 1, 0};
  if (row.length >= k_row) row.ahead = std::min(std::max(2 * row.ahead, k_row - 1), k_ahead_most);
  row.next = after(pe);
  for (int i = 0; i < row.ahead; ++i, row.next = after(row.next))
    if (set.at(row.next) <= lazy_set::state::joined && !is_asking(set.number_, row.next)) begin(row.next);
}

// The end of an ask: its kernels go on. A PE that was excluded meanwhile stays so.
void connector::end(std::uint64_t number, int pe, xio_status_t status, const std::string& why) {
  std::erase_if(asks_, [&](const asking& a) { return a.set == number && a.pe == pe; });
  const auto found = sets_.find(number);
  if (found == sets_.end()) return;
  lazy_set& set = *found->second;
  if (set.at(pe) == lazy_set::state::excluded && status == XIO_OK) status = XIO_ERR_PEER;
  if (status == XIO_OK && set.at(pe) != lazy_set::state::connected) {
    set.at(pe) = lazy_set::state::connected;
    try {
      if (set.publish_) set.publish_(pe);
    } catch (...) {
      set.at(pe) = lazy_set::state::joined;
      throw;
    }
    set.silences_.erase(pe);
    log::debug("queue pairs of set {} to PE {} are connected", number, pe);
  }
  // Nobody misses one that was asked for ahead.
  if (status != XIO_OK && __atomic_load_n(set.ask(pe), __ATOMIC_RELAXED) == dev::k_ask_wanted)
    log::warn("no queue pair to PE {}: {}", pe, why);
  __atomic_store_n(set.ask(pe), status == XIO_OK ? dev::k_ask_connected : static_cast<std::uint32_t>(status),
                   __ATOMIC_RELEASE);
}

void connector::step(asking& a) {
  lazy_set& set = *sets_.at(a.set);
  if (a.pe == rank_) {
    set.how_.connect(rank_, set.how_.make(rank_));
    return end(a.set, a.pe, XIO_OK, "");
  }
  links_.open(a.pe);
  if (links_.is_refused(a.pe))
    fail(XIO_ERR_PEER, "{} does not listen any more: its process has ended", links_.where(a.pe));
  if (a.until.passed())
    fail(XIO_ERR_PEER, "{} has not replied in {} ms; see XIO_TIMEOUT_MS and, if no PE reaches that address, {}",
         links_.where(a.pe), patience_ms_, "XIO_TCP_INTERFACE");
  if (!links_.has(a.pe) || a.sent_on == links_.count(a.pe)) return;
  a.sent_on = links_.count(a.pe);
  links_.send(a.pe, bootstrap::frame_kind::pair, encode_pair({false, a.set, XIO_OK, "", set.how_.make(a.pe)}));
}

void connector::reply(int pe, const pair_message& ask) {
  pair_message mine{true, ask.set, XIO_OK, "", {}};
  try {
    const auto found = sets_.find(ask.set);
    if (found == sets_.end())
      fail(XIO_ERR_STATE, "PE {} has destroyed the ctx that these queue pairs belong to", rank_);
    lazy_set& set = *found->second;
    set.silences_.erase(pe);
    if (set.at(pe) == lazy_set::state::excluded) fail(XIO_ERR_STATE, "PE {} has excluded PE {}", rank_, pe);
    if (!set.is_wanted(pe)) fail(XIO_ERR_STATE, "PE {} reaches PE {} without queue pairs", rank_, pe);
    mine.queues = set.how_.make(pe);
    if (set.at(pe) == lazy_set::state::none) {
      set.how_.connect(pe, ask.queues);
      set.at(pe) = lazy_set::state::joined;
    }
  } catch (...) {
    mine = {true, ask.set, status_of_current_exception(), last_error(), {}};
  }
  links_.send(pe, bootstrap::frame_kind::pair, encode_pair(mine));
}

void connector::hear(int pe, const bootstrap::frame& f) {
  if (f.kind != bootstrap::frame_kind::pair) return;
  const pair_message said = decode_pair(f.payload, pe);
  if (!said.is_reply) return reply(pe, said);
  if (!is_asking(said.set, pe)) return;
  if (said.status != XIO_OK) return end(said.set, pe, XIO_ERR_PEER, said.why);
  lazy_set& set = *sets_.at(said.set);
  try {
    if (set.at(pe) == lazy_set::state::none) set.how_.connect(pe, said.queues);
    end(said.set, pe, XIO_OK, "");
  } catch (...) {
    const xio_status_t status = status_of_current_exception();
    end(said.set, pe, status, last_error());
  }
}

bool connector::poll() {
  const std::lock_guard hold(lock_);
  bool worked = take_asks();
  const auto now = clock::now();
  if (!worked && now < next_look_) return false;
  next_look_ = now + (asks_.empty() && links_.is_idle() ? k_between : k_in_use);
  for (const asking& a : std::vector<asking>(asks_)) {
    const auto it = std::ranges::find_if(asks_, [&](const asking& b) { return a.set == b.set && a.pe == b.pe; });
    try {
      if (it != asks_.end()) step(*it);
    } catch (...) {
      const xio_status_t status = status_of_current_exception();
      if (status == XIO_ERR_PEER) sets_.at(a.set)->silences_[a.pe] = last_error();
      end(a.set, a.pe, status, last_error());
    }
  }
  for (const auto& [pe, f] : links_.poll(0)) {
    worked = true;
    try {
      hear(pe, f);
    } catch (const std::exception& e) {
      log::warn("a message about queue pairs is dropped: {}", e.what());
    }
  }
  if (now >= next_sweep_ && asks_.empty()) {
    links_.part_unused();
    next_sweep_ = now + k_sweep;
  }
  return worked;
}

bool connector::at_rest(sleeper::descriptors& found) {
  const std::lock_guard hold(lock_);
  next_look_ = {};
  links_.add_to(found);
  return asks_.empty() && std::ranges::all_of(sets_, [](const auto& one) {
           return __atomic_load_n(one.second->bell(), __ATOMIC_ACQUIRE) == 0;
         });
}

lazy_set::lazy_set(connector& by, std::uint64_t number, maker how)
    : by_(by),
      how_(std::move(how)),
      number_(number),
      states_(static_cast<std::size_t>(by.size_)),
      words_((k_first_ask + states_.size()) * sizeof(std::uint32_t), gpu::place::shared),
      ring_(sizeof(dev::ring_state), gpu::place::device, 256, gpu::purpose::tables) {
  const std::lock_guard hold(by_.lock_);
  by_.sets_[number_] = this;
}

void lazy_set::stop() noexcept {
  if (std::exchange(stopped_, true)) return;
  const std::lock_guard hold(by_.lock_);
  std::erase_if(by_.asks_, [&](const connector::asking& a) { return a.set == number_; });
  by_.sets_.erase(number_);
}

std::uint32_t* lazy_set::ask(int pe) const {
  return words_.as<std::uint32_t>() + k_first_ask + static_cast<std::size_t>(pe);
}

void lazy_set::when_connected(std::function<void(int pe)> publish) {
  if (stopped_) return;
  const std::lock_guard hold(by_.lock_);
  publish_ = std::move(publish);
}

std::string lazy_set::silence_of(int pe) const {
  if (stopped_) return "";
  const std::lock_guard hold(by_.lock_);
  const auto found = silences_.find(pe);
  return found == silences_.end() ? "" : found->second;
}

void lazy_set::exclude(int pe) {
  if (stopped_) return;
  const std::lock_guard hold(by_.lock_);
  at(pe) = state::excluded;
  if (by_.is_asking(number_, pe)) by_.end(number_, pe, XIO_ERR_PEER, "it was excluded");
}

dev::ring_view lazy_set::dormant(int pe, dev::ring_view like) const {
  like.state = ring_.as<dev::ring_state>();
  like.depth = 0;
  like.id = 0;
  like.rdma.gather_bytes = 0;
  like.rdma.doorbell = reinterpret_cast<std::uint64_t*>(bell());
  like.rdma.dormant = {ask(pe), nullptr, nullptr};
  return like;
}

}  // namespace xio::rdma
