// SPDX-License-Identifier: MIT
#include "transport/nvme/drive.hpp"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/run_clock.hpp"
#include "transport/nvme/status_text.hpp"

namespace xio::nvme {

namespace w = wire::nvme;
using clock = run_clock;

namespace {

constexpr std::uint32_t k_admin_entries = 16;
constexpr std::size_t k_page = 4096;
constexpr std::uint32_t k_gone = ~0u;  // read from a register when the device is gone

template <class T>
T field(const unsigned char* page, std::uint32_t offset) {
  T value;
  std::memcpy(&value, page + offset, sizeof value);
  return value;
}

// Admin and shutdown loops wait for a model for microseconds, for hardware for milliseconds.
void nap() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

}  // namespace

drive_memory::drive_memory(bus& b, std::size_t bytes, gpu::place where)
    : bus_(b), bytes_((bytes + k_page - 1) / k_page * k_page) {
  base_ = bus_.lend(bytes_);
  lent_ = base_ != nullptr;
  if (!lent_) {
    memory_ = gpu::buffer(bytes_, where, k_page, gpu::purpose::completions);
    base_ = memory_.data();
  }
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
}
void drive::write64(std::uint32_t offset, std::uint64_t value) const {
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(registers_ + offset), value, __ATOMIC_RELEASE);
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
  ready_timeout_ = std::chrono::milliseconds(500) * std::max(1u, w::cap_to(cap));
  facts_.stride = w::cap_dstrd(cap);
  facts_.max_entries = w::cap_mqes(cap) + 1;
  facts_.contiguous = w::cap_cqr(cap);
  if ((w::cap_css(cap) & 1) == 0)
    fail(XIO_ERR_UNSUPPORTED, "{} has no NVM command set (CAP {:#x}); use another drive", name_, cap);
  if (w::cap_mpsmin(cap) != 0)
    fail(XIO_ERR_UNSUPPORTED, "{} does not do 4 KiB pages (CAP {:#x}); use another drive", name_, cap);
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
  const std::uint32_t mdts = field<std::uint8_t>(page, w::k_id_mdts);
  facts_.transfer_bytes = mdts == 0 || mdts >= 11 ? k_most_transfer : facts_.page_bytes << mdts;
  facts_.write_cache = (field<std::uint8_t>(page, w::k_id_vwc) & 1) != 0;
  const std::uint32_t oncs = field<std::uint16_t>(page, w::k_id_oncs);
  facts_.compares = (oncs & w::k_oncs_compare) != 0;
  facts_.zeroes = (oncs & w::k_oncs_write_zeroes) != 0;
  // Dwords only is what PRPs ask of buffers too.
  facts_.sgls = w::sgls_supported(field<std::uint32_t>(page, w::k_id_sgls));
  facts_.shadow_doorbells = (field<std::uint16_t>(page, w::k_id_oacs) & w::k_oacs_doorbell_buffer_config) != 0;
  choose_namespace();

  admin(w::make_identify(w::cns::name_space, facts_.nsid, page_.address()), "Identify Namespace");
  facts_.blocks = field<std::uint64_t>(page, w::k_id_nsze);
  facts_.read_only = (field<std::uint8_t>(page, w::k_id_nsattr) & 1) != 0;
  facts_.shared = (field<std::uint8_t>(page, w::k_id_nmic) & 1) != 0;
  std::memcpy(facts_.nguid.data(), page + w::k_id_nguid, facts_.nguid.size());
  std::memcpy(facts_.eui64.data(), page + w::k_id_eui64, facts_.eui64.size());
  const std::uint32_t format =
      w::format_in_use(field<std::uint8_t>(page, w::k_id_flbas), field<std::uint8_t>(page, w::k_id_nlbaf));
  const std::uint32_t lbaf = field<std::uint32_t>(page, w::k_id_lbaf + 4 * format);
  const std::uint32_t lbads = (lbaf >> 16) & 0xff;
  if ((lbaf & 0xffff) != 0)
    fail(XIO_ERR_UNSUPPORTED, "namespace {} of {} is formatted with {} bytes of metadata; format it without",
         facts_.nsid, name_, lbaf & 0xffff);
  if (lbads < 9 || lbads > 16)
    fail(XIO_ERR_UNSUPPORTED, "namespace {} of {} has blocks of 2^{} bytes; format it with 512 to 65536", facts_.nsid,
         name_, lbads);
  facts_.block_bytes = 1u << lbads;
}

void drive::choose_namespace() {
  const auto* page = page_.as<unsigned char>();
  const std::uint32_t wanted = facts_.nsid;
  // The list holds the 1024 that follow the number that is given (NVMe base 2.0, 5.17.2.2).
  admin(w::make_identify(w::cns::active_namespaces, wanted == 0 ? 0 : wanted - 1, page_.address()),
        "Identify Active Namespaces");
  for (std::uint32_t i = 0; i < w::k_identify_bytes / 4; ++i) {
    const std::uint32_t nsid = field<std::uint32_t>(page, 4 * i);
    if (nsid == 0) break;
    facts_.nsid = nsid;
    if (wanted == 0 || wanted == nsid) return;
  }
  if (wanted == 0) fail(XIO_ERR_IO, "{} has no active namespace; create one", name_);
  fail(XIO_ERR_ARG, "{} has no active namespace {}; name one that it has", name_, wanted);
}

void check_namespace(const drive_facts& f, const xio_storage_attr_t& attr, const std::string& name) {
  if ((attr.flags & (XIO_STORAGE_CREATE | XIO_STORAGE_TRUNCATE)) != 0)
    fail(XIO_ERR_ARG, "cannot open {}: only files are created or emptied; leave both flags out", name);
  if (attr.block_bytes != 0 && attr.block_bytes != f.block_bytes)
    fail(XIO_ERR_ARG, "cannot open {}: its blocks have {} bytes and not {}; ask for 0 or for what it has", name,
         f.block_bytes, attr.block_bytes);
  if (f.blocks == 0 || f.blocks > ~std::uint64_t{0} / f.block_bytes)
    fail(XIO_ERR_IO, "cannot open {}: it claims {} blocks of {} bytes, which cannot be; use another drive", name,
         f.blocks, f.block_bytes);
  if (f.transfer_bytes < f.block_bytes)
    fail(XIO_ERR_UNSUPPORTED, "cannot open {}: its commands carry {} bytes and its blocks have {}; use another drive",
         name, f.transfer_bytes, f.block_bytes);
  if (f.blocks * f.block_bytes < attr.bytes)
    fail(XIO_ERR_ARG, "cannot open {}: it has {} bytes and {} were asked for; ask for less, or use a larger drive",
         name, f.blocks * f.block_bytes, attr.bytes);
  if (f.read_only && (attr.flags & XIO_STORAGE_READ_ONLY) == 0)
    fail(XIO_ERR_ARG, "cannot open {}: the namespace is write protected; open it with XIO_STORAGE_READ_ONLY", name);
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

void drive::create_queues(std::uint32_t qid, std::uint64_t sq, std::uint32_t sq_entries, std::uint64_t cq,
                          std::uint32_t cq_entries) {
  admin(w::make_create_cq(qid, cq_entries, cq), "Create I/O Completion Queue");
  admin(w::make_create_sq(qid, sq_entries, sq, qid), "Create I/O Submission Queue");
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
