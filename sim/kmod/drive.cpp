// SPDX-License-Identifier: MIT
#include "kmod/drive.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.hpp"

namespace kmod_sim {

namespace w = xio::wire::nvme;
using xio::model::nvme::dma_map;

namespace {

constexpr std::uint32_t k_entries = 16;  // of the admin queues
constexpr std::size_t k_page = 4096;
constexpr std::chrono::seconds k_limit{30};

void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
void fence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
// All that a drive of this process is given is memory of the process: no call that needs an agent comes.
std::uint64_t no_atomic(void*, unsigned, xio::atomic_op, std::uint64_t, std::uint64_t) { return 0; }
constexpr xio::payload_agent k_agent{copy, no_atomic, fence, true};

xio_storage_attr_t whole_file() {
  xio_storage_attr_t attr = XIO_STORAGE_ATTR_INIT;
  attr.block_bytes = 512;
  return attr;
}

xio::model::nvme::shape shape_of(const settings& s) {
  xio::model::nvme::shape out;
  out.plain_io = true;
  out.max_queues = s.queues;
  out.mdts_bytes = s.mdts;
  out.doorbell_stride = s.stride;
  return out;
}

}  // namespace

drive::drive(const settings& s, std::uint32_t number)
    : shape_(shape_of(s)), file_(s.folder + "/drive" + std::to_string(number), whole_file()) {
  file_.commit();
  const std::size_t bytes = xio::model::nvme::controller::bar_bytes(shape_);
  // The name by which the GPU's driver knows pages of registers.
  registers_ = xio::unique_fd(memfd_create("registers", MFD_CLOEXEC));
  if (!registers_ || ftruncate(registers_.get(), static_cast<off_t>(bytes)) != 0)
    xio::fail(XIO_ERR_NO_MEMORY, "no memory for the drive's registers");
  bar_ = static_cast<unsigned char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, registers_.get(), 0));
  memory_ = static_cast<unsigned char*>(
      mmap(nullptr, 3 * k_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (bar_ == MAP_FAILED || memory_ == MAP_FAILED) xio::fail(XIO_ERR_NO_MEMORY, "no memory for the drive");
  controller_ = std::make_unique<xio::model::nvme::controller>(bar_, shape_, file_, k_agent);
  bus_ = controller_->dma().add(memory_, 3 * k_page, dma_map::memory::host);
  thread_ = std::thread([this] {
    for (unsigned idle = 0;;) {
      idle = controller_->poll() ? 0 : idle + 1;
      if (idle > 200) std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  });
  thread_.detach();
  start();
}

std::uint32_t drive::load(std::uint32_t offset) const {
  return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(bar_ + offset), __ATOMIC_ACQUIRE);
}
void drive::store(std::uint32_t offset, std::uint32_t value) {
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(bar_ + offset), value, __ATOMIC_RELEASE);
}

void drive::start() {
  cap_ = load(w::k_reg_cap) | std::uint64_t{load(w::k_reg_cap + 4)} << 32;
  store(w::k_reg_aqa, w::make_aqa(k_entries, k_entries));
  const std::uint64_t queues[] = {bus_, bus_ + k_page};
  std::memcpy(bar_ + w::k_reg_asq, &queues[0], 8);
  std::memcpy(bar_ + w::k_reg_acq, &queues[1], 8);
  store(w::k_reg_cc, w::make_cc(0));
  const auto limit = std::chrono::steady_clock::now() + k_limit;
  while ((load(w::k_reg_csts) & w::k_csts_rdy) == 0)
    if (std::chrono::steady_clock::now() > limit) xio::fail(XIO_ERR_IO, "the drive does not come up");
  std::uint32_t counts = 0;
  if (admin(w::make_set_features(w::feature::number_of_queues, w::make_queue_counts(64, 64)), &counts) != 0)
    xio::fail(XIO_ERR_IO, "the drive gives no queues");
  granted_ = std::min({(counts & 0xffff) + 1, (counts >> 16) + 1, shape_.max_queues, 64u});
}

// The caller has the lock, or nobody else has the drive yet.
int drive::admin(w::sqe command, std::uint32_t* result) {
  command.dw[0] = (command.dw[0] & 0xffff) | sq_tail_ << 16;
  std::memcpy(memory_ + sq_tail_ * sizeof command, &command, sizeof command);
  sq_tail_ = (sq_tail_ + 1) % k_entries;
  store(w::sq_tail_doorbell(0, shape_.doorbell_stride), sq_tail_);
  const auto* entry = reinterpret_cast<const std::uint32_t*>(memory_ + k_page) + 4 * cq_head_;
  const auto limit = std::chrono::steady_clock::now() + k_limit;
  std::uint32_t status;
  while (((status = __atomic_load_n(&entry[3], __ATOMIC_ACQUIRE)) >> 16 & 1) != phase_)
    if (std::chrono::steady_clock::now() > limit) return EIO;
  if (result != nullptr) *result = entry[0];
  cq_head_ = (cq_head_ + 1) % k_entries;
  if (cq_head_ == 0) phase_ ^= 1;
  store(w::cq_head_doorbell(0, shape_.doorbell_stride), cq_head_);
  return status >> 17 == 0 ? 0 : EIO;
}

int drive::identify(std::uint32_t cns, std::uint32_t nsid, void* page) {
  const std::lock_guard hold(lock_);
  std::memset(memory_ + 2 * k_page, 0, k_page);
  const int failed = admin(w::make_identify(static_cast<w::cns>(cns), nsid, bus_ + 2 * k_page));
  if (failed == 0) std::memcpy(page, memory_ + 2 * k_page, k_page);
  return failed;
}

int drive::create(std::uint64_t sq, std::uint32_t sq_entries, std::uint64_t cq, std::uint32_t cq_entries,
                  std::uint32_t* out) {
  const std::lock_guard hold(lock_);
  const std::uint32_t most = static_cast<std::uint32_t>(cap_ & 0xffff) + 1;
  if (sq_entries < 2 || cq_entries < 2 || sq_entries > most || cq_entries > most) return EINVAL;
  std::uint32_t qid = 1;
  while (qid <= granted_ && taken_[qid]) ++qid;
  if (qid > granted_) return ENOSPC;
  if (const int failed = admin(w::make_create_cq(qid, cq_entries, cq)); failed != 0) return failed;
  if (const int failed = admin(w::make_create_sq(qid, sq_entries, sq, qid)); failed != 0) {
    admin(w::make_delete_queue(w::admin::delete_cq, qid));
    return failed;
  }
  taken_[qid] = true;
  *out = qid;
  return 0;
}

void drive::remove(std::uint32_t qid) {
  const std::lock_guard hold(lock_);
  admin(w::make_delete_queue(w::admin::delete_sq, qid));
  admin(w::make_delete_queue(w::admin::delete_cq, qid));
  taken_[qid] = false;
}

}  // namespace kmod_sim
