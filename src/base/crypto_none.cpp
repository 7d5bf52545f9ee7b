// SPDX-License-Identifier: MIT
// Without a library: nothing is secret and nothing is proven. Keys and tags find mistakes, as a rank of another world.
// The kernel knows the owner of each socket of this machine, and so of the other end.
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <fstream>

#include "base/crypto.hpp"
#include "base/log.hpp"
#include "base/socket_address.hpp"

namespace xio::crypto {
namespace {

std::uint64_t mix(std::uint64_t hash, const void* from, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(from);
  while (bytes != 0) {
    std::uint64_t word = 0;
    const std::size_t n = std::min(bytes, sizeof word);
    std::memcpy(&word, at, n);
    hash = (hash ^ word ^ n) * 0x9e3779b97f4a7c15u;
    hash ^= hash >> 29;
    at += n;
    bytes -= n;
  }
  return hash;
}

// An address as /proc/net/tcp and tcp6 write it: words of 32 bits as this machine has them, and the port.
std::string as_in_proc(const socket_address& a) {
  std::string out;
  char text[16];
  const auto host = a.host();
  for (std::size_t i = 0; i + 4 <= host.size(); i += 4) {
    std::uint32_t word = 0;
    std::memcpy(&word, host.data() + i, sizeof word);
    std::snprintf(text, sizeof text, "%08" PRIX32, word);
    out += text;
  }
  std::snprintf(text, sizeof text, ":%04X", a.port());
  return out + text;
}

// Whether this machine has the socket at the other end, and it is this user's.
bool is_of_this_user(int fd) {
  sockaddr_storage other{};
  socklen_t length = sizeof other;
  auto* native = reinterpret_cast<sockaddr*>(&other);
  if (getpeername(fd, native, &length) != 0) return false;
  // A listener for both families has IPv4 as ::ffff:a.b.c.d, where the caller's socket is of IPv4.
  const auto plain = [](std::string address) {
    constexpr std::string_view k_mapped = "0000000000000000FFFF0000";
    return address.starts_with(k_mapped) ? address.substr(k_mapped.size()) : address;
  };
  const std::string from = plain(as_in_proc(socket_address::of(native))), to = plain(as_in_proc(bound_address(fd)));
  for (const char* table : {"/proc/self/net/tcp", "/proc/self/net/tcp6"}) {
    std::ifstream rows(table);
    for (std::string row; std::getline(rows, row);) {
      char local[64] = "", remote[64] = "";
      unsigned state = 0, uid = 0;
      if (std::sscanf(row.c_str(), " %*s %63s %63s %x %*s %*s %*s %u", local, remote, &state, &uid) == 4 &&
          from == plain(local) && to == plain(remote))
        return state == 1 && uid == geteuid();
    }
  }
  return false;
}

}  // namespace

const char k_version = 'n';
const bool k_proves = false;

void start() {}

std::string why_not_trusted(int fd, bool trust_network) {
  if (is_of_this_user(fd)) return {};
  if (!trust_network)
    return "it is no process of this user on this machine, and this libxio was built without libsodium and OpenSSL, so "
           "it can prove nothing over a network; build it with one of them, or set XIO_TCP_TRUST_NETWORK=1 for every "
           "PE where nobody else reaches the network";
  static const bool said = [] {
    log::warn(
        "connections between machines are not protected: this libxio was built without libsodium and OpenSSL, and "
        "XIO_TCP_TRUST_NETWORK=1 says that nobody else reaches the network");
    return true;
  }();
  (void)said;
  return {};
}

void public_half(key_bytes own, key_room out) { std::ranges::copy(own, out.begin()); }

bool shared_secret(key_bytes own, key_bytes theirs, key_room out) {
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = own[i] ^ theirs[i];
  return true;
}

void hmac(key_bytes key, std::span<const std::byte> text, key_room out) {
  std::uint64_t hash = mix(1, key.data(), key.size());
  for (std::size_t i = 0; i < out.size(); i += sizeof hash) {
    hash = mix(hash + i, text.data(), text.size());
    std::memcpy(out.data() + i, &hash, sizeof hash);
  }
}

void stretch(std::string_view passphrase, key_room out) {
  constexpr std::array<unsigned char, k_key_bytes> k_none{};
  hmac(k_none, std::as_bytes(std::span(passphrase)), out);
}

void seal(key_bytes key, std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> text,
          std::byte* out, tag_room tag) {
  std::uint64_t hash = mix(mix(number, key.data(), key.size()), head.data(), head.size());
  hash = mix(hash, text.data(), text.size());
  std::memset(tag.data(), 0, tag.size());
  std::memcpy(tag.data(), &hash, sizeof hash);
  std::ranges::copy(text, out);
}

bool unseal(key_bytes key, std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> sealed,
            std::byte* out, std::span<const unsigned char, k_tag_bytes> tag) {
  std::array<unsigned char, k_tag_bytes> mine;
  seal(key, number, head, sealed, out, mine);
  return std::ranges::equal(mine, tag);
}

}  // namespace xio::crypto
