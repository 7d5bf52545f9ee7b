// SPDX-License-Identifier: MIT
// By libsodium.
#include <sodium.h>

#include "base/crypto.hpp"
#include "base/error.hpp"

namespace xio::crypto {
namespace {

unsigned char* raw(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }
const unsigned char* raw(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }

}  // namespace

const char k_version = '4';
const bool k_proves = true;

void start() {
  if (sodium_init() < 0) fail(XIO_ERR_UNSUPPORTED, "libsodium found no source of random numbers on this machine");
}

std::string why_not_trusted(int, bool) { return {}; }

void public_half(key_bytes own, key_room out) { crypto_scalarmult_base(out.data(), own.data()); }

bool shared_secret(key_bytes own, key_bytes theirs, key_room out) {
  return crypto_scalarmult(out.data(), own.data(), theirs.data()) == 0;
}

void hmac(key_bytes key, std::span<const std::byte> text, key_room out) {
  crypto_auth_hmacsha512256(out.data(), raw(text.data()), text.size(), key.data());
}

void stretch(std::string_view passphrase, key_room out) {
  static_assert(k_salt.size() == crypto_pwhash_SALTBYTES);
  if (crypto_pwhash(out.data(), out.size(), passphrase.data(), passphrase.size(), k_salt.data(), k_passes,
                    std::size_t{k_pass_kib} << 10, crypto_pwhash_ALG_ARGON2ID13) != 0)
    fail(XIO_ERR_NO_MEMORY,
         "no {} KiB of memory are left to stretch the key of the TCP bootstrap; raise the limit, or give a key of 64 "
         "hexadecimal digits, which needs none: openssl rand -hex 32",
         k_pass_kib);
}

void seal(key_bytes key, std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> text,
          std::byte* out, tag_room tag) {
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(raw(out), tag.data(), nullptr, raw(text.data()), text.size(),
                                                     raw(head.data()), head.size(), nullptr, nonce(number).data(),
                                                     key.data());
}

bool unseal(key_bytes key, std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> sealed,
            std::byte* out, std::span<const unsigned char, k_tag_bytes> tag) {
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(raw(out), nullptr, raw(sealed.data()), sealed.size(),
                                                            tag.data(), raw(head.data()), head.size(),
                                                            nonce(number).data(), key.data()) == 0;
}

}  // namespace xio::crypto
