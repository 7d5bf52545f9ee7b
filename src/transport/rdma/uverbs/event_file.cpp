// SPDX-License-Identifier: MIT
#include "transport/rdma/uverbs/event_file.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace xio::rdma::uverbs {

event_file::event_file(const domain& d, int port) : name_("RDMA device " + d.device()), port_(port) {
  call c(obj_events, events::open);
  c.make(events::file);
  if (d.run(c) != 0) return;
  fd_ = unique_fd(static_cast<int>(c.made(events::file)));
  fcntl(fd_.get(), F_SETFL, fcntl(fd_.get(), F_GETFL) | O_NONBLOCK);
}

void event_file::poll() {
  if (fd_.get() < 0 || !timer_.is_due()) return;
  for (event e{}; read(fd_.get(), &e, sizeof e) == static_cast<ssize_t>(sizeof e);)
    if (proxy::report_event(name_, port_, static_cast<ibv_event_type>(e.type), static_cast<int>(e.about)))
      failed_.store(true, std::memory_order_release);
}

}  // namespace xio::rdma::uverbs
