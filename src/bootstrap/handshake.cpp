// SPDX-License-Identifier: MIT
#include "config.h"
#ifdef HAVE_SODIUM
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "base/peer_word.hpp"
#include "bootstrap/bytes.hpp"
#include "bootstrap/handshake.hpp"
#include "bootstrap/mac.hpp"

namespace xio::bootstrap {

namespace {

static_assert(k_mac_bytes == mac::k_bytes);

// The last character is the version of the protocol: another version is another magic.
constexpr std::string_view k_magic = "XIO.TCP3";
static_assert(k_magic.size() == k_magic_bytes);
constexpr std::size_t k_name_bytes = k_magic_bytes - 1;

constexpr std::size_t k_banner_public_key = k_magic_bytes + k_nonce_bytes;
constexpr std::size_t k_hello_public_key = k_magic_bytes + 8 + k_nonce_bytes;
constexpr std::size_t k_hello_signed = k_hello_bytes - k_mac_bytes;
constexpr std::size_t k_reply_signed = k_reply_bytes - k_mac_bytes;

void put_magic(std::byte* at) { std::memcpy(at, k_magic.data(), k_magic_bytes); }

mac hello_mac(const secret& key, const banner_bytes& banner, const hello_bytes& hello) {
  mac m(key, "xio hello from peer");
  m.add(banner);
  m.add(std::span(hello).first(k_hello_signed));
  return m;
}

mac reply_mac(const secret& key, const banner_bytes& banner, const hello_bytes& hello, const reply_bytes& reply) {
  mac m(key, "xio answer from root");
  m.add(banner);
  m.add(hello);
  m.add(std::span(reply).first(k_reply_signed));
  return m;
}

}  // namespace

opening opening_of(std::span<const std::byte> received) {
  const auto start = std::as_bytes(std::span(k_magic));
  const auto same = [&](std::size_t bytes) {
    return std::equal(start.begin(), start.begin() + static_cast<std::ptrdiff_t>(bytes), received.begin());
  };
  if (same(std::min(received.size(), k_magic_bytes))) return opening::ours;
  return received.size() >= k_magic_bytes && same(k_name_bytes) ? opening::other_version : opening::foreign;
}

std::string text_of_other_version(std::span<const std::byte> received) {
  const auto version = static_cast<char>(received[k_name_bytes]);
  return fmt::format("version {} of XIO's TCP protocol, and this rank version {}; run the same XIO on every rank",
                     printable({&version, 1}), k_magic.back());
}

banner_bytes make_banner(const ephemeral_key& root) {
  banner_bytes b;
  put_magic(b.data());
  randombytes_buf(b.data() + k_magic_bytes, k_nonce_bytes);
  std::memcpy(b.data() + k_banner_public_key, root.public_half().data(), k_public_key_bytes);
  return b;
}

hello_bytes make_hello(const secret& key, const banner_bytes& banner, std::uint32_t rank, std::uint32_t size,
                       const ephemeral_key& peer) {
  hello_bytes h;
  put_magic(h.data());
  store_le32(h.data() + k_magic_bytes, rank);
  store_le32(h.data() + k_magic_bytes + 4, size);
  randombytes_buf(h.data() + k_magic_bytes + 8, k_nonce_bytes);
  std::memcpy(h.data() + k_hello_public_key, peer.public_half().data(), k_public_key_bytes);
  hello_mac(key, banner, h).result(h.data() + k_hello_signed);
  return h;
}

std::uint32_t hello_rank(const hello_bytes& hello) { return load_le32(hello.data() + k_magic_bytes); }
std::uint32_t hello_size(const hello_bytes& hello) { return load_le32(hello.data() + k_magic_bytes + 4); }

bool hello_proves_key(const secret& key, const banner_bytes& banner, const hello_bytes& hello) {
  return hello_mac(key, banner, hello).equals(std::span(hello).last(k_mac_bytes));
}

reply_bytes make_reply(const secret& key, const banner_bytes& banner, const hello_bytes& hello, verdict v) {
  reply_bytes a{};
  put_magic(a.data());
  store_le32(a.data() + k_magic_bytes, static_cast<std::uint32_t>(v));
  if (v == verdict::accepted) reply_mac(key, banner, hello, a).result(a.data() + k_reply_signed);
  return a;
}

bool reply_accepts(const secret& key, const banner_bytes& banner, const hello_bytes& hello, const reply_bytes& reply) {
  return load_le32(reply.data() + k_magic_bytes) == static_cast<std::uint32_t>(verdict::accepted) &&
         reply_mac(key, banner, hello, reply).equals(std::span(reply).last(k_mac_bytes));
}

std::optional<session_keys> derive_keys(const secret& key, const banner_bytes& banner, const hello_bytes& hello,
                                        const ephemeral_key& mine, link_end us) {
  // crypto_kx calls the two ends client and server: the peer is the client.
  const auto role = us == link_end::peer ? ephemeral_key::role::caller : ephemeral_key::role::callee;
  const std::byte* theirs =
      us == link_end::peer ? banner.data() + k_banner_public_key : hello.data() + k_hello_public_key;
  ephemeral_key::half to_root, from_root;
  if (!mine.agree(role, reinterpret_cast<const unsigned char*>(theirs), to_root, from_root)) return {};
  session_keys keys;
  const auto derive = [&](std::string_view label, ephemeral_key::half& agreed, secret& out) {
    mac m(key, label);
    m.add(banner);
    m.add(hello);
    m.add(std::as_bytes(std::span(agreed)));
    m.result(out.data());
    sodium_memzero(agreed.data(), agreed.size());
  };
  derive("xio session to root", to_root, keys.to_root);
  derive("xio session from root", from_root, keys.from_root);
  return keys;
}

}  // namespace xio::bootstrap
#endif  // HAVE_SODIUM
