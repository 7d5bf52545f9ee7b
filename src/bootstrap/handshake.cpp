// SPDX-License-Identifier: MIT
#include "config.h"
#ifdef HAVE_SODIUM
#include <sodium.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "bootstrap/bytes.hpp"
#include "bootstrap/handshake.hpp"

namespace xio::bootstrap {

namespace {

static_assert(k_mac_bytes == crypto_auth_BYTES);
static_assert(secret::k_bytes == crypto_auth_KEYBYTES && secret::k_bytes == crypto_kdf_KEYBYTES);

// The last character is the version of the protocol: another version is another magic.
constexpr std::string_view k_magic = "XIO.TCP1";
static_assert(k_magic.size() == k_magic_bytes);

constexpr std::size_t k_hello_signed = k_hello_bytes - k_mac_bytes;
constexpr std::size_t k_answer_signed = k_answer_bytes - k_mac_bytes;

void put_magic(std::byte* at) { std::memcpy(at, k_magic.data(), k_magic_bytes); }

class mac {
 public:
  mac(const secret& key, std::string_view label) {
    crypto_auth_hmacsha512256_init(&state_, key.data(), secret::k_bytes);
    add(std::as_bytes(std::span(label)));
  }
  void add(std::span<const std::byte> bytes) {
    crypto_auth_hmacsha512256_update(&state_, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  }
  std::array<unsigned char, k_mac_bytes> result() {
    std::array<unsigned char, k_mac_bytes> out;
    crypto_auth_hmacsha512256_final(&state_, out.data());
    return out;
  }
  bool equals(std::span<const std::byte> given) {
    const auto mine = result();
    return given.size() == mine.size() && sodium_memcmp(mine.data(), given.data(), mine.size()) == 0;
  }

 private:
  crypto_auth_hmacsha512256_state state_;
};

mac hello_mac(const secret& key, const banner_bytes& banner, const hello_bytes& hello) {
  mac m(key, "xio hello from peer");
  m.add(banner);
  m.add(std::span(hello).first(k_hello_signed));
  return m;
}

mac answer_mac(const secret& key, const banner_bytes& banner, const hello_bytes& hello, const answer_bytes& answer) {
  mac m(key, "xio answer from root");
  m.add(banner);
  m.add(hello);
  m.add(std::span(answer).first(k_answer_signed));
  return m;
}

}  // namespace

bool may_be_ours(std::span<const std::byte> received) {
  const auto start = std::as_bytes(std::span(k_magic));
  return std::equal(received.begin(),
                    received.begin() + static_cast<std::ptrdiff_t>(std::min(received.size(), k_magic_bytes)),
                    start.begin());
}

banner_bytes make_banner() {
  banner_bytes b;
  put_magic(b.data());
  randombytes_buf(b.data() + k_magic_bytes, k_nonce_bytes);
  return b;
}

hello_bytes make_hello(const secret& key, const banner_bytes& banner, std::uint32_t rank, std::uint32_t size) {
  hello_bytes h;
  put_magic(h.data());
  store_le32(h.data() + k_magic_bytes, rank);
  store_le32(h.data() + k_magic_bytes + 4, size);
  randombytes_buf(h.data() + k_magic_bytes + 8, k_nonce_bytes);
  const auto proof = hello_mac(key, banner, h).result();
  std::memcpy(h.data() + k_hello_signed, proof.data(), proof.size());
  return h;
}

std::uint32_t hello_rank(const hello_bytes& hello) { return load_le32(hello.data() + k_magic_bytes); }
std::uint32_t hello_size(const hello_bytes& hello) { return load_le32(hello.data() + k_magic_bytes + 4); }

bool hello_proves_key(const secret& key, const banner_bytes& banner, const hello_bytes& hello) {
  return hello_mac(key, banner, hello).equals(std::span(hello).last(k_mac_bytes));
}

answer_bytes make_answer(const secret& key, const banner_bytes& banner, const hello_bytes& hello, verdict v) {
  answer_bytes a{};
  put_magic(a.data());
  store_le32(a.data() + k_magic_bytes, static_cast<std::uint32_t>(v));
  if (v == verdict::accepted) {
    const auto proof = answer_mac(key, banner, hello, a).result();
    std::memcpy(a.data() + k_answer_signed, proof.data(), proof.size());
  }
  return a;
}

bool answer_accepts(const secret& key, const banner_bytes& banner, const hello_bytes& hello,
                    const answer_bytes& answer) {
  return load_le32(answer.data() + k_magic_bytes) == static_cast<std::uint32_t>(verdict::accepted) &&
         answer_mac(key, banner, hello, answer).equals(std::span(answer).last(k_mac_bytes));
}

session_keys derive_keys(const secret& key, const banner_bytes& banner, const hello_bytes& hello) {
  mac m(key, "xio session");
  m.add(banner);
  m.add(hello);
  auto master = m.result();
  session_keys keys;
  crypto_kdf_derive_from_key(keys.to_root.data(), secret::k_bytes, 1, "xioframe", master.data());
  crypto_kdf_derive_from_key(keys.from_root.data(), secret::k_bytes, 2, "xioframe", master.data());
  sodium_memzero(master.data(), master.size());
  return keys;
}

}  // namespace xio::bootstrap
#endif  // HAVE_SODIUM
