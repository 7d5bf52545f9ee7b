// SPDX-License-Identifier: MIT
#include "uverbs/device/device.hpp"

#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bit>
#include <cstdio>
#include <thread>

#include "base/host_atomic.hpp"
#include "model/nic/bnxt_queue.hpp"
#include "model/nic/ionic_queue.hpp"
#include "model/nic/mlx5_queue.hpp"
#include "proxy/memory_ops.hpp"
#include "uverbs/device/requester.hpp"

namespace uverbs {

using namespace xio::proxy;

namespace {

// A page has four registers of 256 bytes from 0x800 on, each of which takes doorbells of all queue pairs of the page
// (rdma-core providers/mlx5: MLX5_BF_OFFSET, and half of bf_reg_size). Libraries hand them out one by one.
bool is_doorbell(std::uint32_t offset) { return offset >= 0x800 && offset < 0xc00 && offset % 0x100 == 0; }
constexpr std::uint64_t k_most_message = 1u << 30;

void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

void fence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }

const xio::payload_agent k_host{copy, xio::change_host_word, fence};

}  // namespace

device* device::current() {
  static device* const one = [] {
    const char* session = std::getenv("XIO_TEST_UVERBS_SESSION");
    return session == nullptr ? nullptr : new device();  // for the process's life
  }();
  return one;
}

device::device()
    : settings_(settings::read()),
      processor_(*this, *this),
      keys_(settings_.host * 7 + 1),
      receiver_(settings_.session, settings_.host) {
  take_faults();
  std::thread([this] { work(); }).detach();
}

void device::take_faults() {
  processor_.get_limits() = {};
  processor_.get_limits().real_time_clock_only = settings_.real_time_clock;
  if (settings_.shallow) processor_.get_limits().log_max_qp_size = 4;
  processor_.refuse_nothing();
  for (const auto& [opcode, status] : settings_.refused)
    processor_.refuse(opcode, {static_cast<firmware::status>(status), firmware::rule::asked_for});
}

void device::set_faults(const std::string& words) {
  settings_.set_faults(words);
  take_faults();
}

std::uint32_t device::add_umem(firmware::umem m) {
  umems_[next_umem_] = m;
  return next_umem_++;
}
const firmware::umem* device::find_umem(std::uint32_t id) const {
  const auto found = umems_.find(id);
  return found == umems_.end() ? nullptr : &found->second;
}

std::uint32_t device::add_domain() {
  domains_[next_domain_] = true;
  return next_domain_++;
}

std::uint32_t device::add_page() {
  pages_.insert(next_page_);
  return next_page_++;
}

// ::ffff:10.0.0.HOST
void device::gid(unsigned char to[16]) const {
  std::memset(to, 0, 16);
  to[10] = to[11] = 0xff;
  to[12] = 10;
  to[15] = static_cast<unsigned char>(settings_.host);
}

bool device::mac_of(const unsigned char gid[16], unsigned char mac[6]) const {
  static constexpr unsigned char k_network[15] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0};
  struct stat s {};
  const std::string host = settings_.session + "/host" + std::to_string(gid[15]);
  if (std::memcmp(gid, k_network, sizeof k_network) != 0 || stat(host.c_str(), &s) != 0) return false;
  std::memset(mac, 0, 6);
  mac[0] = 2;
  mac[5] = gid[15];
  return true;
}

// --- Queue pairs -------------------------------------------------------------------------------------

void device::start(std::uint32_t qpn, const firmware::queue_pair& q) {
  running& r = running_[qpn];
  r.page = q.memory.uar_page;
  xio::model::rdma::mlx5_memory m{};
  m.slots = reinterpret_cast<const std::uint32_t*>(q.memory.slots);
  m.depth = q.memory.depth;
  m.doorbell_record = q.memory.send_record;
  m.doorbell = &r.doorbell;
  m.cqe = reinterpret_cast<std::uint32_t*>(q.memory.completions);
  r.queue = std::make_unique<queue_pair>(qpn, std::make_unique<xio::model::rdma::mlx5_queue>(m, qpn, k_most_message));
  r.queue->connect(std::make_unique<requester>(settings_, qpn, q, k_host, keys_), 0);
}

// The part of a queue that both vendors have.
template <class Memory>
std::pair<device::running&, Memory> device::begin(std::uint32_t qpn, const firmware::queue_pair& q,
                                                  const rings& rings) {
  connect(qpn, q);
  running& r = running_[qpn];
  r.page = rings.page, r.cq_number = rings.cq_number, r.cq_page = rings.cq_page;
  Memory m{};
  m.slots = reinterpret_cast<const std::uint32_t*>(rings.slots);
  m.depth_log2 = static_cast<std::uint32_t>(std::countr_zero(rings.depth));
  m.doorbell = &r.doorbell;
  m.cqes = reinterpret_cast<std::uint32_t*>(rings.completions);
  m.cq_depth_log2 = static_cast<std::uint32_t>(std::countr_zero(rings.cq_depth));
  m.cq_doorbell = &r.cq_doorbell;
  m.cq_number = rings.cq_number;
  return {r, m};
}

void device::start_bnxt(std::uint32_t qpn, const firmware::queue_pair& q, const rings& rings) {
  auto [r, m] = begin<xio::model::rdma::bnxt_memory>(qpn, q, rings);
  m.msns =
      reinterpret_cast<const std::uint64_t*>(rings.slots + std::size_t{rings.depth} * xio::wire::bnxt::k_wqe_bytes);
  m.first_psn = q.send_psn;
  m.path_mtu = rings.mtu;
  m.by_slots = true;
  m.table_log2 = rings.table_log2;
  r.queue = std::make_unique<queue_pair>(qpn, std::make_unique<xio::model::rdma::bnxt_queue>(m, qpn, k_most_message));
  r.queue->connect(std::make_unique<requester>(settings_, qpn, q, k_host, keys_), 0);
}

void device::start_ionic(std::uint32_t qpn, const firmware::queue_pair& q, const rings& rings) {
  auto [r, m] = begin<xio::model::rdma::ionic_memory>(qpn, q, rings);
  m.face = settings_.interface1 ? xio::wire::ionic::interface::v1 : xio::wire::ionic::interface::v2;
  r.queue = std::make_unique<queue_pair>(qpn, std::make_unique<xio::model::rdma::ionic_queue>(m, qpn, k_most_message));
  r.queue->connect(std::make_unique<requester>(settings_, qpn, q, k_host, keys_), 0);
}

void device::stop(std::uint32_t qpn) {
  running_.erase(qpn);
  pairs_.erase(qpn);
  expected_psn_.erase(qpn);
  receives_.erase(qpn);
}

const firmware::queue_pair* device::find_pair(std::uint32_t qpn) const {
  const auto found = pairs_.find(qpn);
  return found != pairs_.end() ? &found->second : processor_.find(qpn);
}

// The word that a store to a page changes, or null: no queue is announced there.
std::uint64_t* device::find_doorbell(const doorbell& d, running** whose) {
  if (settings_.nic == nic_kind::bnxt) return find_bnxt_doorbell(d, whose);
  if (settings_.nic == nic_kind::ionic) return find_ionic_doorbell(d, whose);
  const auto found = running_.find(xio::wire::mlx5::get_doorbell(d.value).qpn);
  if (found == running_.end() || !is_doorbell(d.offset) || found->second.page != d.page) return nullptr;
  *whose = &found->second;
  return &found->second.doorbell;
}

std::uint64_t* device::find_bnxt_doorbell(const doorbell& d, running** whose) {
  const xio::wire::bnxt::doorbell bell = xio::wire::bnxt::get_doorbell(d.value);
  if (d.offset != 0) return nullptr;
  for (auto& [qpn, r] : running_) {
    *whose = &r;
    if (bell.type == xio::wire::bnxt::bell_sq && qpn == bell.queue) return r.page == d.page ? &r.doorbell : nullptr;
    if (bell.type == xio::wire::bnxt::bell_cq && r.cq_number == bell.queue)
      return r.cq_page == d.page ? &r.cq_doorbell : nullptr;
  }
  return nullptr;
}

// The type of the queue is the place in the page, which has 64 bytes again and again.
std::uint64_t* device::find_ionic_doorbell(const doorbell& d, running** whose) {
  const xio::wire::ionic::doorbell bell = xio::wire::ionic::get_doorbell(d.value);
  const std::uint32_t type = d.offset % 64 / sizeof d.value;
  for (auto& [qpn, r] : running_) {
    if (r.page != d.page) continue;
    *whose = &r;
    if (type == k_ionic_sq_type && qpn == bell.qid) return &r.doorbell;
    if (type == k_ionic_cq_type && r.cq_number == bell.qid) return &r.cq_doorbell;
  }
  return nullptr;
}

void device::ring(const doorbell& d) {
  for (const auto& [qpn, r] : receives_)
    if (r != nullptr && r->take_doorbell(d)) return;
  running* whose = nullptr;
  std::uint64_t* word = find_doorbell(d, &whose);
  if (word == nullptr) {
    // A queue that has just been ended is no longer known.
    if (settings_.log)
      std::fprintf(stderr, "simulated RDMA device: doorbell %#llx at %#x of page %#x is no queue's\n",
                   static_cast<unsigned long long>(d.value), d.offset, d.page);
    return;
  }
  const auto is_odd = [&](const auto& pair) { return &pair.second == whose && pair.first % 2 != 0; };
  if (settings_.half_deaf && std::ranges::any_of(running_, is_odd)) return;
  __atomic_store_n(word, d.value, __ATOMIC_RELEASE);
  whose->queue->turn(nullptr);
}

receive_side* device::find_receives(std::uint32_t qpn, const firmware::queue_pair& q) {
  const auto found = receives_.find(qpn);
  if (found != receives_.end()) return found->second.get();
  return (receives_[qpn] = make_mlx5_receives(qpn, q.memory)).get();
}

bool device::serve(const request_message& in, response_message& out) {
  const request& r = in.head;
  const firmware::queue_pair* q = find_pair(r.remote_qpn);
  const bool takes = q != nullptr && (q->state == firmware::qp_state::rtr || q->state == firmware::qp_state::rts) &&
                     q->remote_qpn == r.qpn && q->remote_gid[15] == r.host;
  if (!takes) return false;
  const auto [expected, is_first] = expected_psn_.try_emplace(r.remote_qpn, q->receive_psn);
  if (expected->second != r.psn) return false;
  receive_side* const receives = r.has_immediate ? find_receives(r.remote_qpn, *q) : nullptr;
  out.head.is_not_ready = receives != nullptr && !receives->is_ready();
  if (out.head.is_not_ready) return true;
  ++expected->second;
  out.head.bytes = r.bytes;
  const std::uint32_t right = remote_right(r.what);
  unsigned char* at = nullptr;
  if ((q->may & right) == 0) {
    out.head.how = {outcome::remote_access, rule::remote_rights};
  } else if (r.has_immediate && receives == nullptr) {
    out.head.how = {outcome::remote_invalid_request, rule::not_connected};  // there is no receive queue
  } else if (r.bytes != 0) {
    out.head.how = find_remote(keys_, r.rkey, r.remote, r.bytes, right, &at);
    if (out.head.how) return true;
    if (r.what == verb::write) store_bytes(k_host, at, in.data, r.bytes);
    if (r.what == verb::read) k_host.copy(out.data, at, r.bytes);
    if (r.what == verb::atomic) out.head.old = change_word(k_host, at, r.change);
  }
  if (receives != nullptr && !out.head.how) receives->complete(r.immediate, r.bytes);
  return true;
}

bool device::turn() {
  const auto hold = lock();
  bool any = false;
  for (doorbell d; take_doorbell(&d); any = true) ring(d);
  any |= receiver_.poll([this](const request_message& in, response_message& out) { return serve(in, out); });
  for (auto& [qpn, r] : running_) any |= r.queue->turn(nullptr);
  return any;
}

void device::work() {
  // Else the kernel adds 50 us to each of the naps below.
  prctl(PR_SET_TIMERSLACK, 1000);
  for (unsigned idle = 0;; ++idle) {
    if (turn()) idle = 0;
    if (idle < 64)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(idle < 1000 ? 5 : 100));
  }
}

}  // namespace uverbs

// No spans of time are kept.
std::atomic<bool> xio::trace::g_on{false};
void xio::trace::keep(const span&, std::uint64_t) noexcept {}
