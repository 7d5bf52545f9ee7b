// SPDX-License-Identifier: MIT
// A strict NVMe drive in software. It reads registers, doorbells and queues from plain memory, checks every rule that
// a drive may check and some that drives only could, and does its I/O on a file.
#pragma once
#include <bitset>
#include <random>

#include "base/payload.hpp"
#include "base/trace.hpp"
#include "model/nvme/event_desk.hpp"
#include "model/nvme/faults.hpp"
#include "model/nvme/file.hpp"
#include "model/nvme/file_engine.hpp"
#include "model/nvme/queue_memory.hpp"
#include "model/nvme/registers.hpp"
#include "progress/machine.hpp"

namespace xio::model::nvme {

struct shape {
  std::uint32_t mdts_bytes = 1 << 20;     // a power of two of pages, 2 at least; 0: no limit
  std::uint32_t max_entries = 32768;      // of a queue
  std::uint32_t max_queues = 64;          // I/O queue pairs
  std::uint32_t doorbell_stride = 0;      // CAP.DSTRD
  bool plain_io = false;                  // no io_uring
  bool contiguous = true;                 // CAP.CQR: queues in one piece only
  std::uint32_t max_page_shift = 0;       // CAP.MPSMAX: pages of up to 4 KiB << this
  bool write_cache = true;                // a volatile one
  bool compare = true;                    // ONCS bit 0
  bool write_zeroes = true;               // ONCS bit 3
  std::uint32_t sgls = 1;                 // Identify, SGLS 1:0: 0 none, 1 of any alignment, 2 in whole dwords
  bool doorbell_buffers = true;           // OACS bit 8
  std::uint32_t shadow_turns = 64;        // without work, after which a shadowed queue wants its doorbell written again
  std::uint32_t namespaces = 1;           // equal parts of the file
  bool of_bytes = false;                  // wire::nvme::of_bytes; the only namespace then ends where the file does
  std::uint32_t metadata_bytes = 0;       // of a block. Other than 0 is there to be refused: no command moves any
  std::chrono::microseconds enabling{0};  // from CC.EN to CSTS.RDY
};

class controller : public progress::device {
 public:
  // Registers, and doorbells of every queue.
  static std::size_t bar_bytes(const shape& s);
  static constexpr std::uint32_t k_page = 4096;
  static constexpr std::uint32_t k_heavy = 16;  // commands in a turn that one thread must do

  // bar: zeroed memory of bar_bytes() that outlives the controller; the driver writes there.
  // engine: null, or what reads and writes the file.
  controller(void* bar, const shape& s, file& backing, const payload_agent& payload,
             std::unique_ptr<file_engine> engine = nullptr);
  ~controller() override;

  bool poll() override;
  bool at_rest(sleeper::descriptors&) override;
  bool assist() override { return engine_->assist(); }
  bool heavy() const override { return alone_ >= k_heavy; }

  // Memory that commands and queues may name. Thread safe.
  dma_map& dma() { return dma_; }
  file_engine& engine() { return *engine_; }  // for what is thread safe of it
  // Takes memory away and waits for the file's jobs that have it, as an IOMMU's unmap ends what a drive does there. Not
  // from the thread that polls. False: a job does not end, and may still read or write there.
  bool take_away(const void* base);
  const char* io_engine() const { return engine_->name(); }

  // Faults; thread safe.
  void inject(const fault_plan& plan);
  void inject(const fault& f) { faults_.add(f); }
  void release() { raise(release_); }  // everything that a fault holds
  void kill() { raise(kill_); }        // a fatal error now: CSTS.CFS
  void shuffle(std::uint64_t seed);    // completions go out in random order; 0 = as they come

  // Since it was made; thread safe.
  std::uint64_t commands() const { return commands_.load(std::memory_order_relaxed); }
  std::uint64_t invalid_doorbells() const { return invalid_doorbells_.load(std::memory_order_relaxed); }
  // Of memory that is not mapped, or was taken away while a command or a queue had it: an IOMMU would have stopped it.
  std::uint64_t dma_faults() const { return dma_faults_.load(std::memory_order_relaxed); }
  std::uint64_t doorbells() const { return doorbells_.load(std::memory_order_relaxed); }  // seen written in the BAR

 private:
  using sqe = wire::nvme::sqe;
  using clock = std::chrono::steady_clock;

  // A queue's words in the two pages of Doorbell Buffer Config.
  struct shadow_words {
    const std::uint32_t* value = nullptr;  // null: the queue has a doorbell only
    std::uint32_t* event_index = nullptr;
    bool awake = true;  // looks at the value by itself
    std::uint32_t idle = 0;
    std::uint32_t refused = ~0u;  // the last value that could not be: told once
  };
  struct completion_queue {
    queue_memory memory;
    std::uint32_t entries = 0;
    std::uint32_t tail = 0;  // next to write
    std::uint32_t head = 0;  // what the driver said
    std::uint32_t phase = 1, users = 0;
    shadow_words shadow;
  };
  struct submission_queue {
    queue_memory memory;
    std::uint32_t entries = 0;
    std::uint32_t head = 0;      // next to fetch
    std::uint32_t tail = 0;      // what the driver said
    std::uint32_t reported = 0;  // head as the last posted completion told it
    std::uint32_t cqid = 0, file_jobs = 0;
    std::uint64_t fetched = 0;
    bool deleting = false;
    std::uint16_t delete_cid = 0;  // of the admin command that waits for file_jobs
    std::bitset<65536> taken;      // command ids in flight
    shadow_words shadow;
  };
  // A completion that waits for room in the CQ, or for its turn in a shuffled order.
  struct completion {
    std::uint32_t sqid;
    std::uint16_t cid;
    std::uint32_t status, result;
    bool frees = true;  // the command id
  };
  // A command that a fault delays. Nothing of it is looked at before: a drive may read lists and data that late.
  struct late_command {
    std::uint32_t sqid;
    sqe command;
    clock::time_point when;
  };
  static constexpr std::uint64_t k_no_data = ~std::uint64_t{0};
  // A command that is with the file engine.
  struct work {
    file_job job;
    std::uint32_t sqid;
    std::uint16_t cid;
    std::uint32_t nsid;
    std::uint64_t lba;
    wire::nvme::opcode opcode;
    std::vector<segment> data;
    std::uint64_t removals = k_no_data;  // of the DMA map when `data` was found
    // What a compare reads: in whole pages, for O_DIRECT wants them.
    struct alignas(4096) page {
      std::byte bytes[4096];
    };
    std::vector<page> bounce;
    bool hold = false;
    trace::span traced{};
  };

  // A fault's orders for a command that is carried out.
  struct orders {
    bool hold = false;
    int error = 0;  // errno that the file gives instead
  };

  // Every turn asks, and nearly never was anything told: a look costs less than an exchange.
  static bool is_set(std::atomic<bool>& flag) {
    return flag.load(std::memory_order_relaxed) && flag.exchange(false, std::memory_order_acq_rel);
  }
  static void raise(std::atomic<bool>& flag) {
    flag.store(true, std::memory_order_release);
    wake_sleepers();
  }
  // One thread at a time has the device; others only look.
  static void count(std::atomic<std::uint64_t>& counter) {
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  // controller.cpp: registers, commands in, completions out
  void publish_registers();
  void write_csts(std::uint32_t value);
  bool check_registers();
  void enable(std::uint32_t cc);
  bool become_ready();
  void forget_everything();
  void die(const char* why);
  bool has_its_memory() const;
  bool fetch(std::uint32_t qid, submission_queue& sq);
  void finish(std::uint32_t sqid, std::uint16_t cid, std::uint32_t status, std::uint32_t result = 0);
  bool post_completions();
  bool post(const completion& a);

  // doorbells.cpp
  bool check_doorbells();
  bool check_tail(std::uint32_t qid, submission_queue& sq);
  bool check_head(std::uint32_t qid, completion_queue& cq);
  template <class Set>
  bool poll_shadow(shadow_words& s, const std::uint32_t& at, std::uint32_t entries, const Set& set);
  bool make_room(std::uint32_t qid, completion_queue& cq);
  void check_strangers();
  bool set_tail(std::uint32_t qid, submission_queue& sq, std::uint32_t value);
  bool set_head(std::uint32_t qid, completion_queue& cq, std::uint32_t value);
  void refuse_doorbell(std::uint32_t qid, std::uint32_t value, std::uint32_t dw0);
  void shadow_queue(std::uint32_t qid, submission_queue& sq) const;
  void shadow_queue(std::uint32_t qid, completion_queue& cq) const;
  void find_shadow(std::uint32_t qid, shadow_words& s, std::uint32_t at, std::uint32_t event_index) const;
  std::uint32_t configure_doorbell_buffers(const sqe& command);

  // admin.cpp
  void execute_admin(const sqe& command);
  std::uint32_t find_queue_memory(const sqe& command, std::uint64_t bytes, queue_memory* out) const;
  std::uint32_t create_cq(const sqe& command);
  std::uint32_t create_sq(const sqe& command);
  std::uint32_t delete_cq(const sqe& command);
  bool delete_sq(const sqe& command, std::uint32_t* status);
  void end_deletion(std::uint32_t qid);
  bool abort(std::uint32_t sqid, std::uint16_t cid);
  void post_events();
  std::uint32_t get_log_page(const sqe& command);
  std::uint32_t to_memory(const sqe& command, const std::byte* page, std::uint64_t bytes);

  // identify.cpp
  std::uint32_t identify(const sqe& command);
  void describe_controller(std::byte* page) const;
  void describe_namespace(std::byte* page) const;
  std::uint32_t set_features(const sqe& command, std::uint32_t* result);
  std::uint32_t get_features(const sqe& command, std::uint32_t* result);
  bool write_cache_on() const;

  // io.cpp
  std::uint64_t blocks() const { return file_.bytes() / file_.block_bytes() / shape_.namespaces; }  // of a namespace
  std::uint64_t namespace_bytes() const;
  struct extent {
    std::uint64_t offset, bytes;  // in the namespace
  };
  extent extent_of(const sqe& command) const;
  void execute_io(std::uint32_t sqid, submission_queue& sq, const sqe& command);
  void perform(std::uint32_t sqid, const sqe& command, orders o);
  bool start_late();
  std::uint32_t check_common(const sqe& command) const;
  std::uint32_t check_range(const sqe& command, extent place) const;
  std::uint32_t gather(const sqe& command, std::uint64_t bytes, std::vector<segment>& out) const;
  std::uint32_t start_transfer(std::uint32_t sqid, const sqe& command, orders o);
  std::uint32_t start_zeroing(std::uint32_t sqid, const sqe& command, orders o);
  void start_flush(std::uint32_t sqid, const sqe& command, orders o);
  work& new_work(std::uint32_t sqid, const sqe& command, extent place, orders o);
  void aim(work& one, std::uint64_t bytes);
  void start(work& one, orders o);
  bool whole();
  bool reap_file();
  void end_work(work& w);
  std::uint32_t outcome(work& w);
  bool still_mapped(const work& w) const;
  void put_by(work& w);
  void note_removals();
  void note_dma_fault(const char* what);
  bool same(const work& w);

  registers regs_;
  shape shape_;
  file& file_;
  const payload_agent& payload_;
  dma_map dma_;
  std::unique_ptr<file_engine> engine_;
  fault_list faults_;

  bool enabled_ = false, ready_ = false, dead_ = false, shut_down_ = false;
  clock::time_point ready_at_{};
  std::uint64_t cap_ = 0;
  std::uint32_t csts_ = 0;
  std::uint32_t cc_ = 0;  // as it was when it was enabled
  std::uint32_t page_ = k_page, granted_sqs_ = 0, granted_cqs_ = 0;
  std::map<std::uint32_t, std::uint32_t> settings_;  // features that are only kept
  std::byte* shadow_ = nullptr;
  std::byte* event_index_ = nullptr;
  std::uint32_t turn_ = 0;
  std::uint32_t alone_ = 0;  // commands of the last turn with any that are not reads
  std::map<std::uint32_t, submission_queue> sqs_;
  std::map<std::uint32_t, completion_queue> cqs_;
  std::vector<std::uint32_t> dead_queues_;  // deleted, to be taken out of sqs_
  event_desk events_;
  std::vector<completion> completions_;
  std::vector<completion> held_;
  std::vector<completion> lost_;  // of commands that never complete, unless they are aborted
  std::vector<late_command> late_;
  std::vector<std::unique_ptr<work>> works_;  // in flight and spare
  std::vector<work*> spare_;
  std::size_t in_file_ = 0;
  std::uint64_t removals_ = 0;            // of the DMA map when the queues' memory was last looked for
  std::uint64_t looked_at_memory_ = 0;    // the same, of the jobs' memory
  std::atomic<std::uint64_t> let_go_{0};  // of the DMA map's removals: no job has memory of those up to this
  std::vector<file_job*> done_;
  std::vector<work*> refused_;  // by a fault, in the file's name
  clock::time_point looked_at_file_{};
  bool file_whole_ = true;
  std::uint32_t complaints_ = 0;

  std::atomic<bool> release_{false};
  std::atomic<bool> kill_{false};
  std::atomic<std::uint64_t> shuffle_seed_{0};
  std::uint64_t shuffle_now_ = 0;
  std::mt19937_64 random_;
  std::atomic<std::uint64_t> commands_{0};
  std::atomic<std::uint64_t> invalid_doorbells_{0};
  std::atomic<std::uint64_t> doorbells_{0};
  std::atomic<std::uint64_t> dma_faults_{0};
};

}  // namespace xio::model::nvme
