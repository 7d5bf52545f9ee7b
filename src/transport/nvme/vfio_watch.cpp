// SPDX-License-Identifier: MIT
#include "transport/nvme/vfio_watch.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/thread.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::nvme {

namespace w = wire::nvme;

namespace {

// Ten register reads a second cost a drive nothing, and a thread that waits for a dead drive can wait a tenth of a
// second more.
constexpr int k_period_ms = 100;

}  // namespace

std::string trouble_of(std::uint32_t csts) {
  if (csts == ~std::uint32_t{0}) return "it is gone from the bus; put it back and open it again";
  if ((csts & w::k_csts_cfs) != 0) return "it reports a fatal error; close it and open it again, which resets it";
  if ((csts & w::k_csts_rdy) == 0) return "it was reset by somebody else; close it and open it again";
  return "";
}

vfio_watch::vfio_watch(const vfio_device& device, std::function<void(const std::string&, std::uint32_t)> lost)
    : device_(device), lost_(std::move(lost)), stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (stop_.get() < 0)
    fail(XIO_ERR_IO, "a drive cannot be watched: {}; raise the limit of open files (ulimit -n)", errno_text(errno));
  thread_ = start_thread("the watch over a drive", [this] { run(); });
}

vfio_watch::~vfio_watch() {
  const std::uint64_t one = 1;
  if (write(stop_.get(), &one, sizeof one) != sizeof one) log::warn("a drive's watch was not told to end");
  thread_.join();
}

void vfio_watch::run() {
  for (;;) {
    pollfd events[3] = {{stop_.get(), POLLIN, 0}, {device_.wanted_back(), POLLIN, 0}, {device_.broken(), POLLIN, 0}};
    poll(events, 3, k_period_ms);
    if (events[0].revents != 0) return;
    const std::uint32_t csts =
        __atomic_load_n(reinterpret_cast<const std::uint32_t*>(device_.registers() + w::k_reg_csts), __ATOMIC_ACQUIRE);
    std::string what = trouble_of(csts);
    if (events[1].revents != 0) what = "the kernel wants it back (it is being unbound or unplugged); close it";
    if (events[2].revents != 0) what = "the kernel has seen a PCIe error of it; close it and open it again";
    if (what.empty()) continue;
    lost_(what, csts);
    return;
  }
}

}  // namespace xio::nvme
