// SPDX-License-Identifier: MIT
// Calls of a GPU's runtime that wait until every kernel of the device has ended: freeing memory, unregistering host
// pages, waiting for the device. A thread of their own makes them, in the order in which they were given, so that no
// caller waits behind a kernel that runs for ever.
#pragma once
#include <cstdint>
#include <functional>

namespace xio::gpu {

// Gives `call` to that thread and returns at once. An exception of it goes to the log. Where no thread can be made, the
// caller makes it itself. It is left out in a child of fork, and once the process's exit handlers run: the system takes
// back what it would free.
void after_kernels(std::function<void()> call) noexcept;

// The same, and waits until it is made, at most timeout_ms (0: for ever). False: it is still to be made, so it must own
// what it uses.
bool after_kernels_within(std::function<void()> call, std::uint64_t timeout_ms);

}  // namespace xio::gpu
