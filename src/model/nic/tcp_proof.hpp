// SPDX-License-Identifier: MIT
// How two NICs prove to each other that they hold the world's key, and the seal on what they then send. Three messages:
//
//   caller -> callee   hello    magic, caller's PE, callee's PE, callee's identity, nonce C
//   callee -> caller   answer   magic, nonce L, MAC(key, "answer" | hello | answer so far)
//   caller -> callee   proof    MAC(key, "proof" | hello | answer)
//
// Both nonces are under both MACs, and the labels differ, so nothing recorded or sent back is of use. The callee's
// identity is in its card: a caller that reached another NIC by an address that two machines have is refused.
//
// A record carries the Poly1305 tag of RFC 8439's AEAD with the record as its associated data and no message
// (libsodium), under a key of its direction and the record's number as nonce: what was altered, left out, repeated or
// moved is noticed. Payload is not encrypted, as it is not on an RDMA network; a tag costs a third of encrypting.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "model/nic/tcp_frames.hpp"
#include "model/nic/tcp_settings.hpp"

namespace xio::model::rdma::tcp {

constexpr std::size_t k_identity_bytes = 16, k_nonce_bytes = 32, k_mac_bytes = 32;
using identity = std::array<unsigned char, k_identity_bytes>;

struct hello {
  unsigned char magic[8];
  std::uint32_t caller, callee;
  unsigned char target[k_identity_bytes];
  unsigned char nonce[k_nonce_bytes];
};
struct answer {
  unsigned char magic[8];
  unsigned char nonce[k_nonce_bytes];
  unsigned char mac[k_mac_bytes];
};
struct proof {
  unsigned char mac[k_mac_bytes];
};

void fill_random(void* to, std::size_t bytes);

hello make_hello(std::uint32_t caller, std::uint32_t callee, const identity& target);
bool is_hello(const hello& h);
answer make_answer(const tcp_key& key, const hello& h);
bool is_proven(const tcp_key& key, const hello& h, const answer& a);
proof make_proof(const tcp_key& key, const hello& h, const answer& a);
bool is_proven(const tcp_key& key, const hello& h, const answer& a, const proof& p);

// Seals the records of one direction, or checks them.
class seal {
 public:
  seal() = default;
  seal(const seal&) = delete;
  seal& operator=(const seal&) = delete;
  ~seal();
  // The key of the direction that the caller, or the callee, sends in.
  void derive(const tcp_key& key, const hello& h, const answer& a, bool from_caller);
  void put(record_head& head, const unsigned char* body);
  bool check(const record_head& head, const unsigned char* body);

 private:
  tcp_key key_{};
  std::uint64_t number_ = 0;
};

}  // namespace xio::model::rdma::tcp
