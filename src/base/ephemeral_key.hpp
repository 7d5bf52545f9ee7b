// SPDX-License-Identifier: MIT
// A key pair for one connection (X25519). Both ends forget it as soon as they have the keys of their connection, so
// that a secret that leaks later opens nothing that was recorded before: forward secrecy. This does not prove the
// identity of the other end; a proof by a shared key has to cover both open halves.
#pragma once
#include <string.h>

#include "base/crypto.hpp"

namespace xio {

class ephemeral_key {
 public:
  static constexpr std::size_t k_bytes = crypto::k_key_bytes;
  using half = std::array<unsigned char, k_bytes>;

  ephemeral_key() {
    crypto::fill_random(own_.data(), k_bytes);
    crypto::public_half(own_, public_half_);
  }
  explicit ephemeral_key(const half& own) : own_(own) { crypto::public_half(own_, public_half_); }  // for test vectors
  ~ephemeral_key() { explicit_bzero(own_.data(), k_bytes); }
  ephemeral_key& operator=(ephemeral_key&&) = delete;

  const half& public_half() const { return public_half_; }  // what the other end may see, and everybody else

  // Makes the secret that both ends share; `theirs` is the other's open half. Keys are made of it by a MAC over both
  // open halves. False: it is none, for it would make a secret that everybody knows.
  bool agree(const unsigned char* theirs, half& both) const {
    return crypto::shared_secret(own_, crypto::key_bytes(theirs, k_bytes), both);
  }

 private:
  half own_, public_half_;
};

}  // namespace xio
