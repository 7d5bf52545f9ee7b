// SPDX-License-Identifier: MIT
#include "transport/rdma/uverbs/kernel_nic.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "base/error.hpp"
#include "transport/rdma/uverbs/facts.hpp"

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

kernel_nic::kernel_nic(std::shared_ptr<void> holder, domain& owner, const proxy::verbs_port& port,
                       const direct_hooks& hooks, bool relaxed)
    : holder_(std::move(holder)),
      owner_(owner),
      port_(port),
      hooks_(hooks),
      relaxed_(relaxed),
      events_(owner, port.identity.port) {}

port_facts kernel_nic::port() const { return read_port(owner_, port_.identity.port); }

proxy::key_pair kernel_nic::register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) {
  return owner_.register_memory(base, bytes, allowed, relaxed_, hooks_.export_memory);
}
void kernel_nic::unregister_memory(const proxy::key_pair& keys) { owner_.unregister_memory(keys); }

void check_depth(const proxy::verbs_address& mine, std::uint32_t depth, std::uint32_t most) {
  if (depth > most)
    fail(XIO_ERR_CONFIG,
         "a queue depth of {} is not possible on RDMA device {} port {}, which takes powers of two up to {}; set "
         "XIO_RING_DEPTH",
         depth, mine.device, mine.port, most);
}

void check_made(const proxy::verbs_address& mine, const char* what, std::uint32_t depth, int err) {
  if (err != 0)
    fail(XIO_ERR_IO, "{}: no {} of {} entries: {}; {}", text_of(mine), what, depth, errno_text(err), cure_of(err));
}

}  // namespace xio::rdma::uverbs
