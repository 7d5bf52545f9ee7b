// SPDX-License-Identifier: MIT
#include "transport/nvme/kmod_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"

namespace xio::nvme {
namespace {

// An admin command each, which the module sends for one process after the other.
constexpr int k_period_ms = 250;

}  // namespace

kmod_watch::kmod_watch(std::function<std::string()> check, std::function<void(const std::string&)> lost)
    : check_(std::move(check)), lost_(std::move(lost)), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_)
    fail(XIO_ERR_IO, "a drive cannot be watched: {}; raise the limit of open files (ulimit -n)", errno_text(errno));
  thread_ = start_thread("the watch over a drive", [this] { run(); });
}

kmod_watch::~kmod_watch() {
  const std::uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof one) != sizeof one) log::warn("a drive's watch does not hear that it should end");
  thread_.join();
}

void kmod_watch::run() {
  for (;;) {
    pollfd stop{stop_.get(), POLLIN, 0};
    poll(&stop, 1, k_period_ms);
    if (stop.revents != 0) return;
    const std::string what = check_();
    if (what.empty()) continue;
    lost_(what);
    return;
  }
}

}  // namespace xio::nvme
