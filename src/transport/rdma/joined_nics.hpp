// SPDX-License-Identifier: MIT
// The NICs of one PE joined to those of the others: the keys of its memory, what PEs tell each other, and the steps in
// which queue pairs are made. The same for NICs that a host thread works off and for a vendor's own queues.
#pragma once
#include <algorithm>
#include <iterator>
#include <map>
#include <mutex>

#include "base/error.hpp"
#include "proxy/keys.hpp"
#include "transport/rdma/connector.hpp"
#include "transport/rdma/exchange.hpp"
#include "transport/rdma/rdma.hpp"

namespace xio::rdma {

// Nic: proxy::nic, or a fabric. They outlive this.
template <class Nic>
class joined_nics {
 public:
  static constexpr std::uint32_t k_local = proxy::local_read | proxy::local_write;
  static constexpr std::uint32_t k_remote = proxy::remote_read | proxy::remote_write | proxy::remote_atomic;

  explicit joined_nics(bootstrap::channel& c) : channel_(c) {}
  ~joined_nics() {
    for (const auto& [base, keys] : registered_) unregister_on(nics_.size(), keys);
    if (heap_is_registered_) unregister_on(nics_.size(), heap_keys_);
  }
  joined_nics& operator=(joined_nics&&) = delete;

  struct opened {
    std::vector<Nic*> nics;
    std::uint32_t max_message;
  };
  // Collective. Tells the others of this PE's heap and NICs, which open() makes, and learns of theirs. A PE
  // where open() fails still takes part, because the others wait in the exchange; they get its status.
  template <class Open>
  void exchange_with_peers(const setup& s, Open&& open) {
    identity mine{};
    const auto keys = s.lazy ? channel_.keys() : nullptr;
    try {
      if (s.lazy) {
        connector_ = std::make_unique<connector>(*s.machine, channel_.rank(), channel_.size(), keys, *s.opts);
        mine.listens = connector_->place();
      }
      opened made = open();
      nics_ = std::move(made.nics);
      heap_keys_ = register_on_all(s.heap, s.heap_bytes, k_local | k_remote);
      heap_is_registered_ = true;
      mine.heap_base = reinterpret_cast<std::uint64_t>(s.heap);
      mine.heap_bytes = s.heap_bytes;
      mine.nics = static_cast<std::uint32_t>(nics_.size());
      mine.max_message = made.max_message;
      std::ranges::copy(heap_keys_.rkey, mine.heap_rkey);
      for (std::size_t i = 0; i < nics_.size(); ++i) mine.nic_addresses[i] = nics_[i]->get_address();
    } catch (...) {
      exchange_identities(channel_, mine, status_of_current_exception());
      throw;
    }
    peers_ = exchange_identities(channel_, mine, XIO_OK);
    for (std::size_t i = 0; i < nics_.size(); ++i) {
      std::vector<device_address> addresses;
      for (const identity& p : peers_) addresses.push_back(p.nic_addresses[i]);
      nics_[i]->connect_peers(addresses);
    }
    if (connector_ != nullptr)
      connector_->begin(
          [this](int pe) -> const xio_unique_id_t& { return *peers_[static_cast<std::size_t>(pe)].listens; });
  }

  std::uint32_t count() const { return static_cast<std::uint32_t>(nics_.size()); }
  const memory_keys& heap_keys() const { return heap_keys_; }
  const std::vector<identity>& peers() const { return peers_; }

  memory_keys register_memory(void* base, std::size_t bytes) {
    const std::lock_guard hold(lock_);
    const memory_keys keys = register_on_all(base, bytes, k_local);
    registered_.emplace(base, keys);
    return keys;
  }
  // name: of the endpoint, for the sentence.
  void unregister_memory(void* base, const std::string& name) {
    const std::lock_guard hold(lock_);
    const auto found = registered_.find(base);
    if (found == registered_.end())
      fail(XIO_ERR_NOT_REGISTERED, "no memory at {} is registered with {}; give the address that was registered", base,
           name);
    unregister_on(nics_.size(), found->second);
    registered_.erase(found);
  }

  // Of one NIC, with all rights, for a trial.
  proxy::key_pair add_for_trial(std::uint32_t nic, void* base, std::size_t bytes) {
    return nics_[nic]->register_memory(base, bytes, k_local | k_remote);
  }
  void remove_from_trial(std::uint32_t nic, const proxy::key_pair& keys) { nics_[nic]->unregister_memory(keys); }

  // Collective, in one exchange. make(request) returns an object with these functions, place being pe * per_peer +
  // which:
  //   queue_address get_queue_address(place)    number 0: there is no such queue pair
  //   dev::ring_view& view(place)
  //   void connect(place, const queue_address& theirs)
  //   void make_to(pe)                          of a lazy request: unless they are there
  //   std::unique_ptr<lazy_set>& lazy()
  template <class Make>
  auto create_queues(const std::vector<queue_request>& requests, Make&& make) {
    const std::uint64_t call = calls_++;
    std::vector<decltype(make(requests[0]))> sets;
    std::vector<queue_address> mine;
    try {
      for (const queue_request& r : requests) sets.push_back(make(r));
      for (std::size_t i = 0; i < sets.size(); ++i)
        if (is_lazy(requests[i])) make_lazy(*sets[i], requests[i], call << 32 | i);
      for_each_queue(requests, [&](std::size_t set, std::size_t place, std::size_t) {
        mine.push_back(sets[set]->get_queue_address(place));
      });
    } catch (...) {
      // The others are on their way to the exchange: they must hear of it.
      exchange_queues(channel_, {}, queues_to_each(requests), status_of_current_exception());
      throw;
    }
    const auto theirs = exchange_queues(channel_, mine, queues_to_each(requests), XIO_OK);
    auto own = mine.begin();
    auto other = theirs.begin();
    for_each_queue(requests, [&](std::size_t set, std::size_t place, std::size_t pe) {
      const queue_address& to = *other++;
      if ((own++)->number != 0) join(*sets[set], place, pe, to);
    });
    return sets;
  }
  bool is_lazy(const queue_request& r) const { return r.lazy && connector_ != nullptr; }

 private:
  template <class Set>
  void join(Set& set, std::size_t place, std::size_t pe, const queue_address& to) const {
    dev::ring_view& v = set.view(place);
    v.rdma.remote_heap = peers_[pe].heap_base;
    v.rdma.remote_key = peers_[pe].heap_rkey[v.rdma.nic];
    set.connect(place, to);
  }
  // The set outlives its lazy_set, which its stop() ends.
  template <class Set>
  void make_lazy(Set& set, const queue_request& r, std::uint64_t number) {
    const std::uint32_t per_peer = r.per_peer;
    const auto make = [&set, per_peer](int pe) {
      set.make_to(pe);
      std::vector<queue_address> all;
      for (std::uint32_t which = 0; which < per_peer; ++which)
        all.push_back(set.get_queue_address(static_cast<std::size_t>(pe) * per_peer + which));
      return all;
    };
    // One that fails is tried again, without those before it.
    const auto connect = [this, &set, per_peer, joined = std::map<int, std::uint32_t>()](
                             int pe, const std::vector<queue_address>& theirs) mutable {
      if (theirs.size() != per_peer || std::ranges::any_of(theirs, [](const auto& q) { return q.number == 0; }))
        fail(XIO_ERR_PEER,
             "PE {} has {} queue pairs for this PE's {}; create contexts with the same attributes on "
             "every PE",
             pe, theirs.size(), per_peer);
      for (auto& which = joined[pe]; which < per_peer; ++which)
        join(set, static_cast<std::size_t>(pe) * per_peer + which, static_cast<std::size_t>(pe), theirs[which]);
    };
    set.lazy() = std::make_unique<lazy_set>(*connector_, number, lazy_set::maker{make, connect, r.peers});
  }
  std::uint32_t queues_to_each(const std::vector<queue_request>& requests) const {
    std::uint32_t all = 0;
    for (const queue_request& r : requests) all += is_lazy(r) ? 0 : r.per_peer;
    return all;
  }
  // body(set, place in it, pe): the order in which queue pairs are told to peers.
  template <class Body>
  void for_each_queue(const std::vector<queue_request>& requests, Body&& body) const {
    for (std::size_t pe = 0; pe < peers_.size(); ++pe)
      for (std::size_t set = 0; set < requests.size(); ++set)
        for (std::uint32_t which = 0; !is_lazy(requests[set]) && which < requests[set].per_peer; ++which)
          body(set, pe * requests[set].per_peer + which, pe);
  }

  memory_keys register_on_all(void* base, std::uint64_t bytes, std::uint32_t allowed) {
    memory_keys keys{};
    std::size_t i = 0;
    try {
      for (; i < nics_.size(); ++i) {
        const auto pair = nics_[i]->register_memory(base, bytes, allowed);
        keys.lkey[i] = pair.lkey;
        keys.rkey[i] = pair.rkey;
      }
    } catch (...) {
      unregister_on(i, keys);
      throw;
    }
    return keys;
  }
  // With the first `count` NICs.
  void unregister_on(std::size_t count, const memory_keys& keys) {
    for (std::size_t i = 0; i < count; ++i) nics_[i]->unregister_memory({keys.lkey[i], keys.rkey[i]});
  }

  bootstrap::channel& channel_;
  std::vector<Nic*> nics_;
  bool heap_is_registered_ = false;
  memory_keys heap_keys_{};
  std::vector<identity> peers_;
  std::unique_ptr<connector> connector_;  // where queue pairs are made when they are needed
  std::uint64_t calls_ = 0;               // of create_queues: the same on all PEs, whether they throw or not
  std::mutex lock_;  // of registered_ and what NICs know of memory: xio_mem_free may be any thread's
  std::multimap<void*, memory_keys> registered_;
};

}  // namespace xio::rdma
