// SPDX-License-Identifier: MIT
// How two ends of a TCP connection prove to each other that they hold the same key. Three messages of fixed size:
//
//   root -> peer   banner  magic, nonce R, open key E
//   peer -> root   hello   magic, rank, size, nonce P, open key F, MAC(key, "peer" | banner | hello so far)
//   root -> peer   reply   magic, verdict, MAC(key, "root" | banner | hello | verdict)
//
// Nothing else is read from a connection before its proof stands. Both nonces and both open keys are under both MACs,
// so a recorded handshake is worth nothing and nobody can stand in the middle; the two labels differ, so one side's
// proof cannot be sent back to it. The keys of the frames that follow (link.hpp) come from key, banner, hello and what
// E and F agree on (base/ephemeral_key.hpp), one for each direction: an attacker that learns `key` later cannot open
// frames that were recorded.
#pragma once
#include "base/ephemeral_key.hpp"
#include "bootstrap/key.hpp"

namespace xio::bootstrap {

inline constexpr std::size_t k_magic_bytes = 8;
inline constexpr std::size_t k_nonce_bytes = 32;
inline constexpr std::size_t k_mac_bytes = 32;  // base/mac.hpp
inline constexpr std::size_t k_public_key_bytes = ephemeral_key::k_bytes;
inline constexpr std::size_t k_banner_bytes = k_magic_bytes + k_nonce_bytes + k_public_key_bytes;
inline constexpr std::size_t k_hello_bytes = k_magic_bytes + 4 + 4 + k_nonce_bytes + k_public_key_bytes + k_mac_bytes;
inline constexpr std::size_t k_reply_bytes = k_magic_bytes + 4 + k_mac_bytes;

using banner_bytes = std::array<std::byte, k_banner_bytes>;
using hello_bytes = std::array<std::byte, k_hello_bytes>;
using reply_bytes = std::array<std::byte, k_reply_bytes>;

enum class verdict : std::uint32_t { accepted = 1, refused = 2 };

struct session_keys {
  secret to_root, from_root;
};

// The kinds of message that the bytes received so far can be the start of.
enum class opening { ours, other_version, foreign };
opening opening_of(std::span<const std::byte> received);
// "version 1 ... of XIO's TCP protocol, and this rank version 3; run the same XIO on every rank", for other_version.
std::string text_of_other_version(std::span<const std::byte> received);

banner_bytes make_banner(const ephemeral_key& root);
hello_bytes make_hello(const secret& key, const banner_bytes& banner, std::uint32_t rank, std::uint32_t size,
                       const ephemeral_key& peer);
std::uint32_t hello_rank(const hello_bytes& hello);
std::uint32_t hello_size(const hello_bytes& hello);
bool hello_proves_key(const secret& key, const banner_bytes& banner, const hello_bytes& hello);

// A refusal carries no MAC: a peer that proved nothing gets nothing made with the key.
reply_bytes make_reply(const secret& key, const banner_bytes& banner, const hello_bytes& hello, verdict v);
bool reply_accepts(const secret& key, const banner_bytes& banner, const hello_bytes& hello, const reply_bytes& reply);

// With the key pair that this end gave the open half of. None: the other's open half is no key.
enum class link_end { root, peer };
std::optional<session_keys> derive_keys(const secret& key, const banner_bytes& banner, const hello_bytes& hello,
                                        const ephemeral_key& mine, link_end us);

}  // namespace xio::bootstrap
