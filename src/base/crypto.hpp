// SPDX-License-Identifier: MIT
// Proofs and seals of connections. One of three files implements it, by what configure found: crypto_sodium.cpp,
// crypto_openssl.cpp, or crypto_none.cpp, which proves nothing. The first two make the same bytes, so that PEs with
// either connect to each other.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace xio::crypto {

inline constexpr std::size_t k_key_bytes = 32, k_tag_bytes = 16;
using key_bytes = std::span<const unsigned char, k_key_bytes>;
using key_room = std::span<unsigned char, k_key_bytes>;
using tag_room = std::span<unsigned char, k_tag_bytes>;

// The last character of the magics of XIO's protocols. A build that proves nothing has one of its own, so that the
// others refuse it with a sentence.
extern const char k_version;
extern const bool k_proves;

// Before all else. Throws XIO_ERR_UNSUPPORTED where the machine lacks what the library needs.
void start();

// "": the connection may be used. With a library that proves nothing: if the kernel says that its other end is a
// process of this user on this machine, or the user trusts the network. The other end has accepted it.
std::string why_not_trusted(int fd, bool trust_network);

// X25519 (RFC 7748). False: `theirs` would make a secret that everybody knows.
void public_half(key_bytes own, key_room out);
bool shared_secret(key_bytes own, key_bytes theirs, key_room out);

// HMAC-SHA-512 (RFC 2104), of which the first 32 bytes are kept.
void hmac(key_bytes key, std::span<const std::byte> text, key_room out);

// Argon2id (RFC 9106) with a constant salt: 3 passes over 12 MiB.
void stretch(std::string_view passphrase, key_room out);
inline constexpr std::uint32_t k_passes = 3, k_pass_kib = 12 * 1024;
inline constexpr std::array<unsigned char, 16> k_salt{'x', 'i', 'o', ' ', 't', 'c', 'p', ' ',
                                                      'k', 'e', 'y', ' ', 's', 'a', 'l', 't'};

// ChaCha20-Poly1305 (RFC 8439 section 2.8) with the nonce number | 0; `head` is under the tag as it is. `out` has as
// many bytes as the text.
void seal(key_bytes key, std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> text,
          std::byte* out, tag_room tag);
bool unseal(key_bytes key, std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> sealed,
            std::byte* out, std::span<const unsigned char, k_tag_bytes> tag);
struct nonce : std::array<unsigned char, 12> {
  explicit nonce(std::uint64_t number) : array{} {
    for (std::size_t i = 0; i < sizeof number; ++i) (*this)[i] = static_cast<unsigned char>(number >> (8 * i));
  }
};

// The same for all three.
void fill_random(void* to, std::size_t bytes);
bool equal(const void* one, const void* other, std::size_t bytes);  // in a time that says nothing about them

}  // namespace xio::crypto
