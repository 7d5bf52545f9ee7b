// SPDX-License-Identifier: MIT
#include "base/earlier_handler.hpp"

namespace xio {

void call_earlier(const struct sigaction& earlier, int signal, siginfo_t* info, void* context) {
  if ((earlier.sa_flags & SA_SIGINFO) != 0) return earlier.sa_sigaction(signal, info, context);
  const bool sent = info->si_code <= 0;  // by a process, and not by an access
  if (earlier.sa_handler == SIG_IGN && sent) return;
  if (earlier.sa_handler != SIG_DFL && earlier.sa_handler != SIG_IGN) return earlier.sa_handler(signal);
  sigaction(signal, &earlier, nullptr);
  if (sent) raise(signal);
}

}  // namespace xio
