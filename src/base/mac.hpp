// SPDX-License-Identifier: MIT
// A MAC over several pieces. Its first piece is a label, which says what it is for.
#pragma once
#include <string.h>

#include <vector>

#include "base/crypto.hpp"

namespace xio {

class mac {
 public:
  static constexpr std::size_t k_bytes = crypto::k_key_bytes;

  mac(const unsigned char* key, std::string_view label) : key_(key) {
    text_.reserve(k_room);
    add(label.data(), label.size());
  }
  ~mac() { explicit_bzero(text_.data(), text_.size()); }
  mac(const mac&) = default;
  mac& operator=(const mac&) = delete;

  void add(std::span<const std::byte> bytes) { text_.insert(text_.end(), bytes.begin(), bytes.end()); }
  void add(const void* bytes, std::size_t count) { add({static_cast<const std::byte*>(bytes), count}); }
  void result(unsigned char* out) const {
    crypto::hmac(crypto::key_bytes(key_, k_bytes), text_, crypto::key_room(out, k_bytes));
  }
  void result(std::byte* out) const { result(reinterpret_cast<unsigned char*>(out)); }
  bool equals(const void* given) const {
    unsigned char mine[k_bytes];
    result(mine);
    return crypto::equal(mine, given, k_bytes);
  }

 private:
  // All pieces have room, so that no copy of a secret stays behind where a vector has grown.
  static constexpr std::size_t k_room = 1024;
  const unsigned char* key_;
  std::vector<std::byte> text_;
};

}  // namespace xio
