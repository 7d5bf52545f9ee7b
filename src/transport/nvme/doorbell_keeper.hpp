// SPDX-License-Identifier: MIT
// The host's part of doorbells that kernels cannot ring: it looks at the words that they write and carries what changed
// to the drive.
#pragma once
#include "progress/machine.hpp"

namespace xio::nvme {

// Writes a 32-bit register of the drive.
class register_writer {
 public:
  virtual ~register_writer() = default;
  // False: not now, ask again.
  virtual bool write(std::uint32_t offset, std::uint32_t value) = 0;
};

class plain_writer : public register_writer {
 public:
  explicit plain_writer(void* registers) : registers_(static_cast<unsigned char*>(registers)) {}
  bool write(std::uint32_t offset, std::uint32_t value) override;

 private:
  unsigned char* registers_;
};

// Polled by a host thread like the software devices are.
class doorbell_keeper : public progress::device {
 public:
  // words: SQ tail and CQ head of each queue as in the doorbells' own layout, from queue 0 on. The registers have what
  // is in them now.
  doorbell_keeper(std::uint32_t* words, std::uint32_t dstrd, std::uint32_t queues,
                  std::unique_ptr<register_writer> writer);
  bool poll() override;
  void restart(std::uint32_t qid);  // the queue begins anew: both words are 0
  std::uint64_t rings() const { return rings_.load(std::memory_order_relaxed); }

 private:
  bool carry(std::uint32_t register_offset);

  std::uint32_t* words_;
  std::uint32_t dstrd_, queues_;
  std::unique_ptr<register_writer> writer_;
  std::vector<std::atomic<std::uint32_t>> known_;
  std::atomic<std::uint64_t> rings_{0};
};

}  // namespace xio::nvme
