// SPDX-License-Identifier: MIT
// The secret that every rank of a world is given.
#pragma once
#include "base/options.hpp"

namespace xio::bootstrap {

// 32 key bytes that are wiped when they go.
class secret {
 public:
  static constexpr std::size_t k_bytes = 32;
  secret() = default;
  secret(const secret&) = default;
  secret& operator=(const secret&) = default;
  ~secret();
  unsigned char* data() { return bytes_.data(); }
  const unsigned char* data() const { return bytes_.data(); }
  std::span<unsigned char, k_bytes> room() { return bytes_; }
  std::span<const unsigned char, k_bytes> view() const { return bytes_; }

 private:
  std::array<unsigned char, k_bytes> bytes_{};
};

// Shortest key text that is taken; XIO_TCP_KEY's row in base/options.def says the same.
inline constexpr std::size_t k_key_text_min = 16;

// From XIO_TCP_KEY or XIO_TCP_KEY_FILE. 64 hexadecimal digits are a key of 32 random bytes and taken as they are; any
// other text is a passphrase and stretched (base/crypto.hpp), which takes 12 MiB and about 10 ms. Throws XIO_ERR_CONFIG
// if none, both, or too short a key is given, and XIO_ERR_AUTH for a file that anybody else could have read or written.
secret load_key(const bootstrap_options& o);
bool has_key(const bootstrap_options& o);

}  // namespace xio::bootstrap
