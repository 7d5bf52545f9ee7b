// SPDX-License-Identifier: MIT
#include "bootstrap/unique_id.hpp"

#include <netinet/in.h>
#include <sys/stat.h>

#include <deque>
#include <fstream>
#include <mutex>

#include "base/descriptors.hpp"
#include "base/fnv.hpp"
#include "base/interfaces.hpp"
#include "base/mac.hpp"
#include "base/port_range.hpp"
#include "base/process.hpp"
#include "bootstrap/tcp.hpp"

namespace xio::bootstrap {

namespace {

constexpr std::string_view k_magic = "XIO.UID3";  // the last character is the version
constexpr std::size_t k_key_at = 8, k_place_at = 40, k_port_at = 48, k_families_at = 50, k_counts_at = 51;
constexpr std::size_t k_addresses_at = 52, k_check_at = 120;
constexpr std::size_t k_place_bytes = 8, k_check_bytes = k_place_bytes;
constexpr std::size_t k_four_bytes = 4, k_six_bytes = 16;
constexpr std::size_t k_count_most = 15;
enum families : unsigned char { has_four = 1, has_six = 2 };
static_assert(sizeof(xio_unique_id_t) == 128 && k_check_at + k_check_bytes == sizeof(xio_unique_id_t));

using place = std::array<unsigned char, k_place_bytes>;

place hash_of(std::span<const std::byte> bytes) {
  const std::uint64_t hash = fnv_1a(bytes);
  place out;
  std::memcpy(out.data(), &hash, out.size());
  return out;
}

// Addresses of the loopback interface lead to one process only within a network namespace.
place this_place() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  struct stat net {};
  if (stat("/proc/self/ns/net", &net) == 0) text += fmt::format(" {} {}", net.st_dev, net.st_ino);
  return hash_of(std::as_bytes(std::span(text)));
}

place check_of(const xio_unique_id_t& id) { return hash_of(std::as_bytes(std::span(id.bytes).first(k_check_at))); }

// On every interface; 0: a port that the system chooses. None with the reason in errno.
unique_fd listen_everywhere(int family, std::uint16_t port) {
  const int on = 1;
  unique_fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || (family == AF_INET6 && setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0)) return {};
  // A port of a range may have been in use a moment ago.
  if (port != 0) setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const in6_addr any = in6addr_any;  // as many zeros as INADDR_ANY has
  const auto at = socket_address::of(family, &any, port);
  if (bind(fd.get(), at.get(), at.length) != 0 || listen(fd.get(), SOMAXCONN) != 0) return {};
  return fd;
}

std::uint16_t port_of(const unique_fd& fd) { return bound_address(fd.get()).port(); }

// The listening sockets of the ids that this process made and no world has taken yet, of the last few: a program that
// makes ids and no worlds shall not run out of descriptors.
class open_ids {
 public:
  using name = std::array<unsigned char, secret::k_bytes>;
  static constexpr std::size_t k_most = 16;
  static name name_of(const xio_unique_id_t& id) {
    name n;
    mac m(id.bytes + k_key_at, "xio unique id name");
    m.add(id.bytes, sizeof id.bytes);
    m.result(n.data());
    return n;
  }
  void keep(const xio_unique_id_t& id, std::vector<unique_fd> listeners) {
    const std::lock_guard hold(lock_);
    if (all_.size() == k_most) all_.pop_front();
    all_.emplace_back(name_of(id), std::move(listeners));
  }
  std::vector<unique_fd> take(const xio_unique_id_t& id) {
    const std::lock_guard hold(lock_);
    const auto at = std::ranges::find(all_, name_of(id), [](const auto& i) { return i.first; });
    if (at == all_.end()) return {};
    auto listeners = std::move(at->second);
    all_.erase(at);
    return listeners;
  }
  // False: there is none.
  bool release_oldest() {
    const std::lock_guard hold(lock_);
    if (all_.empty()) return false;
    all_.pop_front();
    return true;
  }

 private:
  std::mutex lock_;
  std::deque<std::pair<name, std::vector<unique_fd>>> all_;  // the oldest first
};

open_ids& ids() {
  // Never destroyed: programs may call from destructors of their own statics.
  static auto* one = new open_ids;
  return *one;
}

struct both_families {
  unique_fd four, six;
  explicit operator bool() const { return four || six; }
};

// Both families at one port, or the one that this machine has. None with the reason in errno.
both_families listen_at_port(std::uint16_t port) {
  both_families b;
  b.four = listen_everywhere(AF_INET, port);
  const int why_not_four = errno;
  if (!b.four && port != 0 && why_not_four == EADDRINUSE) return {};
  b.six = listen_everywhere(AF_INET6, b.four ? port_of(b.four) : port);
  if (b.six || b.four) {
    if (b.six || errno != EADDRINUSE) return b;
    b = {};  // another process has that port of IPv6
    errno = EADDRINUSE;
  } else {
    errno = why_not_four;
  }
  return b;
}

std::vector<unique_fd> listen_for_id(const network_options& o) {
  const auto ports = port_range::parse(o.tcp_ports);
  both_families b;
  int err = 0;
  constexpr int k_tries = 64;  // at ports that the system chooses for IPv4
  for (int i = 0; i < k_tries; ++i) {
    b = ports.first_free(listen_at_port);
    err = errno;
    if (b) break;
    if (err == EADDRINUSE && !ports.any()) {
      // Of a few ports the ids that no world has taken may have all.
      if (ids().release_oldest()) continue;
      break;
    }
    if (err != EADDRINUSE && (err != EMFILE || !raise_descriptor_limit("a unique id needs two"))) break;
  }
  if (!b && err == EADDRINUSE && !ports.any())
    fail(XIO_ERR_IO,
         "xio_get_unique_id cannot listen for the other PEs: no port of XIO_TCP_PORTS={} is free; give more ports, one "
         "for each id that waits for its world",
         o.tcp_ports);
  if (!b)
    fail(XIO_ERR_IO,
         "xio_get_unique_id cannot listen for the other PEs on any interface: {}; free a port or a descriptor",
         errno_text(err));
  std::vector<unique_fd> all;
  if (b.four) all.push_back(std::move(b.four));
  if (b.six) all.push_back(std::move(b.six));
  return all;
}

// As many as there is room for, the likeliest first, and one of IPv6 if there is any.
void write_addresses(const std::vector<interface_address>& likeliest_first, xio_unique_id_t& id) {
  std::vector<std::span<const unsigned char>> fours, sixes;
  const auto is_six = [](const interface_address& i) { return i.address.family() == AF_INET6; };
  std::size_t room = k_check_at - k_addresses_at;
  std::size_t kept = std::ranges::any_of(likeliest_first, is_six) ? k_six_bytes : 0;
  for (const auto& i : likeliest_first) {
    auto& of_family = is_six(i) ? sixes : fours;
    const auto bytes = i.address.host();
    if (is_six(i)) kept = 0;
    if (bytes.size() + kept > room || of_family.size() == k_count_most) continue;
    room -= bytes.size();
    of_family.push_back(bytes);
  }
  id.bytes[k_counts_at] = static_cast<unsigned char>(fours.size() | sixes.size() << 4);
  unsigned char* to = id.bytes + k_addresses_at;
  for (const auto* all : {&fours, &sixes})
    for (const auto& bytes : *all) to = std::ranges::copy(bytes, to).out;
}

// PEs of this machine need none, so loopback is given to others only where XIO_TCP_INTERFACE names it.
std::vector<interface_address> addresses_for_others(const network_options& o) {
  auto all = interface_choice(o.tcp_interface).of(own_addresses());
  if (o.tcp_interface.empty() || o.tcp_interface[0] == '^')
    std::erase_if(all, [](const auto& i) { return i.address.loopback(); });
  return all;
}

constexpr const char* k_whole_id = "pass all 128 bytes of what xio_get_unique_id gave";

void refuse_what_is_no_id(const xio_unique_id_t& id) {
  const std::size_t name_bytes = k_magic.size() - 1;
  if (std::memcmp(id.bytes, k_magic.data(), name_bytes) != 0)
    fail(XIO_ERR_CONFIG, "xio_init_attr_t.unique_id holds no unique id; {}", k_whole_id);
  if (id.bytes[name_bytes] != static_cast<unsigned char>(k_magic.back()))
    fail(XIO_ERR_CONFIG, "xio_init_attr_t.unique_id is of another version of XIO; run the same XIO on every PE");
  if (const auto check = check_of(id); std::memcmp(id.bytes + k_check_at, check.data(), check.size()) != 0)
    fail(XIO_ERR_CONFIG, "xio_init_attr_t.unique_id was changed on its way; {}", k_whole_id);
}

// Of the list in the id, without those that are this machine's own: they lead to itself and not to the maker.
std::vector<socket_address> listed_in(const xio_unique_id_t& id, std::uint16_t port) {
  const std::size_t fours = id.bytes[k_counts_at] & 15, sixes = id.bytes[k_counts_at] >> 4;
  if (fours * k_four_bytes + sixes * k_six_bytes > k_check_at - k_addresses_at)
    fail(XIO_ERR_CONFIG, "xio_init_attr_t.unique_id names more addresses than it has room for; {}", k_whole_id);
  std::vector<socket_address> all;
  const unsigned char* at = id.bytes + k_addresses_at;
  for (std::size_t i = 0; i < fours; ++i, at += k_four_bytes)
    if ((id.bytes[k_families_at] & has_four) != 0) all.push_back(socket_address::of(AF_INET, at, port));
  for (std::size_t i = 0; i < sixes; ++i, at += k_six_bytes)
    if ((id.bytes[k_families_at] & has_six) != 0) all.push_back(socket_address::of(AF_INET6, at, port));
  const auto own = own_addresses();
  std::erase_if(all, [&](const socket_address& a) {
    return std::ranges::any_of(own, [&](const auto& o) { return std::ranges::equal(o.address.host(), a.host()); });
  });
  return all;
}

}  // namespace

std::vector<socket_address> addresses_in(const xio_unique_id_t& id, const network_options& o) {
  const auto port = static_cast<std::uint16_t>(id.bytes[k_port_at] | id.bytes[k_port_at + 1] << 8);
  const auto here = this_place();
  if (std::memcmp(id.bytes + k_place_at, here.data(), here.size()) == 0) {
    const std::uint32_t four = htonl(INADDR_LOOPBACK);
    if ((id.bytes[k_families_at] & has_four) != 0) return {socket_address::of(AF_INET, &four, port)};
    return {socket_address::of(AF_INET6, &in6addr_loopback, port)};
  }
  auto all = listed_in(id, port);
  if (all.empty())
    fail(XIO_ERR_NO_ROUTE,
         "the unique id names no address but those that this machine has itself, and was made on another one or in "
         "another network namespace; make it where an interface is up, or name one by XIO_TCP_INTERFACE there");
  sort_by_nearness(all, interface_choice(o.tcp_interface).of(own_addresses()));
  return all;
}

namespace {

tcp_settings settings_of(const bootstrap_options& o, const place_by_id& mine) {
  tcp_settings s;
  s.rank = mine.rank;
  s.size = mine.size;
  s.timeout_ms = o.timeout_ms;
  s.names = {"the PE that made the unique id", "the unique id", "xio_init_attr_t.unique_rank",
             "xio_init_attr_t.unique_size", "unique id"};
  mac(mine.id.bytes + k_key_at, "xio unique id 3").result(s.key.data());
  s.trust_network = o.tcp_trust_network != 0;
  s.listeners = ids().take(mine.id);  // only once: a second PE of this process joins as any other does
  s.is_root = !s.listeners.empty();
  s.addresses = addresses_in(mine.id, o);
  return s;
}

// The root hears of a wrong rank, and tells all; its own it cannot send, but by closing its sockets it ends their wait.
void refuse_wrong_rank(const tcp_settings& s) {
  const bool wrong_size = s.size < 1 || s.size > k_tcp_ranks_max;
  if (!wrong_size && s.rank >= 0 && s.rank < s.size) return;
  if (!s.is_root && !wrong_size && s.rank >= 0) return;
  fail(XIO_ERR_CONFIG,
       "xio_init_attr_t: unique_rank {} of unique_size {} cannot be; use 0 <= unique_rank < unique_size <= {}", s.rank,
       s.size, k_tcp_ranks_max);
}

}  // namespace

xio_unique_id_t make_unique_id(const network_options& o) {
  crypto::start();
  const auto addresses = addresses_for_others(o);
  auto listeners = listen_for_id(o);
  xio_unique_id_t id{};
  std::memcpy(id.bytes, k_magic.data(), k_magic.size());
  crypto::fill_random(id.bytes + k_key_at, secret::k_bytes);
  const auto here = this_place();
  std::memcpy(id.bytes + k_place_at, here.data(), here.size());
  const auto port = port_of(listeners.front());
  id.bytes[k_port_at] = static_cast<unsigned char>(port & 0xff);
  id.bytes[k_port_at + 1] = static_cast<unsigned char>(port >> 8);
  for (const auto& fd : listeners) {
    int family = 0;
    socklen_t length = sizeof family;
    getsockopt(fd.get(), SOL_SOCKET, SO_DOMAIN, &family, &length);
    id.bytes[k_families_at] |= family == AF_INET ? has_four : has_six;
  }
  write_addresses(addresses, id);
  const auto check = check_of(id);
  std::memcpy(id.bytes + k_check_at, check.data(), check.size());
  process::claim();  // a child's copies of the sockets would keep the others waiting
  ids().keep(id, std::move(listeners));
  return id;
}

listening_member listen_for_members(const network_options& o) {
  listening_member m{make_unique_id(o), {}};
  m.listeners = ids().take(m.id);
  std::memset(m.id.bytes, 0, k_place_at);
  std::memset(m.id.bytes + k_check_at, 0, k_check_bytes);
  return m;
}

std::unique_ptr<channel> connect_unique_id(const bootstrap_options& o, const place_by_id& mine) {
  crypto::start();
  refuse_what_is_no_id(mine.id);
  auto s = settings_of(o, mine);
  refuse_wrong_rank(s);
  return connect_star(std::move(s));
}

}  // namespace xio::bootstrap
