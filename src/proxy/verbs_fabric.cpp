// SPDX-License-Identifier: MIT
#include "proxy/verbs_fabric.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif

#include <arpa/inet.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.hpp"
#include "base/log.hpp"
#include "proxy/keys.hpp"
#include "proxy/verbs_executor.hpp"

namespace xio::proxy {

namespace {

// Entries of one receive completion queue, where the device has that many.
constexpr std::uint32_t k_receive_cq = 4096;
constexpr int k_polled = 16;

int access_of(std::uint32_t allowed, bool relaxed) {
  unsigned access = 0;
  if ((allowed & remote_read) != 0) access |= IBV_ACCESS_REMOTE_READ;
  if ((allowed & remote_write) != 0) access |= IBV_ACCESS_REMOTE_WRITE;
  if ((allowed & remote_atomic) != 0) access |= IBV_ACCESS_REMOTE_ATOMIC;
  // Memory that a peer may change must be writable here too (InfiniBand specification, 10.6.3.1).
  if ((allowed & (local_write | remote_write | remote_atomic)) != 0) access |= IBV_ACCESS_LOCAL_WRITE;
  if (relaxed) access |= IBV_ACCESS_RELAXED_ORDERING;
  return static_cast<int>(access);
}

ibv_mr* register_dmabuf([[maybe_unused]] ibv_pd* domain, [[maybe_unused]] std::uint64_t offset,
                        [[maybe_unused]] std::size_t bytes, [[maybe_unused]] void* base, [[maybe_unused]] int fd,
                        [[maybe_unused]] int access) {
#ifdef HAVE_IBV_REG_DMABUF_MR
  return ibv_reg_dmabuf_mr(domain, offset, bytes, reinterpret_cast<std::uint64_t>(base), fd, access);
#else
  errno = EOPNOTSUPP;
  return nullptr;
#endif
}

std::string cure_of(int err, const gpu::exported_memory& memory) {
  if (!memory.why_not.empty() && err != ENOMEM) return memory.why_not;
  if (memory.fd >= 0 && (err == EOPNOTSUPP || err == EINVAL || err == EFAULT))
    return "the device cannot reach GPU memory through a dma-buf: use rdma-core 34 and Linux 5.12 or newer, and a "
           "driver that knows dma-buf";
  switch (err) {
    case ENOMEM: return "raise the limit of locked memory (ulimit -l)";
    case EFAULT:
      return "it is not mapped, or it is GPU memory that the platform does not export: load the peer-memory module of "
             "the GPU's driver";
    case EINVAL: return "use smaller pieces, or XIO_RDMA_RELAXED_ORDERING=0";
    default: return "see the kernel's log";
  }
}

// A queue pair in error takes none, and needs none.
void post_again(verbs_queue& q) {
  if (const int err = q.post_receive(); err != 0) log::info("{}: no receive posted: {}", q.ends(), errno_text(err));
}

}  // namespace

verbs_fabric::verbs_fabric(verbs_port port, const verbs_path& path, immediate_handler handler, memory_exporter exporter)
    : port_(std::move(port)),
      path_(path),
      handler_(std::move(handler)),
      exporter_(std::move(exporter)),
      name_("verbs " + port_.identity.device) {}

verbs_fabric::~verbs_fabric() {
  // Queue pairs go before the completion queues that they name.
  pairs_.clear();
}

// --- Memory ------------------------------------------------------------------------------------------

key_pair verbs_fabric::register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed) {
  if (base == nullptr || bytes == 0 || reinterpret_cast<std::uint64_t>(base) + bytes < bytes)
    fail(XIO_ERR_ARG, "{} bytes at {} cannot be registered with {}: the range is empty or leaves the address space",
         bytes, base, name_);
  const int access = access_of(allowed, path_.relaxed_ordering);
  const gpu::exported_memory memory = exporter_ ? exporter_(base, bytes) : gpu::exported_memory{};
  // A peer-memory module takes memory that has no dma-buf.
  verbs_owned<ibv_mr> mr(memory.fd >= 0
                             ? register_dmabuf(port_.domain.get(), memory.offset, bytes, base, memory.fd, access)
                             : ibv_reg_mr(port_.domain.get(), base, bytes, access));
  const int err = errno;
  // The registration holds the memory by itself.
  if (memory.fd >= 0) close(memory.fd);
  if (mr == nullptr)
    fail(err == ENOMEM ? XIO_ERR_NO_MEMORY : XIO_ERR_IO, "{} port {} cannot register {} bytes at {}: {}; {}", name_,
         port_.identity.port, bytes, base, errno_text(err), cure_of(err, memory));
  const key_pair keys{mr->lkey, mr->rkey};
  regions_.emplace(keys.lkey, std::move(mr));
  return keys;
}

void verbs_fabric::unregister_memory(const key_pair& keys) {
  const auto [first, last] = regions_.equal_range(keys.lkey);
  const auto found = std::find_if(first, last, [&](const auto& r) { return r.second->rkey == keys.rkey; });
  if (found != last) regions_.erase(found);
}

// --- Peers -------------------------------------------------------------------------------------------

void verbs_fabric::connect_peers(const std::vector<device_address>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    const int pe = static_cast<int>(i);
    const verbs_address remote = unpack(all[i], pe, false);
    check_pair(port_.identity, remote, pe);
    agree_mtu(port_.identity, remote, pe, path_.mtu);
  }
}

std::size_t verbs_fabric::find_receive_cq() {
  for (std::size_t i = 0; i < receive_cqs_.size(); ++i)
    if (receive_cqs_[i].room != 0) return i;
  const std::uint32_t entries = std::min(k_receive_cq, port_.max_cqe);
  if (entries < verbs_queue::k_receives)
    fail(XIO_ERR_UNSUPPORTED, "{} has completion queues of at most {} entries, but {} are needed; use another device",
         name_, entries, verbs_queue::k_receives);
  verbs_owned<ibv_cq> cq(ibv_create_cq(port_.context.get(), static_cast<int>(entries), nullptr, nullptr, 0));
  if (cq == nullptr)
    fail(XIO_ERR_IO, "{}: no completion queue of {} entries for receives: {}; free some of the device's queues", name_,
         entries, errno_text(errno));
  receive_cqs_.push_back({std::move(cq), entries / verbs_queue::k_receives});
  return receive_cqs_.size() - 1;
}

device_address verbs_fabric::get_queue_address(std::uint32_t number, int pe) {
  if (pairs_.contains(number))
    fail(XIO_ERR_STATE, "the address of queue pair {} of {} for PE {} was given out before", number, name_, pe);
  const std::size_t receives = find_receive_cq();
  auto queue = std::make_unique<verbs_queue>(port_, path_, number, receive_cqs_[receives].cq.get());
  const device_address mine = pack(queue->identity());
  --receive_cqs_[receives].room;
  pairs_.emplace(number, pair{std::move(queue), receives, {}});
  return mine;
}

std::unique_ptr<executor> verbs_fabric::connect(std::uint32_t number, int pe, const device_address& remote,
                                                std::uint32_t) {
  const auto found = pairs_.find(number);
  if (found == pairs_.end())
    fail(XIO_ERR_STATE, "queue pair {} of {} is connected to PE {} before its address was given out", number, name_,
         pe);
  verbs_queue& q = *found->second.queue;
  q.connect(unpack(remote, pe, true), pe);
  log::debug("{}", q.ends());
  return std::make_unique<verbs_executor>(verbs_sender{q.qp(), q.send_cq(), q.depth(), q.max_sge(), q.max_inline(),
                                                       q.bounce(), q.bounce_lkey(), verbs_queue::k_bounce_slots,
                                                       verbs_queue::k_bounce_bytes, q.ends()});
}

void verbs_fabric::forget(std::uint32_t number) {
  const auto found = pairs_.find(number);
  if (found == pairs_.end()) return;
  held_ -= found->second.held.size();
  receive_cq& r = receive_cqs_[found->second.receives];
  ibv_cq* cq = r.cq.get();
  pairs_.erase(found);
  // Its last completions, so that they take nobody's room.
  poll_receives(cq);
  ++r.room;
}

// --- Turns -------------------------------------------------------------------------------------------

// Each held immediate keeps its receive, so that a peer whose writes nobody takes is held up by its own device.
bool verbs_fabric::poll_receives(ibv_cq* cq) {
  ibv_wc wcs[k_polled];
  bool any = false;
  int n = k_polled;
  while (n == k_polled) {
    n = ibv_poll_cq(cq, k_polled, wcs);
    for (int i = 0; i < n; ++i) {
      const ibv_wc& wc = wcs[i];
      const auto found = pairs_.find(static_cast<std::uint32_t>(wc.wr_id));
      // Flushed with its queue pair, whose own requests tell why.
      if (found == pairs_.end() || wc.status != IBV_WC_SUCCESS) continue;
      any = true;
      if (wc.opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
        found->second.held.push_back({ntohl(wc.imm_data), wc.byte_len});
        ++held_;
      } else {
        post_again(*found->second.queue);  // a send, which nobody of ours does
      }
    }
  }
  return any;
}

bool verbs_fabric::deliver_held() {
  bool any = false;
  for (auto& [number, p] : pairs_) {
    while (!p.held.empty() && handler_ && handler_(number, p.held.front().value, p.held.front().bytes)) {
      p.held.pop_front();
      --held_;
      any = true;
      post_again(*p.queue);
    }
  }
  return any;
}

void verbs_fabric::poll_events() {
  ibv_async_event event;
  while (ibv_get_async_event(port_.context.get(), &event) == 0) {
    if (report_event(name_, port_.identity.port, event.event_type, event.element.port_num))
      failed_.store(true, std::memory_order_release);
    ibv_ack_async_event(&event);
  }
}

bool verbs_fabric::poll() {
  if (events_.is_due()) poll_events();
  bool any = false;
  for (const receive_cq& r : receive_cqs_) any |= poll_receives(r.cq.get());
  if (held_ != 0) any |= deliver_held();
  return any;
}

}  // namespace xio::proxy
