// SPDX-License-Identifier: MIT
#include "bootstrap/unique_id.hpp"

#include "config.h"

#ifdef HAVE_SODIUM
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sodium.h>
#include <sys/stat.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <string_view>

#include "base/descriptors.hpp"
#include "base/process.hpp"
#include "bootstrap/tcp.hpp"

namespace xio::bootstrap {

namespace {

constexpr std::string_view k_magic = "XIO.UID1";  // the last character is the version
constexpr std::size_t k_key_at = 8, k_place_at = 40, k_port_at = 56, k_families_at = 58;
constexpr std::size_t k_addresses_at = 60, k_check_at = 120;
constexpr std::size_t k_place_bytes = 16, k_check_bytes = 8;
constexpr std::size_t k_four_most = 8;  // addresses of IPv4, so that there is room for one of IPv6
enum families : unsigned char { has_four = 1, has_six = 2 };
static_assert(sizeof(xio_unique_id_t) == 128 && k_check_at + k_check_bytes == sizeof(xio_unique_id_t));

using place = std::array<unsigned char, k_place_bytes>;

// Addresses of the loopback interface lead to one process only within a network namespace.
place this_place() {
  std::string text;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), text);
  struct stat net {};
  if (stat("/proc/self/ns/net", &net) == 0) text += fmt::format(" {} {}", net.st_dev, net.st_ino);
  place out;
  crypto_generichash(out.data(), out.size(), reinterpret_cast<const unsigned char*>(text.data()), text.size(), nullptr,
                     0);
  return out;
}

std::array<unsigned char, k_check_bytes> check_of(const xio_unique_id_t& id) {
  std::array<unsigned char, crypto_generichash_BYTES> whole;
  crypto_generichash(whole.data(), whole.size(), id.bytes, k_check_at, nullptr, 0);
  std::array<unsigned char, k_check_bytes> out;
  std::copy_n(whole.begin(), out.size(), out.begin());
  return out;
}

// On every interface; 0: a port that the system chooses. None with the reason in errno.
unique_fd listen_everywhere(int family, std::uint16_t port) {
  const int on = 1;
  unique_fd fd(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd || (family == AF_INET6 && setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on) != 0)) return {};
  const in6_addr any = in6addr_any;  // as many zeros as INADDR_ANY has
  const auto at = socket_address::of(family, &any, port);
  if (bind(fd.get(), at.get(), at.length) != 0 || listen(fd.get(), SOMAXCONN) != 0) return {};
  return fd;
}

std::uint16_t port_of(const unique_fd& fd) { return bound_address(fd.get()).port(); }

// Both families at one port, or the one that this machine has.
std::vector<unique_fd> listen_for_id() {
  constexpr int k_tries = 64;
  int err = 0;
  for (int i = 0; i < k_tries; ++i) {
    unique_fd four = listen_everywhere(AF_INET, 0);
    const int why_not_four = errno;
    unique_fd six = listen_everywhere(AF_INET6, four ? port_of(four) : std::uint16_t{0});
    err = errno;
    if (four && !six && err == EADDRINUSE) continue;  // another process has that port of IPv6
    std::vector<unique_fd> all;
    if (four) all.push_back(std::move(four));
    if (six) all.push_back(std::move(six));
    if (!all.empty()) return all;
    err = why_not_four;
    if (err != EMFILE || !raise_descriptor_limit("a unique id needs two")) break;
  }
  fail(XIO_ERR_IO,
       "xio_get_unique_id cannot listen for the other PEs on any interface: {}; free a port or a descriptor",
       errno_text(err));
}

class address_writer {
 public:
  explicit address_writer(xio_unique_id_t& id) : id_(id) {}
  void add(const sockaddr* a) {
    if (a->sa_family == AF_INET && fours_ < k_four_most) {
      ++fours_;
      put(4, &reinterpret_cast<const sockaddr_in*>(a)->sin_addr, 4);
    } else if (a->sa_family == AF_INET6) {
      const in6_addr& six = reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr;
      if (!IN6_IS_ADDR_LINKLOCAL(&six)) put(6, &six, 16);  // it means nothing without an interface
    }
  }

 private:
  void put(unsigned char family, const void* bytes, std::size_t n) {
    if (at_ + 1 + n > k_check_at) return;
    id_.bytes[at_] = family;
    std::memcpy(id_.bytes + at_ + 1, bytes, n);
    at_ += 1 + n;
  }
  xio_unique_id_t& id_;
  std::size_t at_ = k_addresses_at, fours_ = 0;
};

// IPv4 first: the more likely way.
void write_addresses(xio_unique_id_t& id) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return;  // PEs of this machine need none
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(list, freeifaddrs);
  address_writer writer(id);
  for (const int family : {AF_INET, AF_INET6})
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next)
      if (i->ifa_addr != nullptr && i->ifa_addr->sa_family == family && (i->ifa_flags & IFF_UP) != 0 &&
          (i->ifa_flags & IFF_LOOPBACK) == 0)
        writer.add(i->ifa_addr);
}

// The listening sockets of the ids that this process made and no world has taken yet.
class open_ids {
 public:
  using name = std::array<unsigned char, secret::k_bytes>;
  static name name_of(const xio_unique_id_t& id) {
    name n;
    crypto_generichash(n.data(), n.size(), id.bytes, sizeof id.bytes, nullptr, 0);
    return n;
  }
  void keep(const xio_unique_id_t& id, std::vector<unique_fd> listeners) {
    const std::lock_guard hold(lock_);
    all_[name_of(id)] = std::move(listeners);
  }
  std::vector<unique_fd> take(const xio_unique_id_t& id) {
    const std::lock_guard hold(lock_);
    const auto at = all_.find(name_of(id));
    if (at == all_.end()) return {};
    auto listeners = std::move(at->second);
    all_.erase(at);
    return listeners;
  }

 private:
  std::mutex lock_;
  std::map<name, std::vector<unique_fd>> all_;
};

open_ids& ids() {
  // Never destroyed: programs may call from destructors of their own statics.
  static auto* one = new open_ids;
  return *one;
}

void refuse_what_is_no_id(const xio_unique_id_t& id) {
  constexpr const char* k_cure = "pass all 128 bytes of what xio_get_unique_id gave";
  const std::size_t name_bytes = k_magic.size() - 1;
  if (std::memcmp(id.bytes, k_magic.data(), name_bytes) != 0)
    fail(XIO_ERR_CONFIG, "xio_init_attr_t.unique_id holds no unique id; {}", k_cure);
  if (id.bytes[name_bytes] != static_cast<unsigned char>(k_magic.back()))
    fail(XIO_ERR_CONFIG, "xio_init_attr_t.unique_id is of another version of XIO; run the same XIO on every PE");
  if (const auto check = check_of(id); std::memcmp(id.bytes + k_check_at, check.data(), check.size()) != 0)
    fail(XIO_ERR_CONFIG, "xio_init_attr_t.unique_id was changed on its way; {}", k_cure);
}

std::vector<socket_address> addresses_in(const xio_unique_id_t& id) {
  const auto port = static_cast<std::uint16_t>(id.bytes[k_port_at] | id.bytes[k_port_at + 1] << 8);
  const auto here = this_place();
  if (std::memcmp(id.bytes + k_place_at, here.data(), here.size()) == 0) {
    const std::uint32_t four = htonl(INADDR_LOOPBACK);
    if ((id.bytes[k_families_at] & has_four) != 0) return {socket_address::of(AF_INET, &four, port)};
    return {socket_address::of(AF_INET6, &in6addr_loopback, port)};
  }
  std::vector<socket_address> all;
  for (std::size_t at = k_addresses_at; at < k_check_at && id.bytes[at] != 0;) {
    const bool four = id.bytes[at] == 4;
    const std::size_t n = four ? 4 : 16;
    if ((id.bytes[k_families_at] & (four ? has_four : has_six)) != 0)
      all.push_back(socket_address::of(four ? AF_INET : AF_INET6, id.bytes + at + 1, port));
    at += 1 + n;
  }
  if (all.empty())
    fail(XIO_ERR_NO_ROUTE,
         "the unique id names no address but the loopback of the machine that made it; make it where an interface is "
         "up");
  return all;
}

void derive_key(const xio_unique_id_t& id, secret& out) {
  constexpr unsigned char k_purpose[] = "xio unique id 1";
  crypto_generichash(out.data(), secret::k_bytes, id.bytes + k_key_at, secret::k_bytes, k_purpose,
                     sizeof k_purpose - 1);
}

tcp_settings settings_of(const bootstrap_options& o, const place_by_id& mine) {
  tcp_settings s;
  s.rank = mine.rank;
  s.size = mine.size;
  s.timeout_ms = o.timeout_ms;
  s.names = {"the PE that made the unique id", "the unique id", "xio_init_attr_t.unique_rank",
             "xio_init_attr_t.unique_size", "unique id"};
  derive_key(mine.id, s.key);
  s.listeners = ids().take(mine.id);  // only once: a second PE of this process joins as any other does
  s.is_root = !s.listeners.empty();
  s.addresses = addresses_in(mine.id);
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

void need_sodium() {
  if (sodium_init() < 0) fail(XIO_ERR_UNSUPPORTED, "libsodium found no source of random numbers on this machine");
}

}  // namespace

xio_unique_id_t make_unique_id() {
  need_sodium();
  auto listeners = listen_for_id();
  xio_unique_id_t id{};
  std::memcpy(id.bytes, k_magic.data(), k_magic.size());
  randombytes_buf(id.bytes + k_key_at, secret::k_bytes);
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
  write_addresses(id);
  const auto check = check_of(id);
  std::memcpy(id.bytes + k_check_at, check.data(), check.size());
  process::claim();  // a child's copies of the sockets would keep the others waiting
  ids().keep(id, std::move(listeners));
  return id;
}

std::unique_ptr<channel> connect_unique_id(const bootstrap_options& o, const place_by_id& mine) {
  need_sodium();
  refuse_what_is_no_id(mine.id);
  auto s = settings_of(o, mine);
  refuse_wrong_rank(s);
  return connect_star(std::move(s));
}

}  // namespace xio::bootstrap

#else  // HAVE_SODIUM

#include "base/error.hpp"

namespace xio::bootstrap {
namespace {
[[noreturn]] void refuse_without_sodium() {
  fail(XIO_ERR_UNSUPPORTED,
       "this libxio has no unique ids because it was built without libsodium; install libsodium-dev and configure "
       "again, or start with mpirun");
}
}  // namespace
xio_unique_id_t make_unique_id() { refuse_without_sodium(); }
std::unique_ptr<channel> connect_unique_id(const bootstrap_options&, const place_by_id&) { refuse_without_sodium(); }
}  // namespace xio::bootstrap
#endif
