// SPDX-License-Identifier: MIT
// How two ends of a TCP connection prove to each other that they hold the same key. Three messages of fixed size:
//
//   root -> peer   banner  magic, nonce R
//   peer -> root   hello   magic, rank, size, nonce P, MAC(key, "peer" | banner | hello so far)
//   root -> peer   answer  magic, verdict, MAC(key, "root" | banner | hello | verdict)
//
// Nothing else is read from a connection before its proof stands. Both nonces are under both MACs, so a recorded
// handshake is worth nothing; the two labels differ, so one side's proof cannot be sent back to it. The keys of the
// frames that follow (link.hpp) are derived from key, nonces, rank and size, one for each direction.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "bootstrap/key.hpp"

namespace xio::bootstrap {

inline constexpr std::size_t k_magic_bytes = 8;
inline constexpr std::size_t k_nonce_bytes = 32;
inline constexpr std::size_t k_mac_bytes = 32;  // crypto_auth: HMAC-SHA-512-256
inline constexpr std::size_t k_banner_bytes = k_magic_bytes + k_nonce_bytes;
inline constexpr std::size_t k_hello_bytes = k_magic_bytes + 4 + 4 + k_nonce_bytes + k_mac_bytes;
inline constexpr std::size_t k_answer_bytes = k_magic_bytes + 4 + k_mac_bytes;

using banner_bytes = std::array<std::byte, k_banner_bytes>;
using hello_bytes = std::array<std::byte, k_hello_bytes>;
using answer_bytes = std::array<std::byte, k_answer_bytes>;

enum class verdict : std::uint32_t { accepted = 1, refused = 2 };

struct session_keys {
  secret to_root, from_root;
};

// False as soon as the bytes received so far cannot be the start of one of the messages.
bool may_be_ours(std::span<const std::byte> received);

banner_bytes make_banner();
hello_bytes make_hello(const secret& key, const banner_bytes& banner, std::uint32_t rank, std::uint32_t size);
std::uint32_t hello_rank(const hello_bytes& hello);
std::uint32_t hello_size(const hello_bytes& hello);
bool hello_proves_key(const secret& key, const banner_bytes& banner, const hello_bytes& hello);

// A refusal carries no MAC: a peer that proved nothing gets nothing made with the key.
answer_bytes make_answer(const secret& key, const banner_bytes& banner, const hello_bytes& hello, verdict v);
bool answer_accepts(const secret& key, const banner_bytes& banner, const hello_bytes& hello,
                    const answer_bytes& answer);

session_keys derive_keys(const secret& key, const banner_bytes& banner, const hello_bytes& hello);

}  // namespace xio::bootstrap
