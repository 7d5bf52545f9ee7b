// SPDX-License-Identifier: MIT
// Proven links between the members of a world, made when they are first used: each member listens for the others. Never
// waits but in poll().
#pragma once
#include <poll.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/connect_race.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/link.hpp"
#include "bootstrap/socket.hpp"
#include "bootstrap/world_keys.hpp"

namespace xio::bootstrap {

// Where a member listens, and the number of its life: it counts those that have had this rank.
struct member_place {
  std::vector<socket_address> addresses;
  std::uint32_t incarnation = 0;
};

class member_links {
  template <class T>
  static auto& at(T& all, int pe) {
    return all[static_cast<std::size_t>(pe)];
  }

 public:
  struct self {
    int rank = 0;
    std::shared_ptr<const world_keys> keys;
    std::vector<unique_fd> listeners;
    bool trust_network = false;
  };
  member_links(self me, std::vector<member_place> places)
      : me_(std::move(me)), places_(std::move(places)), attempts_(places_.size()), links_(places_.size()) {}

  // For members of which this one learns one by one.
  void listen(std::vector<unique_fd> listeners) { me_.listeners = std::move(listeners); }
  // That nobody listened there is forgotten.
  void learn(int pe, member_place place) {
    at(places_, pe) = std::move(place);
    at(attempts_, pe).refused = false;
  }

  // Connects to a member, unless there is a link or an attempt.
  void open(int pe);
  bool has(int pe) const { return at(links_, pe).is_open(); }
  // How many links to it there have been. Two that cross become one, and what was sent by the other is lost.
  unsigned count(int pe) const { return at(attempts_, pe).links; }
  // Nobody listens there: proof that the process has ended, for a member listens as long as it is in the world.
  bool is_refused(int pe) const { return at(attempts_, pe).refused; }
  // How long no attempt has reached its machine; 0: one has, or none was made.
  std::chrono::milliseconds unreached_for(int pe) const;

  // "PE 3 at 10.0.0.3:40112", and why the last attempt reached nobody, for a sentence.
  std::string where(int pe) const;

  // The descriptors that poll() waits for.
  void add_to(std::vector<pollfd>& polled) const;
  // Nothing where there is no link: a message that is lost.
  void send(int pe, frame_kind kind, std::span<const std::byte> payload);
  // One frame of each link at most, so that a link can be taken behind it.
  std::vector<std::pair<int, frame>> poll(int ms);
  // The link becomes the caller's.
  sealed_link take(int pe);
  // Says no more, and keeps the link until what was sent has had time to arrive.
  void part(sealed_link l);
  // Those by which no frame has come or gone since the last call. A frame that is sent by one with which the other end
  // parts is lost, and has() shows it.
  void part_unused();
  void part_all();
  // Nothing but the listeners is looked at.
  bool is_idle() const { return live_.empty() && openings_.empty(); }

 private:
  using clock = run_clock;
  // A connection without proof yet.
  struct opening_link {
    byte_stream stream;
    int pe;  // that is wanted at the other end; -1: it has connected to this member
    deadline until;
    banner_bytes banner{};
    hello_bytes hello{};
    std::unique_ptr<ephemeral_key> own{};
    bool has_banner = false, over = false;
  };
  struct attempt {
    std::unique_ptr<connect_race> race{};
    clock::time_point first{}, again{};  // the first one that reached nobody; not before
    bool refused = false, is_failing = false, has_opening = false;
    bool is_used = false;  // its link
    unsigned links = 0;    // that were made
    std::string why{};     // the last one reached nobody
  };
  secret key_with(int pe) const;
  void accept_all();
  void step_attempt(int pe);
  void step(opening_link& o);
  void step_caller(opening_link& o);
  void step_callee(opening_link& o);
  bool is_trusted(opening_link& o);
  void become_link(opening_link& o, int pe, const session_keys& keys, link_end end);
  void give_up(opening_link& o);
  template <std::size_t N>
  static bool read_whole(opening_link& o, std::array<std::byte, N>& out);

  self me_;
  std::vector<member_place> places_;
  const ephemeral_key own_;  // of all connections to this member
  std::vector<attempt> attempts_;
  std::deque<opening_link> openings_;
  std::vector<sealed_link> links_;
  std::set<int> live_;  // members with a link or a race, and for a moment others
  std::vector<sealed_link> parted_;
};

}  // namespace xio::bootstrap
