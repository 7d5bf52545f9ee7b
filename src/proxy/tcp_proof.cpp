// SPDX-License-Identifier: MIT
#include "proxy/tcp_proof.hpp"

#include "base/mac.hpp"

namespace xio::proxy::tcp {

namespace {

static_assert(sizeof(tcp_key) == mac::k_bytes && k_mac_bytes == mac::k_bytes && k_tag_bytes == crypto::k_tag_bytes);

// The last character is the version of the protocol.
const unsigned char k_magic[8] = {'X', 'I', 'O', '.', 'N', 'I', 'C', static_cast<unsigned char>(crypto::k_version)};
constexpr std::size_t k_reply_signed = offsetof(reply, mac);

void reply_mac(const tcp_key& key, const hello& h, const reply& a, unsigned char* out) {
  mac m(key.data(), "xio nic answer");
  m.add(&h, sizeof h);
  m.add(&a, k_reply_signed);
  m.result(out);
}

void proof_mac(const tcp_key& key, const hello& h, const reply& a, unsigned char* out) {
  mac m(key.data(), "xio nic proof");
  m.add(&h, sizeof h);
  m.add(&a, sizeof a);
  m.result(out);
}

}  // namespace

hello make_hello(std::uint32_t caller, std::uint32_t callee, const identity& target, const ephemeral_key& mine) {
  hello h{};
  std::memcpy(h.magic, k_magic, sizeof k_magic);
  h.caller = caller;
  h.callee = callee;
  std::memcpy(h.target, target.data(), target.size());
  crypto::fill_random(h.nonce, sizeof h.nonce);
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
  crypto::fill_random(a.nonce, sizeof a.nonce);
  std::memcpy(a.public_key, mine.public_half().data(), sizeof a.public_key);
  reply_mac(key, h, a, a.mac);
  return a;
}

bool is_proven(const tcp_key& key, const hello& h, const reply& a) {
  unsigned char wanted[k_mac_bytes];
  reply_mac(key, h, a, wanted);
  return std::memcmp(a.magic, k_magic, sizeof k_magic) == 0 && crypto::equal(wanted, a.mac, sizeof wanted);
}

proof make_proof(const tcp_key& key, const hello& h, const reply& a) {
  proof p{};
  proof_mac(key, h, a, p.mac);
  return p;
}

bool is_proven(const tcp_key& key, const hello& h, const reply& a, const proof& p) {
  unsigned char wanted[k_mac_bytes];
  proof_mac(key, h, a, wanted);
  return crypto::equal(wanted, p.mac, sizeof wanted);
}

bool agree(const tcp_key& key, const hello& h, const reply& a, const ephemeral_key& mine, bool is_caller,
           session& out) {
  ephemeral_key::half both;
  if (!mine.agree(is_caller ? a.public_key : h.public_key, both)) return false;
  const auto derive = [&](std::string_view label, tcp_key& to) {
    mac m(key.data(), label);
    m.add(&h, sizeof h);
    m.add(&a, sizeof a);
    m.add(both.data(), both.size());
    m.result(to.data());
  };
  derive("xio nic records of the caller", out.from_caller);
  derive("xio nic records of the callee", out.from_callee);
  explicit_bzero(both.data(), both.size());
  return true;
}

void seal::start(const tcp_key& key) {
  key_ = key;
  number_ = 0;
}

namespace {

std::span<const std::byte> bytes_of(const record_head& head, const unsigned char* body) {
  return {reinterpret_cast<const std::byte*>(body), head.bytes};
}

}  // namespace

// The length is under the tag already: RFC 8439 section 2.8 appends that of the associated data.
void seal::put(record_head& head, const unsigned char* body) {
  std::byte nothing[1] = {};
  crypto::seal(key_, number_++, bytes_of(head, body), std::span(nothing).first(0), nothing, head.tag);
}

bool seal::check(const record_head& head, const unsigned char* body) {
  std::byte nothing[1] = {};
  return crypto::unseal(key_, number_++, bytes_of(head, body), std::span(nothing).first(0), nothing, head.tag);
}

}  // namespace xio::proxy::tcp
