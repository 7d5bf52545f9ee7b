// SPDX-License-Identifier: MIT
// A key pair for one connection (X25519, by libsodium's crypto_kx). Both ends forget it as soon as they have the keys
// of their connection, so that a secret that leaks later opens nothing that was recorded before: forward secrecy. This
// does not prove the identity of the other end; a proof by a shared key has to cover both open halves.
#pragma once
#include <array>
#include <cstddef>

namespace xio {

class ephemeral_key {
 public:
  static constexpr std::size_t k_bytes = 32;
  using half = std::array<unsigned char, k_bytes>;
  // Of the two ends, the one that speaks first in what is called `caller` here. The same on both ends.
  enum class role { caller, callee };

  ephemeral_key();                          // a fresh one
  explicit ephemeral_key(const half& own);  // of that secret half; for test vectors
  ~ephemeral_key();
  ephemeral_key(const ephemeral_key&) = delete;
  ephemeral_key& operator=(const ephemeral_key&) = delete;

  const half& public_half() const { return public_half_; }  // what the other end may see, and everybody else

  // Key material of each direction, the same at both ends; `theirs` is the other's open half. False: it is none, for it
  // would make a secret that everybody knows.
  bool agree(role us, const unsigned char* theirs, half& from_caller, half& from_callee) const;

 private:
  half own_, public_half_;
};

}  // namespace xio
