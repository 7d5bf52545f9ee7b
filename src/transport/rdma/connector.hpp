// SPDX-License-Identifier: MIT
// Connects queue pairs when the first op goes there (XIO_CONNECT=lazy). PEs tell each other the addresses of their
// queue pairs by links of their own, which are made then, too.
//
//   a kernel asks            the host makes its queue pairs to that PE, and perhaps to the next ones, and sends their
//                            addresses
//   a PE hears such          it makes and connects its own, and replies with theirs; its kernels still have to ask
//   the reply comes          the host connects its own and wakes its kernels: both ends are there
//   nobody listens there, the deadline passes, or the reply is an error: the kernels that wait get a status
#pragma once
#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "bootstrap/member_links.hpp"
#include "bootstrap/unique_id.hpp"
#include "gpu/gpu.hpp"
#include "progress/machine.hpp"
#include "transport/rdma/exchange.hpp"

namespace xio::rdma {

class lazy_set;

// Of one endpoint. Sets go before it.
class connector final : public progress::device {
 public:
  // Listens. keys: of the world, which agrees on them together.
  connector(progress::machine& m, int rank, int size, std::shared_ptr<const bootstrap::world_keys> keys,
            const rdma_options& o);
  ~connector() override;
  connector& operator=(connector&&) = delete;

  const xio_unique_id_t& place() const { return place_; }
  // Where another PE listens; such ids stay with the endpoint. From then on it works.
  using place_of_pe = std::function<const xio_unique_id_t&(int pe)>;
  void begin(place_of_pe place_of);

  bool poll() override;
  bool at_rest(sleeper::descriptors& found) override;

 private:
  friend class lazy_set;
  using clock = std::chrono::steady_clock;
  // An ask under way.
  struct asking {
    std::uint64_t set;
    int pe;
    bootstrap::deadline until;
    unsigned sent_on = 0;  // member_links::count of the link that it was sent by
  };
  bool is_asking(std::uint64_t set, int pe) const;
  bool take_asks();
  void begin_ask(lazy_set& set, int pe);
  void step(asking& a);
  void hear(int pe, const bootstrap::frame& f);
  void reply(int pe, const pair_message& ask);
  void end(std::uint64_t set, int pe, xio_status_t status, const std::string& why);

  progress::machine& machine_;
  const int rank_, size_;
  const network_options network_;
  const std::uint64_t patience_ms_;
  xio_unique_id_t place_{};
  place_of_pe place_of_;
  std::mutex lock_;  // of all that follows, and of the sets
  bootstrap::member_links links_;
  std::map<std::uint64_t, lazy_set*> sets_;
  std::vector<asking> asks_;
  clock::time_point next_look_{}, next_sweep_{};
  bool runs_ = false;
};

// One queue_set whose queue pairs are made when they are needed: the words and views that kernels find, and the makers.
class lazy_set {
 public:
  // Called by the connector, under its lock.
  struct maker {
    std::function<std::vector<queue_address>(int pe)> make;  // unless they are there
    std::function<void(int pe, const std::vector<queue_address>& theirs)> connect;
    std::vector<bool> peers;  // to which there may be queue pairs
  };
  // number: the same on all PEs.
  lazy_set(connector& by, std::uint64_t number, maker how);
  ~lazy_set() { stop(); }
  lazy_set& operator=(lazy_set&&) = delete;

  // On return nothing is made any more, and the connector may go. Words and views stay.
  void stop() noexcept;
  // See queue_set::when_connected.
  void when_connected(std::function<void(int pe)> publish);
  std::string silence_of(int pe) const;
  bool is_connected(int pe) const { return at(pe) == state::connected; }
  // A view of no queue pair yet, which leads kernels to ask: `like` has what all views of the set have in common.
  dev::ring_view dormant(int pe, dev::ring_view like) const;
  // On return no queue pair to it is made any more.
  void exclude(int pe);

 private:
  friend class connector;
  enum class state : std::uint8_t { none, joined, connected, excluded };  // joined: the other end may be without ours
  std::atomic<state>& at(int pe) { return states_[static_cast<std::size_t>(pe)]; }
  bool is_wanted(int pe) const { return how_.peers[static_cast<std::size_t>(pe)]; }
  state at(int pe) const { return states_[static_cast<std::size_t>(pe)]; }
  std::uint32_t* ask(int pe) const;
  std::uint32_t* bell() const { return words_.as<std::uint32_t>(); }

  connector& by_;
  const maker how_;
  const std::uint64_t number_;
  std::vector<std::atomic<state>> states_;  // stored under the connector's lock
  std::function<void(int pe)> publish_;
  struct asked_row {
    int next, length, ahead;  // the PE that would continue it, asks in a row, and how many were begun ahead of the last
  };
  asked_row row_{-1, 0, 0};
  std::map<int, std::string> silences_;  // why the last ask reached nobody
  bool stopped_ = false;
  gpu::buffer words_;  // the bell, and a word for each PE: see dormant.hpp
  gpu::buffer ring_;   // the ring_state of all dormant views
};

}  // namespace xio::rdma
