// SPDX-License-Identifier: MIT
#include "config.h"

#include "bootstrap/pair_seals.hpp"

#include <algorithm>

#ifdef HAVE_SODIUM
#include <sodium.h>

#include "bootstrap/bytes.hpp"
#include "bootstrap/world_keys.hpp"

namespace xio::bootstrap {

namespace {

static_assert(secret::k_bytes == crypto_aead_chacha20poly1305_ietf_KEYBYTES && secret::k_bytes == crypto_kdf_KEYBYTES);
static_assert(secret::k_bytes >= crypto_shorthash_KEYBYTES && crypto_shorthash_BYTES == 8);

struct nonce {
  std::byte bytes[crypto_aead_chacha20poly1305_ietf_NPUBBYTES]{};
  explicit nonce(std::uint64_t number) { store_le64(bytes, number); }
  const unsigned char* get() const { return reinterpret_cast<const unsigned char*>(bytes); }
};

const unsigned char* raw(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }
unsigned char* raw(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }

// SipHash-2-4 of the number: some tags that were seen do not say what the next will be.
std::uint64_t tag_of(const secret& key, std::uint64_t number) {
  std::byte in[8], out[8];
  store_le64(in, number);
  crypto_shorthash(raw(out), raw(in), sizeof in, key.data());
  return load_le64(out);
}

}  // namespace

const std::size_t pair_seals::k_bytes = crypto_aead_chacha20poly1305_ietf_ABYTES;

pair_seals::pair_seals(channel& c) : rank_(c.rank()) {
  const auto keys = c.keys();
  for (int rank = 0; rank < c.size(); ++rank) {
    direction to, from;
    if (rank != rank_) {
      const secret both = keys->with(rank, "xio ucx messages");
      const std::uint64_t mine = rank < rank_ ? 1 : 3;  // 1, 2: from the higher rank
      const std::uint64_t theirs = 4 - mine;
      const auto derive = [&](std::uint64_t id, secret& out) {
        crypto_kdf_derive_from_key(out.data(), secret::k_bytes, id, "xiopairs", both.data());
      };
      derive(mine, to.seal);
      derive(mine + 1, to.tag);
      derive(theirs, from.seal);
      derive(theirs + 1, from.tag);
    }
    to_.push_back(to);
    from_.push_back(from);
  }
}

std::uint64_t pair_seals::tag_to(int rank, std::uint64_t number) const {
  return tag_of(to_[static_cast<std::size_t>(rank)].tag, number);
}
std::uint64_t pair_seals::tag_from(int rank, std::uint64_t number) const {
  return tag_of(from_[static_cast<std::size_t>(rank)].tag, number);
}

std::vector<std::byte> pair_seals::seal(int to, std::uint64_t number, std::span<const std::byte> plain) const {
  std::vector<std::byte> sealed(plain.size() + k_bytes);
  crypto_aead_chacha20poly1305_ietf_encrypt(raw(sealed.data()), nullptr, raw(plain.data()), plain.size(), nullptr, 0,
                                            nullptr, nonce(number).get(),
                                            to_[static_cast<std::size_t>(to)].seal.data());
  return sealed;
}

bool pair_seals::unseal(int from, std::uint64_t number, std::span<const std::byte> sealed, std::byte* plain) const {
  return crypto_aead_chacha20poly1305_ietf_decrypt(raw(plain), nullptr, nullptr, raw(sealed.data()), sealed.size(),
                                                   nullptr, 0, nonce(number).get(),
                                                   from_[static_cast<std::size_t>(from)].seal.data()) == 0;
}

}  // namespace xio::bootstrap

#else  // HAVE_SODIUM

namespace xio::bootstrap {

const std::size_t pair_seals::k_bytes = 0;

pair_seals::pair_seals(channel& c) : rank_(c.rank()) {}

// Ranks are below 4096.
std::uint64_t pair_seals::tag_to(int, std::uint64_t number) const {
  return number << 16 | static_cast<std::uint64_t>(rank_);
}
std::uint64_t pair_seals::tag_from(int rank, std::uint64_t number) const {
  return number << 16 | static_cast<std::uint64_t>(rank);
}

std::vector<std::byte> pair_seals::seal(int, std::uint64_t, std::span<const std::byte> plain) const {
  return {plain.begin(), plain.end()};
}

bool pair_seals::unseal(int, std::uint64_t, std::span<const std::byte> sealed, std::byte* plain) const {
  std::copy(sealed.begin(), sealed.end(), plain);
  return true;
}

}  // namespace xio::bootstrap

#endif
