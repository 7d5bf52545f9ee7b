// SPDX-License-Identifier: MIT
#include "proxy/tcp_proof.hpp"

#include <sodium.h>

#include <cstring>
#include <string_view>

namespace xio::proxy::tcp {

namespace {

static_assert(k_mac_bytes == crypto_auth_hmacsha512256_BYTES);
static_assert(sizeof(tcp_key) == crypto_auth_hmacsha512256_KEYBYTES);
static_assert(sizeof(tcp_key) == crypto_aead_chacha20poly1305_ietf_KEYBYTES);
static_assert(sizeof(tcp_key) == ephemeral_key::k_bytes && sizeof(tcp_key) == k_mac_bytes);
static_assert(k_tag_bytes == crypto_aead_chacha20poly1305_ietf_ABYTES);

// The last character is the version of the protocol.
constexpr unsigned char k_magic[8] = {'X', 'I', 'O', '.', 'N', 'I', 'C', '2'};
constexpr std::size_t k_reply_signed = offsetof(reply, mac);

class mac {
 public:
  ~mac() { sodium_memzero(&state_, sizeof state_); }
  mac(const tcp_key& key, std::string_view label) {
    crypto_auth_hmacsha512256_init(&state_, key.data(), key.size());
    add(label.data(), label.size());
  }
  void add(const void* bytes, std::size_t count) {
    crypto_auth_hmacsha512256_update(&state_, static_cast<const unsigned char*>(bytes), count);
  }
  void result(unsigned char* out) { crypto_auth_hmacsha512256_final(&state_, out); }

 private:
  crypto_auth_hmacsha512256_state state_;
};

void reply_mac(const tcp_key& key, const hello& h, const reply& a, unsigned char* out) {
  mac m(key, "xio nic answer");
  m.add(&h, sizeof h);
  m.add(&a, k_reply_signed);
  m.result(out);
}

void proof_mac(const tcp_key& key, const hello& h, const reply& a, unsigned char* out) {
  mac m(key, "xio nic proof");
  m.add(&h, sizeof h);
  m.add(&a, sizeof a);
  m.result(out);
}

}  // namespace

void fill_random(void* to, std::size_t bytes) { randombytes_buf(to, bytes); }

hello make_hello(std::uint32_t caller, std::uint32_t callee, const identity& target, const ephemeral_key& mine) {
  hello h{};
  std::memcpy(h.magic, k_magic, sizeof k_magic);
  h.caller = caller;
  h.callee = callee;
  std::memcpy(h.target, target.data(), target.size());
  randombytes_buf(h.nonce, sizeof h.nonce);
  std::memcpy(h.public_key, mine.public_half().data(), sizeof h.public_key);
  return h;
}

bool is_hello(const hello& h) { return std::memcmp(h.magic, k_magic, sizeof k_magic) == 0; }

bool is_hello_of_another_version(const hello& h) {
  return std::memcmp(h.magic, k_magic, sizeof k_magic - 1) == 0 && !is_hello(h);
}

reply make_reply(const tcp_key& key, const hello& h, const ephemeral_key& mine) {
  reply a{};
  std::memcpy(a.magic, k_magic, sizeof k_magic);
  randombytes_buf(a.nonce, sizeof a.nonce);
  std::memcpy(a.public_key, mine.public_half().data(), sizeof a.public_key);
  reply_mac(key, h, a, a.mac);
  return a;
}

bool is_proven(const tcp_key& key, const hello& h, const reply& a) {
  unsigned char wanted[k_mac_bytes];
  reply_mac(key, h, a, wanted);
  return std::memcmp(a.magic, k_magic, sizeof k_magic) == 0 && sodium_memcmp(wanted, a.mac, sizeof wanted) == 0;
}

proof make_proof(const tcp_key& key, const hello& h, const reply& a) {
  proof p{};
  proof_mac(key, h, a, p.mac);
  return p;
}

bool is_proven(const tcp_key& key, const hello& h, const reply& a, const proof& p) {
  unsigned char wanted[k_mac_bytes];
  proof_mac(key, h, a, wanted);
  return sodium_memcmp(wanted, p.mac, sizeof wanted) == 0;
}

bool agree(const tcp_key& key, const hello& h, const reply& a, const ephemeral_key& mine, bool is_caller,
           session& out) {
  const auto role = is_caller ? ephemeral_key::role::caller : ephemeral_key::role::callee;
  ephemeral_key::half from_caller, from_callee;
  if (!mine.agree(role, is_caller ? a.public_key : h.public_key, from_caller, from_callee)) return false;
  const auto derive = [&](std::string_view label, ephemeral_key::half& agreed, tcp_key& to) {
    mac m(key, label);
    m.add(&h, sizeof h);
    m.add(&a, sizeof a);
    m.add(agreed.data(), agreed.size());
    m.result(to.data());
    sodium_memzero(agreed.data(), agreed.size());
  };
  derive("xio nic records of the caller", from_caller, out.from_caller);
  derive("xio nic records of the callee", from_callee, out.from_callee);
  return true;
}

void seal::start(const tcp_key& key) {
  key_ = key;
  number_ = 0;
}

namespace {

struct nonce {
  unsigned char bytes[crypto_aead_chacha20poly1305_ietf_NPUBBYTES]{};
  explicit nonce(std::uint64_t number) { std::memcpy(bytes, &number, sizeof number); }
};

}  // namespace

// The length is under the tag already: RFC 8439 section 2.8 appends that of the associated data.
void seal::put(record_head& head, const unsigned char* body) {
  const nonce n(number_++);
  unsigned char nothing[1] = {};
  crypto_aead_chacha20poly1305_ietf_encrypt_detached(nothing, head.tag, nullptr, nothing, 0, body, head.bytes, nullptr,
                                                     n.bytes, key_.data());
}

bool seal::check(const record_head& head, const unsigned char* body) {
  const nonce n(number_++);
  unsigned char nothing[1] = {};
  return crypto_aead_chacha20poly1305_ietf_decrypt_detached(nothing, nullptr, nothing, 0, head.tag, body, head.bytes,
                                                            n.bytes, key_.data()) == 0;
}

}  // namespace xio::proxy::tcp
