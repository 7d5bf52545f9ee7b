// SPDX-License-Identifier: MIT
// What an op does to memory that is at hand: used by the end that carries it out, wherever the op came from.
#pragma once
#include "base/payload.hpp"
#include "proxy/keys.hpp"

namespace xio::proxy {

// The right that an op needs to remote memory, and to its local spans.
std::uint32_t remote_right(verb what);
std::uint32_t local_right(verb what);

// Local memory of the requester: [address, address + bytes) under an lkey.
op_error find_local(const key_table& keys, const span_ref& s, std::uint32_t wanted, unsigned char** place);
// Of all spans of an op.
op_error check_local(const key_table& keys, const op& o);
// Memory of the responder under an rkey.
op_error find_remote(const key_table& keys, std::uint32_t rkey, std::uint64_t address, std::uint64_t bytes,
                     std::uint32_t wanted, unsigned char** place);

// Inline bytes to their place; 4 or 8 aligned bytes in one piece, because somebody may poll them as a flag.
void store_bytes(const payload_agent& payload, unsigned char* to, const unsigned char* from, std::uint64_t bytes);

// Changes the word at `at` and returns its old value.
std::uint64_t change_word(const payload_agent& payload, unsigned char* at, const atomic_change& c);
// Puts the old value into the requester's memory, in the byte order that the dialect asks for.
void store_result(const payload_agent& payload, unsigned char* to, const atomic_change& c, std::uint64_t old);

}  // namespace xio::proxy
