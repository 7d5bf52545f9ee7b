// SPDX-License-Identifier: MIT
#include "proxy/tcp_fabric.hpp"

#include <sys/epoll.h>

#include <cerrno>

#include "base/descriptors.hpp"
#include "base/error.hpp"
#include "base/interfaces.hpp"
#include "base/log.hpp"

namespace xio::proxy {

namespace {

using tcp::clock;

// Connections that have proved nothing yet may be this many, and each may last this long.
constexpr std::size_t k_visitors = 32;
constexpr std::chrono::seconds k_visit{5};
// Sockets that one poll takes from the kernel; the others come with the next.
constexpr int k_ready_most = 64;

// A device address: this head, then each address that the NIC can be called at, its family (4 or 6) and its bytes.
struct address_head {
  unsigned char magic[8];
  std::uint32_t pe;
  std::uint16_t port;
  std::uint16_t places;
  unsigned char id[tcp::k_identity_bytes];
};
constexpr unsigned char k_magic[8] = {'X', 'I', 'O', 'C', 'A', 'R', 'D', '4'};

// Takes the first one off `rest`; none if it is cut or of no family.
socket_address take_place(std::span<const std::byte>& rest, std::uint16_t port) {
  const int number = rest.empty() ? 0 : static_cast<int>(rest[0]);
  const std::size_t bytes = number == 4 ? 4 : 16;
  if ((number != 4 && number != 6) || rest.size() < 1 + bytes) return {};
  const auto at = socket_address::of(number == 4 ? AF_INET : AF_INET6, rest.data() + 1, port);
  rest = rest.subspan(1 + bytes);
  return at;
}

}  // namespace

tcp_fabric::tcp_fabric(const payload_agent& payload, tcp_settings settings)
    : payload_(payload), settings_(std::move(settings)), keys_(settings_.seed) {
  crypto::start();
  crypto::fill_random(id_.data(), id_.size());
  listener_ = tcp::listen_at(settings_.address);
  room_.ready = unique_fd(epoll_create1(EPOLL_CLOEXEC));
  epoll_event call{EPOLLIN, {.ptr = nullptr}};
  if (!room_.ready || epoll_ctl(room_.ready.get(), EPOLL_CTL_ADD, listener_.fd.get(), &call) != 0)
    fail(XIO_ERR_IO, "the software NIC cannot poll its sockets: {}",
         no_descriptor(errno) ? text_of_no_descriptor(errno) : errno_text(errno));
}

key_pair tcp_fabric::register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) {
  unsigned char* const at = settings_.place ? settings_.place(base, bytes) : static_cast<unsigned char*>(base);
  const std::uint32_t key = keys_.add(region{reinterpret_cast<std::uint64_t>(base), bytes, at, allowed});
  if (key == 0)
    fail(XIO_ERR_ARG,
         "{} bytes at {} cannot be registered with the software NIC: the range is empty or leaves the address space",
         bytes, base);
  return {key, key};
}

// --- Device addresses --------------------------------------------------------------------------------

device_address tcp_fabric::get_address() {
  address_head h{};
  std::memcpy(h.magic, k_magic, sizeof k_magic);
  h.pe = static_cast<std::uint32_t>(settings_.pe);
  h.port = listener_.places[0].port();
  std::memcpy(h.id, id_.data(), id_.size());
  device_address out(sizeof h);
  // The likeliest come first, and loopback last: what there is no room for is left out.
  for (const socket_address& p : listener_.places) {
    const auto bytes = std::as_bytes(p.host());
    if (out.size() + 1 + bytes.size() > k_device_address_most) continue;
    out.push_back(static_cast<std::byte>(p.family() == AF_INET ? 4 : 6));
    out.insert(out.end(), bytes.begin(), bytes.end());
    ++h.places;
  }
  std::memcpy(out.data(), &h, sizeof h);
  return out;
}

void tcp_fabric::connect_peers(const std::vector<device_address>& all) {
  const auto bad = [](std::size_t pe, const char* why) {
    fail(XIO_ERR_PEER, "the software NIC of PE {} sent {}; run the same XIO on every PE", pe, why);
  };
  if (all.size() != static_cast<std::size_t>(settings_.pes)) bad(all.size(), "an address too few or too many");
  std::vector<peer> peers(all.size());
  for (std::size_t pe = 0; pe < all.size(); ++pe) {
    address_head h{};
    if (all[pe].empty()) bad(pe, "no address");
    std::memcpy(&h, all[pe].data(), std::min(sizeof h, all[pe].size()));
    if (std::memcmp(h.magic, k_magic, sizeof k_magic - 1) != 0)
      bad(pe, "something that is no address of the TCP carrier");
    if (std::memcmp(h.magic, k_magic, sizeof k_magic) != 0) bad(pe, "an address of another version of the TCP carrier");
    if (h.pe != pe) bad(pe, "another PE's address");
    if (h.port == 0 || h.places == 0 || all[pe].size() < sizeof h) bad(pe, "no address");
    std::memcpy(peers[pe].id.data(), h.id, sizeof h.id);
    auto rest = std::span<const std::byte>(all[pe]).subspan(sizeof h);
    for (std::size_t i = 0; i < h.places; ++i) {
      peers[pe].places.push_back(take_place(rest, h.port));
      if (peers[pe].places.back().length == 0) bad(pe, "an address that is cut or of no family");
    }
    if (!rest.empty()) bad(pe, "no address");
  }
  peers_ = std::move(peers);
}

// --- Links -------------------------------------------------------------------------------------------

void tcp_fabric::link_to_self() {
  auto [one, other] = tcp::socket_pair();
  tcp::session keys;  // within this process: nobody has to agree on them
  crypto::fill_random(keys.from_caller.data(), keys.from_caller.size());
  crypto::fill_random(keys.from_callee.data(), keys.from_callee.size());
  auto own = std::make_shared<tcp::link>(settings_.pe, clock::now(), settings_.faults, room_);
  mirror_ = std::make_shared<tcp::link>(settings_.pe, clock::now(), settings_.faults, room_);
  own->open(std::move(one), keys, true);
  mirror_->open(std::move(other), keys, false);
  links_[settings_.pe] = own;
}

// The lower PE calls, the higher one waits for it. A link that is lost serves the queue pairs that have it, which fail;
// those that are connected after it get another.
std::shared_ptr<tcp::link> tcp_fabric::link_to(int pe) {
  if (const auto found = links_.find(pe); found != links_.end() && !found->second->lost()) return found->second;
  if (pe == settings_.pe) {
    link_to_self();
    return links_[pe];
  }
  const bool ends = settings_.connect_timeout.count() != 0;
  const auto until = ends ? clock::now() + settings_.connect_timeout : clock::time_point::max();
  auto way = std::make_shared<tcp::link>(pe, until, settings_.faults, room_);
  if (settings_.pe < pe) {
    const peer& p = peers_[static_cast<std::size_t>(pe)];
    std::vector<socket_address> places = p.places;
    sort_by_nearness(places, interface_choice(settings_.network.tcp_interface).of(own_addresses()));
    way->call(std::make_unique<tcp::caller>(settings_.key_with(pe), static_cast<std::uint32_t>(settings_.pe),
                                            static_cast<std::uint32_t>(pe), p.id, std::move(places),
                                            settings_.network.tcp_trust_network != 0));
  }
  links_[pe] = way;
  return way;
}

std::unique_ptr<executor> tcp_fabric::connect(std::uint32_t number, int pe, const device_address&,
                                              std::uint32_t remote_number) {
  if (pe < 0 || static_cast<std::size_t>(pe) >= peers_.size())
    fail(XIO_ERR_INTERNAL, "queue pair {} is to be connected to PE {} of {}; this is a bug of XIO, please report it",
         number, pe, peers_.size());
  auto ask = std::make_unique<tcp::requester>(payload_, keys_, settings_, number, remote_number, link_to(pe));
  pairs_[number] = std::make_unique<pair>(
      pair{pe, remote_number, ask.get(), tcp::responder(payload_, keys_, settings_, number, remote_number)});
  return ask;
}

void tcp_fabric::forget(std::uint32_t number) { pairs_.erase(number); }

// If all places are taken, a new connection gets the place of the oldest one that has not yet sent what only a PE can.
void tcp_fabric::accept() {
  for (std::size_t i = 0; i < k_visitors; ++i) {
    const bool full = visitors_.size() >= k_visitors;
    const auto oldest = std::ranges::find_if(visitors_, [](const auto& v) { return v.is_stranger(); });
    if (full && oldest == visitors_.end()) return;
    int err = 0;
    unique_fd fd = tcp::accept_one(listener_.fd.get(), err);
    // The caller tries again, and is accepted when a descriptor is free.
    if (no_descriptor(err) && !std::exchange(said_full_, true))
      log::warn("no file descriptor is left to take the call of another PE's software NIC: {}",
                text_of_no_descriptor(err));
    if (!fd) return;
    if (full) visitors_.erase(oldest);
    visitors_.emplace_back(settings_.key_with, std::move(fd), clock::now() + k_visit,
                           settings_.network.tcp_trust_network != 0);
  }
}

void tcp_fabric::poll_visitors() {
  for (auto v = visitors_.begin(); v != visitors_.end();) {
    const tcp::step s = v->go_on(static_cast<std::uint32_t>(settings_.pe), id_);
    if (s == tcp::step::done) {
      // Only a peer with the key gets here; a second call of a PE is none of this world's while the first one stands.
      if (const auto way = link_to(static_cast<int>(v->who())); way->waiting())
        way->open(*v);
      else
        log::warn("PE {} called a second time; refused", v->who());
    }
    if (s == tcp::step::failed && v->is_of_another_version() && !std::exchange(said_version_, true))
      log::warn("a software NIC of another version of XIO called and was refused; run the same XIO on every PE");
    v = s == tcp::step::pending ? std::next(v) : visitors_.erase(v);
  }
}

// --- Frames ------------------------------------------------------------------------------------------

bool tcp_fabric::handle(tcp::link& way, const tcp::frame_head& h, const unsigned char* payload) {
  // For a queue pair that is not connected yet, or gone: dropped, and sent again or not.
  const auto found = pairs_.find(h.to);
  if (found == pairs_.end()) return true;
  pair& p = *found->second;
  if (p.pe != way.pe() || p.remote_number != h.from) return true;
  if (!tcp::is_request(h.kind)) return p.ask->handle(h, payload);
  const bool owed = p.responder.owes();
  if (!p.responder.handle(h, payload, way)) return false;
  if (!owed && p.responder.owes()) owing_.push_back(h.to);
  return true;
}

void tcp_fabric::acknowledge(tcp::link& way) {
  for (const std::uint32_t number : owing_)
    if (const auto found = pairs_.find(number); found != pairs_.end()) found->second->responder.acknowledge(way);
  owing_.clear();
}

bool tcp_fabric::serve(tcp::link& way) {
  const std::uint64_t got =
      way.receive([&](const tcp::frame_head& h, const unsigned char* payload) { return handle(way, h, payload); });
  acknowledge(way);
  return (way.send() | got) != 0;
}

bool tcp_fabric::at_rest(sleeper::descriptors& found) {
  const auto acts = [](const tcp::link& way) { return way.waiting() || way.has_output(); };
  // Without a descriptor for it a call stays, and the listener with it would wake at once, again and again.
  if (said_full_ || !visitors_.empty() || (mirror_ != nullptr && acts(*mirror_))) return false;
  if (std::ranges::any_of(links_, [&](const auto& l) { return acts(*l.second); })) return false;
  found.push_back({room_.ready.get(), POLLIN, 0});
  return true;
}

// Links on which nothing comes and nothing goes cost no call of the kernel.
bool tcp_fabric::poll() {
  bool worked = false, called = false;
  epoll_event ready[k_ready_most];
  const int n = epoll_wait(room_.ready.get(), ready, k_ready_most, 0);
  for (int i = 0; i < n; ++i)
    if (ready[i].data.ptr == nullptr)
      called = true;
    else
      worked |= serve(*static_cast<tcp::link*>(ready[i].data.ptr));
  if (called) accept();
  if (!visitors_.empty()) poll_visitors();
  for (const auto& [pe, way] : links_)
    if (way->waiting())
      worked |= serve(*way);
    else if (way->has_output())
      worked |= way->send() != 0;
  if (mirror_ != nullptr && mirror_->has_output()) worked |= mirror_->send() != 0;
  return worked;
}

}  // namespace xio::proxy
