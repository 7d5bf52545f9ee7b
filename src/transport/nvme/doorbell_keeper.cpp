// SPDX-License-Identifier: MIT
#include "transport/nvme/doorbell_keeper.hpp"
#include "base/sleeper.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::nvme {

namespace w = wire::nvme;

bool plain_writer::write(std::uint32_t offset, std::uint32_t value) {
  __atomic_store_n(reinterpret_cast<std::uint32_t*>(registers_ + offset), value, __ATOMIC_RELEASE);
  wake_sleepers();
  return true;
}

doorbell_keeper::doorbell_keeper(std::uint32_t* words, std::uint32_t dstrd, std::uint32_t queues,
                                 std::unique_ptr<register_writer> writer)
    : words_(words), dstrd_(dstrd), queues_(queues), writer_(std::move(writer)), known_(2 * (queues + 1)) {
  for (std::size_t i = 0; i < known_.size(); ++i) known_[i] = words[i << dstrd];
}

bool doorbell_keeper::poll() {
  bool some = false;
  // The admin queue is left out: the thread that sends an admin command rings its doorbells itself.
  for (std::uint32_t qid = 1; qid <= queues_; ++qid) {
    // The completions first: room for more of them is what the submissions may wait for.
    some |= carry(w::cq_head_doorbell(qid, dstrd_));
    some |= carry(w::sq_tail_doorbell(qid, dstrd_));
  }
  return some;
}

bool doorbell_keeper::carry(std::uint32_t register_offset) {
  const std::uint32_t at = (register_offset - w::k_reg_doorbells) >> (2 + dstrd_);
  // Acquire: the entries that a tail stands for are visible before the register says so.
  const std::uint32_t value = __atomic_load_n(words_ + ((register_offset - w::k_reg_doorbells) / 4), __ATOMIC_ACQUIRE);
  // Only values that are new: writing one twice is an error of the driver.
  if (value == known_[at].load(std::memory_order_relaxed)) return false;
  if (!writer_->write(register_offset, value)) return true;
  known_[at].store(value, std::memory_order_relaxed);
  rings_.fetch_add(1, std::memory_order_relaxed);
  return true;
}

void doorbell_keeper::restart(std::uint32_t qid) {
  known_[2 * qid].store(0, std::memory_order_relaxed);
  known_[2 * qid + 1].store(0, std::memory_order_relaxed);
}

}  // namespace xio::nvme
