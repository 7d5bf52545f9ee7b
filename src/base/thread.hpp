// SPDX-License-Identifier: MIT
// Threads of the library's own.
#pragma once
#include <functional>
#include <string>
#include <thread>

namespace xio {

// Throws XIO_ERR_NO_MEMORY, with the limits that may have refused it, where the system makes no thread. purpose: "the
// software devices".
std::thread start_thread(const char* purpose, std::function<void()> body);

// After a thread was refused: which limit to raise, as "raise the limit of processes (ulimit -u, now 10)".
std::string thread_cure();

}  // namespace xio
