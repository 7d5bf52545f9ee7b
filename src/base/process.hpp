// SPDX-License-Identifier: MIT
// Which process may use what XIO holds. A child of fork() inherits the bytes of a world, its descriptors and its
// mappings, but none of its threads, and peers would take all that it sends as sent by its parent.
#pragma once
#include <array>
#include <cstdint>

namespace xio::process {

// This process holds something that a child must not touch. The first caller's process keeps it.
void claim() noexcept;

// True in a child that was forked, without an exec, from a process which had claimed.
bool is_forked() noexcept;

// A random number of this process, another one in a child. Containers number their processes alike, so a number that
// the system gave does not tell whether a peer is this very process.
std::array<std::uint64_t, 2> tag();

// Throws XIO_ERR_STATE in such a child. function: the call that is refused.
void refuse_forked(const char* function);

}  // namespace xio::process
