// SPDX-License-Identifier: MIT
#include "transport/nvme/drive.hpp"

#include <algorithm>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/run_clock.hpp"
#include "base/sleeper.hpp"
#include "transport/nvme/status_text.hpp"

namespace xio::nvme {

namespace w = wire::nvme;
using clock = run_clock;

namespace {

constexpr std::uint32_t k_admin_entries = 16;
constexpr std::size_t k_page = 4096;
constexpr std::uint32_t k_gone = ~0u;  // read from a register when the device is gone

// Admin and shutdown loops wait for a model for microseconds, for hardware for milliseconds.
void nap() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

}  // namespace

drive_memory::drive_memory(bus& b, std::size_t bytes, gpu::place where)
    : bus_(b), bytes_((bytes + k_page - 1) / k_page * k_page) {
  base_ = bus_.lend(bytes_, where);
  lent_ = base_ != nullptr;
  if (!lent_) {
    memory_ = gpu::buffer(bytes_, where, k_page, gpu::purpose::completions);
    base_ = memory_.data();
  }
  seen_ = lent_ ? bus_.seen_by_kernels(base_) : base_;
  try {
    address_ = bus_.map_queue(base_, bytes_);
  } catch (...) {
    if (lent_) bus_.take_back(base_);
    throw;
  }
}

drive_memory::~drive_memory() {
  bus_.unmap_queue(base_, bytes_);
  if (lent_) bus_.take_back(base_);
}

drive::drive(std::string name, void* registers, bus& b, std::chrono::milliseconds timeout, std::uint32_t nsid)
    : name_(std::move(name)),
      registers_(static_cast<unsigned char*>(registers)),
      bus_(b),
      timeout_(timeout),
      sq_(b, k_admin_entries * sizeof(w::sqe)),
      cq_(b, k_admin_entries * sizeof(w::cqe)),
      page_(b, k_page) {
  facts_.nsid = nsid;
  try {
    enable();
    identify();
  } catch (...) {
    halt();
    throw;
  }
}

drive::~drive() {
  try {
    if (!lost_) {
      write32(w::k_reg_cc, (read32(w::k_reg_cc) & ~w::k_cc_shn_mask) | w::k_cc_shn_normal);
      wait_status(w::k_csts_shst_mask, w::k_csts_shst_complete, ready_timeout_, "shut down");
    }
    write32(w::k_reg_cc, 0);
    wait_status(w::k_csts_rdy, 0, ready_timeout_, "stop");
  } catch (const error& e) {
    log::warn("{}", e.what());
    bus_.cut_off();
  }
}

std::uint32_t drive::read32(std::uint32_t offset) const {
  return __atomic_load_n(reinterpret_cast<std::uint32_t*>(registers_ + offset), __ATOMIC_ACQUIRE);
}
std::uint64_t drive::read64(std::uint32_t offset) const {
  return __atomic_load_n(reinterpret_cast<std::uint64_t*>(registers_ + offset), __ATOMIC_ACQUIRE);
}
void drive::write32(std::uint32_t offset, std::uint32_t value) const {
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(registers_ + offset), value, __ATOMIC_RELEASE);
  wake_sleepers();
}
void drive::write64(std::uint32_t offset, std::uint64_t value) const {
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(registers_ + offset), value, __ATOMIC_RELEASE);
  wake_sleepers();
}

std::uint32_t* drive::sq_doorbell(std::uint32_t qid) const {
  return reinterpret_cast<std::uint32_t*>(registers_ + w::sq_tail_doorbell(qid, facts_.stride));
}
std::uint32_t* drive::cq_doorbell(std::uint32_t qid) const {
  return reinterpret_cast<std::uint32_t*>(registers_ + w::cq_head_doorbell(qid, facts_.stride));
}

void drive::wait_status(std::uint32_t mask, std::uint32_t value, std::chrono::milliseconds limit,
                        const char* what) const {
  const auto end = clock::now() + limit;
  for (;;) {
    const std::uint32_t csts = read32(w::k_reg_csts);
    if (csts == k_gone)
      fail(XIO_ERR_IO, "{} did not {}: it is gone from the bus; put it back and open it again", name_, what);
    if ((csts & mask) == value) return;
    if ((csts & w::k_csts_cfs) != 0 && value != 0)
      fail(XIO_ERR_IO, "{} did not {}: it reports a fatal error (CSTS {:#x}); reset it", name_, what, csts);
    if (clock::now() > end)
      fail(XIO_ERR_TIMEOUT, "{} did not {} within {} ms (CSTS {:#x}); reset it", name_, what, limit.count(), csts);
    nap();
  }
}

// NVMe base 2.0, 3.5.1.
void drive::enable() {
  const std::uint64_t cap = read64(w::k_reg_cap);
  // Drives have been seen whose CRTO is less than TO, so the longer one counts.
  const std::uint32_t media = w::cap_crwms(cap) ? w::crto_crwmt(read32(w::k_reg_crto)) : 0;
  ready_timeout_ = std::chrono::milliseconds(500) * std::max({1u, w::cap_to(cap), media});
  read_capabilities(cap, name_, facts_);
  write32(w::k_reg_cc, 0);
  wait_status(w::k_csts_rdy, 0, ready_timeout_, "stop");
  write32(w::k_reg_aqa, w::make_aqa(k_admin_entries, k_admin_entries));
  write64(w::k_reg_asq, sq_.address());
  write64(w::k_reg_acq, cq_.address());
  write32(w::k_reg_cc, w::make_cc(0));
  wait_status(w::k_csts_rdy, w::k_csts_rdy, ready_timeout_, "become ready");
}

void drive::identify() {
  const auto* page = page_.as<unsigned char>();
  admin(w::make_identify(w::cns::controller, 0, page_.address()), "Identify Controller");
  read_controller(page, facts_);
  // The list holds the 1024 that follow the number that is given (NVMe base 2.0, 5.17.2.2).
  const std::uint32_t wanted = facts_.nsid;
  admin(w::make_identify(w::cns::active_namespaces, wanted == 0 ? 0 : wanted - 1, page_.address()),
        "Identify Active Namespaces");
  facts_.nsid = choose_namespace(page, wanted, name_);
  admin(w::make_identify(w::cns::name_space, facts_.nsid, page_.address()), "Identify Namespace");
  read_namespace(page, name_, facts_);
}

void drive::use_shadow_doorbells(std::shared_ptr<drive_memory> shadow, std::shared_ptr<drive_memory> events) {
  events_ = std::move(events);
  admin(w::make_doorbell_buffer_config(shadow->address(), events_->address()), "Doorbell Buffer Config");
  shadow_ = std::move(shadow);
}

std::uint32_t drive::request_queues(std::uint32_t wanted) {
  const std::uint32_t granted =
      admin(w::make_set_features(w::feature::number_of_queues, w::make_queue_counts(wanted, wanted)),
            "Set Features (Number of Queues)");
  return std::min({wanted, w::queue_counts_sqs(granted), w::queue_counts_cqs(granted)});
}

std::uint32_t drive::create_queues(std::uint32_t wanted, std::uint64_t sq, std::uint32_t sq_entries, std::uint64_t cq,
                                   std::uint32_t cq_entries) {
  admin(w::make_create_cq(wanted, cq_entries, cq), "Create I/O Completion Queue");
  admin(w::make_create_sq(wanted, sq_entries, sq, wanted), "Create I/O Submission Queue");
  return wanted;
}

void drive::delete_queues(std::uint32_t qid) noexcept {
  if (halted_) return;
  try {
    if (lost_) return halt();
    admin(w::make_delete_queue(w::admin::delete_sq, qid), "Delete I/O Submission Queue");
    admin(w::make_delete_queue(w::admin::delete_cq, qid), "Delete I/O Completion Queue");
  } catch (const error& e) {
    log::warn("{}", e.what());
    halt();
  }
}

// A reset ends commands wherever they are (NVMe base 2.0, 3.7.2).
void drive::halt() noexcept {
  lost_ = halted_ = true;
  try {
    write32(w::k_reg_cc, 0);
    wait_status(w::k_csts_rdy, 0, ready_timeout_, "stop");
  } catch (const error& e) {
    log::warn("{}", e.what());
    bus_.cut_off();
  }
}

// The shadow of the admin queue is kept and its register always rung: set-up needs no economy.
void drive::ring_admin(std::uint32_t* doorbell, std::uint32_t value) const {
  if (shadow_ != nullptr)
    __atomic_store_n(shadow_->as<std::uint32_t>() + (doorbell - sq_doorbell(0)), value, __ATOMIC_SEQ_CST);
  __atomic_store_n(doorbell, value, __ATOMIC_RELEASE);
  wake_sleepers();
}

// One at a time: set-up is not a hot path.
std::uint32_t drive::admin(w::sqe command, const char* what) {
  const std::uint16_t cid = next_cid_++;
  command.dw[0] |= static_cast<std::uint32_t>(cid) << 16;
  sq_.as<w::sqe>()[sq_tail_] = command;
  sq_tail_ = (sq_tail_ + 1) % k_admin_entries;
  ring_admin(sq_doorbell(0), sq_tail_);
  auto* entry = cq_.as<w::cqe>() + cq_head_;
  const auto end = clock::now() + timeout_;
  std::uint32_t dw3 = 0;
  while (dw3 = __atomic_load_n(&entry->dw[3], __ATOMIC_ACQUIRE), w::cqe_phase(dw3) != phase_) {
    const std::uint32_t csts = read32(w::k_reg_csts);
    const bool late = timeout_.count() != 0 && clock::now() > end;
    // Not ready: somebody else has reset it, or it is gone.
    if (late || (csts & w::k_csts_cfs) != 0 || (csts & w::k_csts_rdy) == 0) {
      lost_ = true;
      fail(late ? XIO_ERR_TIMEOUT : XIO_ERR_IO, "{} did not complete {} (CSTS {:#x}); reset it", name_, what, csts);
    }
    nap();
  }
  const std::uint32_t result = entry->dw[0];
  cq_head_ = (cq_head_ + 1) % k_admin_entries;
  if (cq_head_ == 0) phase_ ^= 1;
  ring_admin(cq_doorbell(0), cq_head_);
  if (w::cqe_cid(dw3) != cid) {
    lost_ = true;
    fail(XIO_ERR_IO, "{} completed command {} when {} ({}) was posted; reset it", name_, w::cqe_cid(dw3), cid, what);
  }
  const std::uint32_t status = w::status_code(w::cqe_status(dw3));
  if (status != w::k_ok) fail(XIO_ERR_IO, "{} refused {}: {}", name_, what, status_text(status));
  return result;
}

}  // namespace xio::nvme
