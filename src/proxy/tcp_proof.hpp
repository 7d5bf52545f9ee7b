// SPDX-License-Identifier: MIT
// How two NICs prove to each other that they hold the world's key, and the seal on what they then send. Three messages:
//
//   caller -> callee   hello    magic, caller's PE, callee's PE, callee's identity, nonce C, open key E
//   callee -> caller   reply    magic, nonce L, open key F, MAC(key, "answer" | hello | reply so far)
//   caller -> callee   proof    MAC(key, "proof" | hello | reply)
//
// Nonces and open keys are under both MACs, and the labels differ, so nothing recorded or sent back is of use. The
// callee's identity is in its device address: a caller that reached another NIC by an address that two machines have is
// refused. The seal's keys come from key, hello, reply and what E and F agree on (base/ephemeral_key.hpp): with the key
// alone nobody forges a record of a connection that he has listened to.
//
// A record carries the Poly1305 tag of RFC 8439's AEAD with the record as its associated data and no message,
// under a key of its direction and the record's number as nonce: what was altered, left out, repeated or
// moved is noticed. Payload is not encrypted, as it is not on an RDMA network; a tag costs a third of encrypting.
#pragma once
#include "base/ephemeral_key.hpp"
#include "proxy/tcp_frames.hpp"
#include "proxy/tcp_settings.hpp"

namespace xio::proxy::tcp {

constexpr std::size_t k_identity_bytes = 16, k_nonce_bytes = 32, k_mac_bytes = 32;
using identity = std::array<unsigned char, k_identity_bytes>;

struct hello {
  unsigned char magic[8];
  std::uint32_t caller, callee;
  unsigned char target[k_identity_bytes];
  unsigned char nonce[k_nonce_bytes];
  unsigned char public_key[ephemeral_key::k_bytes];
};
struct reply {
  unsigned char magic[8];
  unsigned char nonce[k_nonce_bytes];
  unsigned char public_key[ephemeral_key::k_bytes];
  unsigned char mac[k_mac_bytes];
};
struct proof {
  unsigned char mac[k_mac_bytes];
};

hello make_hello(std::uint32_t caller, std::uint32_t callee, const identity& target, const ephemeral_key& mine);
// Of a hello, or of its first bytes: an older version's is shorter.
constexpr std::size_t k_magic_bytes = sizeof hello::magic;
bool is_hello(const hello& h);
bool is_hello_of_another_version(const hello& h);
reply make_reply(const tcp_key& key, const hello& h, const ephemeral_key& mine);
bool is_proven(const tcp_key& key, const hello& h, const reply& a);
proof make_proof(const tcp_key& key, const hello& h, const reply& a);
bool is_proven(const tcp_key& key, const hello& h, const reply& a, const proof& p);

// The keys of one connection.
struct session {
  tcp_key from_caller, from_callee;
};
// False: the other's open key is none. `mine` is the pair of which this end gave the open half.
bool agree(const tcp_key& key, const hello& h, const reply& a, const ephemeral_key& mine, bool is_caller, session& out);

// Seals the records of one direction, or checks them.
class seal {
 public:
  seal& operator=(seal&&) = delete;
  void start(const tcp_key& key);  // of its direction
  void put(record_head& head, const unsigned char* body);
  bool check(const record_head& head, const unsigned char* body);

 private:
  tcp_key key_;
  std::uint64_t number_ = 0;
};

}  // namespace xio::proxy::tcp
