// SPDX-License-Identifier: MIT
// By OpenSSL's libcrypto, from version 3.0 on; passphrases by Argon2id from 3.2 on.
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <memory>

#include "base/crypto.hpp"
#include "base/error.hpp"

namespace xio::crypto {
namespace {

template <auto Free>
struct freed_by {
  template <class T>
  void operator()(T* p) const {
    Free(p);
  }
};
template <class T, auto Free>
using owned = std::unique_ptr<T, freed_by<Free>>;

// A call that fails leaves an entry in the thread's list of errors, which is the program's.
struct own_errors {
  own_errors() { ERR_set_mark(); }
  ~own_errors() { ERR_pop_to_mark(); }
};

unsigned char* raw(std::byte* p) { return reinterpret_cast<unsigned char*>(p); }
const unsigned char* raw(const std::byte* p) { return reinterpret_cast<const unsigned char*>(p); }

[[noreturn]] void fail_without(const char* what) {
  fail(XIO_ERR_UNSUPPORTED,
       "OpenSSL's libcrypto has no {} in this process, which proves connections; look at its configuration "
       "(OPENSSL_CONF, FIPS), or build XIO with libsodium",
       what);
}

const EVP_CIPHER* chacha() {
  static const EVP_CIPHER* const one = EVP_CIPHER_fetch(nullptr, "ChaCha20-Poly1305", nullptr);
  return one;
}

// Encrypts (1) or decrypts (0). False: the tag is wrong.
bool run(int encrypts, key_bytes key, std::uint64_t number, std::span<const std::byte> head,
         std::span<const std::byte> text, std::byte* out, tag_room tag) {
  const own_errors hold;
  const owned<EVP_CIPHER_CTX, EVP_CIPHER_CTX_free> c(EVP_CIPHER_CTX_new());
  int n = 0;
  unsigned char rest[1];
  const auto size = [](auto bytes) { return static_cast<int>(bytes.size()); };
  return c && EVP_CipherInit_ex2(c.get(), chacha(), key.data(), nonce(number).data(), encrypts, nullptr) == 1 &&
         (encrypts != 0 || EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_AEAD_SET_TAG, size(tag), tag.data()) == 1) &&
         (head.empty() || EVP_CipherUpdate(c.get(), nullptr, &n, raw(head.data()), size(head)) == 1) &&
         (text.empty() || EVP_CipherUpdate(c.get(), raw(out), &n, raw(text.data()), size(text)) == 1) &&
         EVP_CipherFinal_ex(c.get(), rest, &n) == 1 &&
         (encrypts == 0 || EVP_CIPHER_CTX_ctrl(c.get(), EVP_CTRL_AEAD_GET_TAG, size(tag), tag.data()) == 1);
}

}  // namespace

const char k_version = '4';
const bool k_proves = true;

void start() {
  const own_errors hold;
  // No handler of libcrypto at the program's exit, unless the program has used it before.
  if (OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr) != 1) fail_without("its start");
  if (chacha() == nullptr) fail_without("ChaCha20-Poly1305");
  std::array<unsigned char, k_key_bytes> out, one{1};
  public_half(one, out);
}

std::string why_not_trusted(int, bool) { return {}; }

void public_half(key_bytes own, key_room out) {
  const own_errors hold;
  const owned<EVP_PKEY, EVP_PKEY_free> key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, own.data(), own.size()));
  std::size_t n = out.size();
  if (!key || EVP_PKEY_get_raw_public_key(key.get(), out.data(), &n) != 1 || n != out.size()) fail_without("X25519");
}

bool shared_secret(key_bytes own, key_bytes theirs, key_room out) {
  const own_errors hold;
  const owned<EVP_PKEY, EVP_PKEY_free> mine(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, own.data(), own.size())),
      other(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, theirs.data(), theirs.size()));
  if (!mine || !other) return false;
  const owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free> c(EVP_PKEY_CTX_new(mine.get(), nullptr));
  std::size_t n = out.size();
  return c && EVP_PKEY_derive_init(c.get()) == 1 && EVP_PKEY_derive_set_peer(c.get(), other.get()) == 1 &&
         EVP_PKEY_derive(c.get(), out.data(), &n) == 1 && n == out.size();
}

void hmac(key_bytes key, std::span<const std::byte> text, key_room out) {
  const own_errors hold;
  unsigned char whole[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (HMAC(EVP_sha512(), key.data(), static_cast<int>(key.size()), raw(text.data()), text.size(), whole, &n) == nullptr)
    fail_without("HMAC-SHA-512");
  std::copy_n(whole, out.size(), out.begin());
  OPENSSL_cleanse(whole, sizeof whole);
}

void stretch(std::string_view passphrase, key_room out) {
  const own_errors hold;
  const owned<EVP_KDF, EVP_KDF_free> kdf(EVP_KDF_fetch(nullptr, "ARGON2ID", nullptr));
  const owned<EVP_KDF_CTX, EVP_KDF_CTX_free> c(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  std::uint32_t passes = k_passes, kib = k_pass_kib;
  OSSL_PARAM all[] = {
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_PASSWORD, const_cast<char*>(passphrase.data()),
                                        passphrase.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_SALT, const_cast<unsigned char*>(k_salt.data()), k_salt.size()),
      OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_ITER, &passes), OSSL_PARAM_construct_uint32("memcost", &kib),
      OSSL_PARAM_construct_end()};
  if (!c || EVP_KDF_derive(c.get(), out.data(), out.size(), all) != 1)
    fail(XIO_ERR_UNSUPPORTED,
         "{} cannot stretch a passphrase (Argon2id, from OpenSSL 3.2 on; 12 MiB of memory); give a key of 64 "
         "hexadecimal digits, which needs none: openssl rand -hex 32",
         OpenSSL_version(OPENSSL_VERSION));
}

void seal(key_bytes key, std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> text,
          std::byte* out, tag_room tag) {
  if (!run(1, key, number, head, text, out, tag)) fail_without("ChaCha20-Poly1305");
}

bool unseal(key_bytes key, std::uint64_t number, std::span<const std::byte> head, std::span<const std::byte> sealed,
            std::byte* out, std::span<const unsigned char, k_tag_bytes> tag) {
  std::array<unsigned char, k_tag_bytes> given;
  std::ranges::copy(tag, given.begin());
  return run(0, key, number, head, sealed, out, given);
}

}  // namespace xio::crypto
