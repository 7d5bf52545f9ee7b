// SPDX-License-Identifier: MIT
// A strict NVMe drive in software. It reads registers, doorbells and queues from plain memory, checks every rule that
// a drive may check and some that drives only could, and does its I/O on a file.
#pragma once
#include <atomic>
#include <bitset>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "base/payload.hpp"
#include "model/machine.hpp"
#include "model/nvme/dma.hpp"
#include "model/nvme/faults.hpp"
#include "model/nvme/file.hpp"
#include "model/nvme/file_engine.hpp"
#include "model/nvme/prp.hpp"
#include "xio/wire/nvme.hpp"

namespace xio::model::nvme {

struct shape {
  std::uint32_t mdts_bytes = 1 << 20;  // a power of two of pages, 2 at least
  std::uint32_t max_entries = 32768;   // of a queue
  std::uint32_t max_queues = 64;       // I/O queue pairs
  std::uint32_t doorbell_stride = 0;   // CAP.DSTRD
  bool plain_io = false;               // no io_uring
};

class controller : public device {
 public:
  // Registers, and doorbells of every queue.
  static std::size_t bar_bytes(const shape& s);
  static constexpr std::uint32_t k_page = 4096;
  static constexpr std::uint32_t k_nsid = 1;

  // bar: zeroed memory of bar_bytes() that outlives the controller; the driver writes there.
  controller(void* bar, const shape& s, file& backing, const payload_agent& payload);
  ~controller() override;

  bool poll() override;

  // Memory that commands and queues may name. Thread safe.
  dma_map& dma() { return dma_; }
  const char* io_engine() const { return engine_->name(); }

  // For tests; thread safe.
  void inject(const fault& f) { faults_.add(f); }
  void release() { release_.store(true, std::memory_order_release); }  // everything that a fault holds
  void shuffle(std::uint64_t seed);  // completions go out in random order; 0 = as they come
  std::uint64_t commands() const { return commands_.load(std::memory_order_relaxed); }
  std::uint64_t invalid_doorbells() const { return invalid_doorbells_.load(std::memory_order_relaxed); }

 private:
  using sqe = wire::nvme::sqe;
  using clock = std::chrono::steady_clock;

  struct completion_queue {
    std::byte* base = nullptr;
    std::uint32_t entries = 0;
    std::uint32_t tail = 0;  // next to write
    std::uint32_t head = 0;  // what the driver said
    std::uint32_t phase = 1;
    std::uint32_t users = 0;
  };
  struct submission_queue {
    const std::byte* base = nullptr;
    std::uint32_t entries = 0;
    std::uint32_t head = 0;      // next to fetch
    std::uint32_t tail = 0;      // what the driver said
    std::uint32_t reported = 0;  // head as the last posted completion told it
    std::uint32_t cqid = 0;
    std::uint32_t file_jobs = 0;
    bool deleting = false;
    std::uint16_t delete_cid = 0;  // of the admin command that waits for file_jobs
    std::bitset<65536> taken;      // command ids in flight
  };
  // A command whose answer waits for room or luck.
  struct answer {
    std::uint32_t sqid;
    std::uint16_t cid;
    std::uint32_t status;
    std::uint32_t result;
  };
  // A command that a fault delays. Nothing of it is looked at before: a drive may read lists and data that late.
  struct late_command {
    std::uint32_t sqid;
    sqe command;
    clock::time_point when;
  };
  // A command that is with the file engine.
  struct work {
    file_job job;
    std::uint32_t sqid;
    std::uint16_t cid;
    std::uint8_t opcode;
    std::vector<segment> data;
    std::vector<std::byte> bounce;  // when the payload is not memory that the kernel can reach
    bool hold = false;
  };

  // controller.cpp: registers, doorbells, completions
  std::uint32_t read32(std::uint32_t offset) const;
  std::uint64_t read64(std::uint32_t offset) const;
  void write_csts(std::uint32_t value);
  bool check_registers();
  void enable(std::uint32_t cc);
  void forget_everything();
  bool check_doorbells();
  bool take_sq_tail(std::uint32_t qid, std::uint32_t value);
  bool take_cq_head(std::uint32_t qid, std::uint32_t value);
  void event(std::uint32_t dw0);
  bool fetch(std::uint32_t qid);
  void finish(std::uint32_t sqid, std::uint16_t cid, std::uint32_t status, std::uint32_t result = 0);
  bool post_answers();
  bool post(const answer& a);
  void die();

  // admin.cpp
  void execute_admin(const sqe& command);
  std::uint32_t identify(const sqe& command);
  std::uint32_t create_cq(const sqe& command);
  std::uint32_t create_sq(const sqe& command);
  std::uint32_t delete_cq(const sqe& command);
  bool delete_sq(const sqe& command, std::uint32_t* status);
  void end_deletion(std::uint32_t qid);
  std::uint32_t set_features(const sqe& command, std::uint32_t* result);
  std::uint32_t get_features(const sqe& command, std::uint32_t* result);
  std::uint32_t to_memory(const sqe& command, const std::byte* page);

  // io.cpp
  void execute_io(std::uint32_t sqid, const sqe& command);
  void perform(std::uint32_t sqid, const sqe& command, bool hold);
  bool start_late();
  std::uint32_t check_common(const sqe& command) const;
  std::uint32_t check_range(const sqe& command) const;
  std::uint32_t start_transfer(std::uint32_t sqid, const sqe& command, bool hold);
  void start_flush(std::uint32_t sqid, const sqe& command, bool hold);
  std::uint32_t write_zeroes(const sqe& command);
  work& new_work(std::uint32_t sqid, const sqe& command, bool hold);
  bool reap_file();
  void end_work(work& w);

  std::byte* bar_;
  shape shape_;
  file& file_;
  const payload_agent& payload_;
  dma_map dma_;
  std::unique_ptr<file_engine> engine_;
  fault_list faults_;

  bool enabled_ = false;
  bool dead_ = false;
  bool shut_down_ = false;
  std::uint32_t page_ = k_page;
  std::uint32_t granted_sqs_ = 0, granted_cqs_ = 0;
  bool write_cache_ = true;
  std::map<std::uint32_t, submission_queue> sqs_;
  std::map<std::uint32_t, completion_queue> cqs_;
  std::vector<std::uint32_t> dead_queues_;  // deleted, to be taken out of sqs_
  std::deque<std::uint16_t> event_requests_;
  std::deque<std::uint32_t> events_;
  std::vector<answer> answers_;
  std::vector<answer> held_;
  std::vector<late_command> late_;
  std::vector<std::unique_ptr<work>> works_;  // in flight and spare
  std::vector<work*> spare_;
  std::size_t in_file_ = 0;
  std::vector<file_job*> done_;

  std::atomic<bool> release_{false};
  std::atomic<std::uint64_t> shuffle_seed_{0};
  std::uint64_t shuffle_now_ = 0;
  std::mt19937_64 random_;
  std::atomic<std::uint64_t> commands_{0};
  std::atomic<std::uint64_t> invalid_doorbells_{0};
};

}  // namespace xio::model::nvme
