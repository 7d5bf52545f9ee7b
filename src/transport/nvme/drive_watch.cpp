// SPDX-License-Identifier: MIT
#include "transport/nvme/drive_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"

namespace xio::nvme {

drive_watch::drive_watch(std::chrono::milliseconds period, std::vector<int> hints, std::function<std::string()> check,
                         std::function<void(const std::string&)> lost)
    : period_(period),
      hints_(std::move(hints)),
      check_(std::move(check)),
      lost_(std::move(lost)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!stop_)
    fail(XIO_ERR_IO, "a drive cannot be watched: {}; raise the limit of open files (ulimit -n)", errno_text(errno));
  thread_ = start_thread("the watch over a drive", [this] { run(); });
}

drive_watch::~drive_watch() {
  const std::uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof one) != sizeof one) log::warn("a drive's watch does not hear that it should end");
  thread_.join();
}

void drive_watch::run() {
  std::vector<pollfd> events{{stop_.get(), POLLIN, 0}};
  for (const int hint : hints_) events.push_back({hint, POLLIN, 0});
  for (;;) {
    poll(events.data(), events.size(), static_cast<int>(period_.count()));
    if (events[0].revents != 0) return;
    const std::string what = check_();
    if (what.empty()) continue;
    lost_(what);
    return;
  }
}

}  // namespace xio::nvme
