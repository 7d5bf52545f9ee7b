// SPDX-License-Identifier: MIT
#include "transport/rdma/uverbs/domain.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.hpp"
#include "proxy/keys.hpp"

namespace xio::rdma::uverbs {

namespace {

// Wait before a peer without receives is asked again: code 12 is 0.64 ms (InfiniBand specification, table 45).
constexpr std::uint8_t k_rnr_timer = 12;

std::uint32_t access_of(std::uint32_t allowed, bool relaxed) {
  std::uint32_t access = 0;
  if ((allowed & proxy::remote_read) != 0) access |= k_remote_read;
  if ((allowed & proxy::remote_write) != 0) access |= k_remote_write;
  if ((allowed & proxy::remote_atomic) != 0) access |= k_remote_atomic;
  // Memory that a peer may change must be writable here too (InfiniBand specification, 10.6.3.1).
  if ((allowed & (proxy::local_write | proxy::remote_write | proxy::remote_atomic)) != 0) access |= k_local_write;
  return relaxed ? access | k_relaxed : access;
}

}  // namespace

void add(call& c, const driver_data& d) {
  if (d.in != nullptr) c.in(k_driver_in, d.in, d.in_bytes);
  if (d.out != nullptr) c.out(k_driver_out, d.out, d.out_bytes);
}

std::string kernel_release() {
  utsname u{};
  return uname(&u) == 0 ? u.release : "an unknown release";
}

const char* cure_of(int err) {
  switch (err) {
    case EINVAL: return "the driver does not take one of these values: lower XIO_RING_DEPTH";
    case EFAULT:
      return "the driver cannot pin the queue's memory: leave XIO_MEMORY_MODE at auto, or load the dma-buf support of "
             "the GPU's driver";
    case ENOMEM: return "raise the limit of locked memory (ulimit -l), or end other users of the device";
    case EPERM:
    case EACCES: return "ask for access to the device in /dev/infiniband";
    case ETIMEDOUT:
    case ENETUNREACH:
    case EHOSTUNREACH:
      return "no way to the peer's address was found: check routes and cables, or choose a GID that is in use with "
             "XIO_RDMA_GID_INDEX";
    case EPROTONOSUPPORT:
    case EOPNOTSUPP: return "the driver is too old for it";
    case EBADRQC: return "the NIC's firmware is too old for it: update it";
    case ENODEV:
    case ENXIO: return "the device is gone; see the kernel's log";
    default: return "see the kernel's log";
  }
}

// --- The domain --------------------------------------------------------------------------------------

domain::domain(std::string device, const std::string& file, driver which, const driver_data& context,
               const driver_data& pd)
    : device_(std::move(device)), driver_(which) {
  const std::string path = "/dev/infiniband/" + file;
  fd_ = unique_fd(open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (fd_.get() < 0)
    fail(XIO_ERR_UNSUPPORTED, "RDMA device {}: {} cannot be opened: {}; ask for access to it", device_, path,
         errno_text(errno));
  std::uint32_t vectors = 0;
  std::uint64_t support = 0;
  call start(obj_device, device::get_context);
  start.out(device::vectors, &vectors).out(device::core_support, &support);
  add(start, context);
  if (const int err = run(start); err != 0)
    fail(XIO_ERR_UNSUPPORTED, "RDMA device {}: Linux {} gives no context: {}; {}", device_, kernel_release(),
         errno_text(err), cure_of(err));
  const alloc_pd wanted{};
  alloc_pd_response made{};
  call alloc(obj_device, device::invoke_write);
  alloc.choose(device::write_command, cmd_alloc_pd).in(device::core_in, wanted).out(device::core_out, &made);
  add(alloc, pd);
  if (const int err = run(alloc); err != 0)
    fail(XIO_ERR_IO, "RDMA device {} gives no protection domain: {}; {}", device_, errno_text(err), cure_of(err));
  pd_ = made.handle;
}

domain::~domain() = default;

std::shared_ptr<void> domain::map_page(std::uint64_t offset, std::size_t bytes) const {
  void* at = mmap(nullptr, bytes, PROT_WRITE, MAP_SHARED, fd_.get(), static_cast<off_t>(offset));
  if (at == MAP_FAILED) return nullptr;
  return {at, [bytes](void* page) { munmap(page, bytes); }};
}

int domain::modify(std::uint32_t queue_pair, modify_qp m) const {
  m.handle = queue_pair;
  call c(obj_device, device::invoke_write);
  c.choose(device::write_command, cmd_modify_qp).in(device::core_in, m);
  return run(c);
}

int domain::register_address(void* base, std::uint64_t bytes, std::uint32_t access, reg_mr_response* r) const {
  const auto at = reinterpret_cast<std::uint64_t>(base);
  const reg_mr wanted{0, at, bytes, at, pd_, access};
  call c(obj_device, device::invoke_write);
  c.choose(device::write_command, cmd_reg_mr).in(device::core_in, wanted).out(device::core_out, r);
  return run(c);
}

int domain::register_file(void* base, std::uint64_t bytes, std::uint32_t access, const gpu::exported_memory& m,
                          reg_mr_response* r) const {
  call c(obj_mr, mr::register_dmabuf);
  c.make(mr::handle).use(mr::pd, pd_).in(mr::offset, std::uint64_t{m.offset}).in(mr::length, bytes);
  c.in(mr::address, reinterpret_cast<std::uint64_t>(base)).in(mr::file, std::int32_t{m.fd}).in(mr::access, access);
  c.out(mr::lkey, &r->lkey).out(mr::rkey, &r->rkey);
  const int err = run(c);
  r->handle = c.made(mr::handle);
  return err;
}

proxy::key_pair domain::register_memory(void* base, std::uint64_t bytes, std::uint32_t allowed, bool relaxed,
                                        const proxy::memory_exporter& exporter) {
  const std::uint32_t access = access_of(allowed, relaxed);
  const gpu::exported_memory memory = exporter ? exporter(base, bytes) : gpu::exported_memory{};
  reg_mr_response r{};
  const int err =
      memory.fd >= 0 ? register_file(base, bytes, access, memory, &r) : register_address(base, bytes, access, &r);
  if (memory.fd >= 0) close(memory.fd);
  if (err != 0)
    fail(err == ENOMEM ? XIO_ERR_NO_MEMORY : XIO_ERR_IO, "RDMA device {} cannot register {} bytes at {}: {}; {}",
         device_, bytes, base, errno_text(err),
         err == ENOMEM            ? "raise the limit of locked memory (ulimit -l)"
         : memory.why_not.empty() ? "it is not mapped, or it is GPU memory without a dma-buf: load the peer-memory "
                                    "module of the GPU's driver"
                                  : memory.why_not);
  regions_.emplace(r.lkey, r);
  return {r.lkey, r.rkey};
}

void domain::unregister_memory(const proxy::key_pair& keys) {
  const auto [first, last] = regions_.equal_range(keys.lkey);
  const auto found = std::find_if(first, last, [&](const auto& r) { return r.second.rkey == keys.rkey; });
  if (found == last) return;
  call c(obj_mr, mr::destroy);
  c.use(mr::destroyed, found->second.handle);
  run(c);
  regions_.erase(found);
}

// --- Queue pairs -------------------------------------------------------------------------------------

namespace {

void modify(const queue_steps& q, const std::string& ends, const char* step, const modify_qp& m) {
  if (const int err = q.modify(m); err != 0)
    fail(XIO_ERR_IO,
         "{} does not go from {} with port {}, sgid_index {}, path_mtu {}, hop_limit {}, traffic_class {}, timeout {}, "
         "retry_cnt {}: {}; {}",
         ends, step, q.port->identity.port, q.port->identity.gid_index, proxy::mtu_bytes(m.path_mtu),
         m.destination.hop_limit, m.destination.traffic_class, m.timeout, m.retries, errno_text(err), cure_of(err));
}

qp_destination destination_of(const proxy::verbs_port& port, const proxy::verbs_address& remote,
                              const proxy::verbs_path& path) {
  qp_destination d{};
  std::memcpy(d.gid, remote.address.data(), sizeof d.gid);
  d.lid = remote.lid;
  d.source_gid = static_cast<std::uint8_t>(port.identity.gid_index);
  d.hop_limit = path.hop_limit;
  d.traffic_class = path.traffic_class;
  d.sl = path.sl;
  d.is_global = 1;
  d.port = port.identity.port;
  return d;
}

}  // namespace

void connect(const queue_steps& q, const proxy::verbs_address& mine, const proxy::verbs_address& remote, int pe,
             const proxy::verbs_path& path) {
  check_pair(mine, remote, pe);
  const std::string ends = fmt::format("{} <-> {} of PE {}", text_of(mine), text_of(remote), pe);
  modify_qp m{};
  m.state = to_init;
  m.mask = m_state | m_access | m_pkey | m_port;
  m.access = k_local_write | k_remote_write | k_remote_read | k_remote_atomic;
  m.pkey_index = path.pkey_index;
  m.port = mine.port;
  modify(q, ends, "RESET to INIT", m);
  m = {};
  m.state = to_rtr;
  m.mask = m_state | m_path | m_mtu | m_remote_number | m_receive_psn | m_responder_depth | m_rnr_timer;
  m.destination = destination_of(*q.port, remote, path);
  m.path_mtu = agree_mtu(mine, remote, pe, path.mtu);
  m.remote_number = remote.qpn;
  m.receive_psn = remote.psn;
  m.responder_depth = mine.responder_depth;
  m.rnr_timer = k_rnr_timer;
  modify(q, ends, "INIT to RTR", m);
  m = {};
  m.state = to_rts;
  m.mask = m_state | m_timeout | m_retries | m_rnr_retries | m_send_psn | m_initiator_depth;
  m.timeout = path.timeout;
  m.retries = path.retry;
  m.rnr_retries = path.rnr_retry;
  m.send_psn = mine.psn;
  m.initiator_depth = std::min(q.port->initiator_depth, remote.responder_depth);
  modify(q, ends, "RTR to RTS", m);
}

void destroy_qp(const domain& d, std::uint32_t* handle) noexcept {
  if (*handle == 0) return;
  qp_events events{};
  call c(obj_qp, qp::destroy);
  c.use(qp::destroyed, *handle).out(qp::destroy_response, &events);
  d.run(c);
  *handle = 0;
}

void destroy_cq(const domain& d, std::uint32_t* handle) noexcept {
  if (*handle == 0) return;
  cq_events events{};
  call c(obj_cq, cq::destroy);
  c.use(cq::destroyed, *handle).out(cq::destroy_response, &events);
  d.run(c);
  *handle = 0;
}

}  // namespace xio::rdma::uverbs
