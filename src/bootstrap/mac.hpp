// SPDX-License-Identifier: MIT
// A MAC over several pieces: HMAC-SHA-512-256, by libsodium. Its first piece is a label, which says what it is for.
#pragma once
#include <sodium.h>

#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "bootstrap/key.hpp"

namespace xio::bootstrap {

class mac {
 public:
  static constexpr std::size_t k_bytes = crypto_auth_hmacsha512256_BYTES;
  static_assert(secret::k_bytes == crypto_auth_hmacsha512256_KEYBYTES && k_bytes == secret::k_bytes);

  mac(const secret& key, std::string_view label) {
    crypto_auth_hmacsha512256_init(&state_, key.data(), secret::k_bytes);
    add(std::as_bytes(std::span(label)));
  }
  ~mac() { sodium_memzero(&state_, sizeof state_); }
  mac(const mac&) = default;
  mac& operator=(const mac&) = default;

  void add(std::span<const std::byte> bytes) {
    crypto_auth_hmacsha512256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  }
  void result(unsigned char* out) { crypto_auth_hmacsha512256_final(&state_, out); }
  void result(std::byte* out) { result(reinterpret_cast<unsigned char*>(out)); }
  bool equals(std::span<const std::byte> given) {
    unsigned char mine[k_bytes];
    result(mine);
    return given.size() == k_bytes && sodium_memcmp(mine, given.data(), k_bytes) == 0;
  }

 private:
  crypto_auth_hmacsha512256_state state_;
};

}  // namespace xio::bootstrap
