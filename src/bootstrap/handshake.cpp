// SPDX-License-Identifier: MIT
#include <algorithm>

#include "base/error.hpp"
#include "base/mac.hpp"
#include "base/peer_word.hpp"
#include "bootstrap/bytes.hpp"
#include "bootstrap/handshake.hpp"

namespace xio::bootstrap {

namespace {

static_assert(k_mac_bytes == mac::k_bytes);

// Then the version of the protocol, which is the last character: another version is another magic.
constexpr std::string_view k_name = "XIO.TCP";
constexpr std::size_t k_name_bytes = k_magic_bytes - 1;
static_assert(k_name.size() == k_name_bytes);

constexpr std::size_t k_banner_public_key = k_magic_bytes + k_nonce_bytes;
constexpr std::size_t k_hello_public_key = k_magic_bytes + 8 + k_nonce_bytes;
constexpr std::size_t k_hello_signed = k_hello_bytes - k_mac_bytes;
constexpr std::size_t k_reply_signed = k_reply_bytes - k_mac_bytes;

void put_magic(std::byte* at) {
  std::memcpy(at, k_name.data(), k_name_bytes);
  at[k_name_bytes] = static_cast<std::byte>(crypto::k_version);
}

mac hello_mac(const secret& key, const banner_bytes& banner, const hello_bytes& hello) {
  mac m(key.data(), "xio hello from peer");
  m.add(banner);
  m.add(std::span(hello).first(k_hello_signed));
  return m;
}

mac reply_mac(const secret& key, const banner_bytes& banner, const hello_bytes& hello, const reply_bytes& reply) {
  mac m(key.data(), "xio answer from root");
  m.add(banner);
  m.add(hello);
  m.add(std::span(reply).first(k_reply_signed));
  return m;
}

}  // namespace

opening opening_of(std::span<const std::byte> received) {
  std::array<std::byte, k_magic_bytes> start;
  put_magic(start.data());
  const auto same = [&](std::size_t bytes) {
    return std::equal(start.begin(), start.begin() + static_cast<std::ptrdiff_t>(bytes), received.begin());
  };
  if (same(std::min(received.size(), k_magic_bytes))) return opening::ours;
  return received.size() >= k_magic_bytes && same(k_name_bytes) ? opening::other_version : opening::foreign;
}

std::string text_of_other_version(std::span<const std::byte> received) {
  const auto version = static_cast<char>(received[k_name_bytes]);
  const auto named = [](char v) { return v == 'n' ? "n (built without libsodium and OpenSSL)" : printable({&v, 1}); };
  return fmt::format("version {} of XIO's TCP protocol, and this rank version {}; run the same XIO on every rank",
                     named(version), named(crypto::k_version));
}

banner_bytes make_banner(const ephemeral_key& root) {
  banner_bytes b;
  put_magic(b.data());
  crypto::fill_random(b.data() + k_magic_bytes, k_nonce_bytes);
  std::memcpy(b.data() + k_banner_public_key, root.public_half().data(), k_public_key_bytes);
  return b;
}

hello_bytes make_hello(const secret& key, const banner_bytes& banner, std::uint32_t rank, std::uint32_t size,
                       const ephemeral_key& peer) {
  hello_bytes h;
  put_magic(h.data());
  store_le32(h.data() + k_magic_bytes, rank);
  store_le32(h.data() + k_magic_bytes + 4, size);
  crypto::fill_random(h.data() + k_magic_bytes + 8, k_nonce_bytes);
  std::memcpy(h.data() + k_hello_public_key, peer.public_half().data(), k_public_key_bytes);
  hello_mac(key, banner, h).result(h.data() + k_hello_signed);
  return h;
}

std::uint32_t hello_rank(const hello_bytes& hello) { return load_le32(hello.data() + k_magic_bytes); }
std::uint32_t hello_size(const hello_bytes& hello) { return load_le32(hello.data() + k_magic_bytes + 4); }

bool hello_proves_key(const secret& key, const banner_bytes& banner, const hello_bytes& hello) {
  return hello_mac(key, banner, hello).equals(hello.data() + k_hello_signed);
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
         reply_mac(key, banner, hello, reply).equals(reply.data() + k_reply_signed);
}

std::optional<session_keys> derive_keys(const secret& key, const banner_bytes& banner, const hello_bytes& hello,
                                        const ephemeral_key& mine, link_end us) {
  const std::byte* theirs =
      us == link_end::peer ? banner.data() + k_banner_public_key : hello.data() + k_hello_public_key;
  ephemeral_key::half both;
  if (!mine.agree(reinterpret_cast<const unsigned char*>(theirs), both)) return {};
  session_keys keys;
  const auto derive = [&](std::string_view label, secret& out) {
    mac m(key.data(), label);
    m.add(banner);
    m.add(hello);
    m.add(both.data(), both.size());
    m.result(out.data());
  };
  derive("xio session to root", keys.to_root);
  derive("xio session from root", keys.from_root);
  explicit_bzero(both.data(), both.size());
  return keys;
}

}  // namespace xio::bootstrap
