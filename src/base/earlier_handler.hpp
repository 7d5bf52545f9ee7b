// SPDX-License-Identifier: MIT
// The handler that a signal had before one of ours, from within ours.
#pragma once
#include <signal.h>

namespace xio {

// As if ours had never been there. An access is made again when our handler returns, and then ends the process where it
// happened if nobody handles it. Async-signal-safe.
void call_earlier(const struct sigaction& earlier, int signal, siginfo_t* info, void* context);

}  // namespace xio
