// SPDX-License-Identifier: MIT
// How the doorbells of a drive's I/O queues are rung.
//
//   bar     kernels store to the registers.
//   shadow  kernels store to memory that the drive watches (Doorbell Buffer Config) and to the register only where the
//           drive's EventIdx asks for it.
//   host    kernels store to the same words of memory, and a host thread carries what changed to the registers: for
//           GPUs that cannot write them.
//   bridge  likewise, and the host thread has a PCI MMIO bridge write the registers.
#pragma once
#include "base/options.hpp"
#include "progress/machine.hpp"
#include "transport/nvme/io_queue.hpp"

namespace xio::nvme {

enum class doorbell_way { bar, shadow, host, bridge };
const char* name_of(doorbell_way way);

// The ways to a drive's doorbells that the machine offers; the drive's own abilities come in addition.
struct doorbell_reach {
  void* registers = nullptr;       // BAR0 as kernels may store to it; null: they cannot
  std::uint32_t bdf = 0;           // of the drive, bus << 8 | devfn, for a bridge
  void* host_registers = nullptr;  // BAR0 as the host sees it
  bool software = false;           // the drive is a model: a missing bridge is one too
};

// The way for what XIO_NVME_DOORBELL says; throws where that cannot be. auto: shadow where the drive has it and is
// hardware's emulation (only those do), else the registers, else the host.
doorbell_way choose_doorbells(option::nvme_doorbell wish, const drive_facts& facts, const doorbell_reach& can,
                              const std::string& name);

class doorbell_keeper;
class register_writer;

class doorbells {
 public:
  // After identify and before the first queue; `queues` is how many there may be.
  doorbells(drive& d, const nvme_options& o, progress::machine& m, const doorbell_reach& can, std::uint32_t queues);
  ~doorbells();
  doorbells& operator=(doorbells&&) = delete;

  doorbell_way way() const { return way_; }
  // Before queue qid is created: its words are 0.
  void prepare(std::uint32_t qid);
  // From the registers to a host thread, before any kernel rings; `queues` are all there are.
  void leave_registers(const std::vector<std::unique_ptr<io_queue>>& queues);
  // Fills doorbell, cq_doorbell, record and side of a queue's view.
  void show(std::uint32_t qid, dev::ring_view& v) const;

 private:
  void use_keeper(std::unique_ptr<register_writer> writer);
  void set_words(std::uint32_t qid, std::uint32_t tail, std::uint32_t head) const;
  std::size_t word_bytes() const;

  drive& drive_;
  progress::machine& machine_;
  doorbell_reach can_;
  doorbell_way way_;
  std::uint32_t queues_;
  std::shared_ptr<drive_memory> shadow_, events_;
  std::unique_ptr<doorbell_keeper> keeper_;
};

}  // namespace xio::nvme
