// SPDX-License-Identifier: MIT
// The command processor of one AQL queue: takes packets in order, starts kernels, completes signals.
#pragma once
#include <deque>

#include "amdgpu/driver/events.hpp"
#include "amdgpu/driver/page_table.hpp"
#include "amdgpu/queues/aql.hpp"
#include "amdgpu/queues/dispatch.hpp"

namespace amdgpu {

class l2_caches;
class shader_arrays;

// The driver passes this when it creates a queue.
struct queue_request {
  std::uint64_t ring = 0, ring_bytes = 0;
  std::uint64_t* write_pointer = nullptr;
  std::uint64_t* read_pointer = nullptr;
  std::uint64_t* doorbell = nullptr;
  std::uint64_t* lanes_doorbell = nullptr;  // where lanes' stores to it go, if that is another place
  unsigned gpu = 0;
  std::uint32_t gpu_id = 0;
};

// Where resident workgroups go.
class task_sink {
 public:
  virtual ~task_sink() = default;
  virtual void run(task&& t) = 0;
};

// One thread at a time, within a turn (gate.hpp).
class aql_queue {
 public:
  struct surroundings {
    const page_table& table;
    events& happenings;
    const group_maker& make;
    task_sink& sink;
    std::uint64_t compute_units, threads;
    const std::string& counts;     // the file for them; empty: none
    const std::string& times;      // likewise, of each instruction
    std::uint64_t adversary_seed;  // 0: plain memory
    bool watches_registers;
    l2_caches* l2;       // null with plain memory
    shader_arrays* l1s;  // of a gfx1100 with late memory, else null
    amdgpu::target target;
    unsigned xccs;
  };
  aql_queue(std::uint32_t number, const queue_request& r);

  std::uint32_t number() const { return number_; }
  unsigned gpu() const { return asked_.gpu; }
  // Whether its amd_queue_t is there, as its dispatches say.
  bool is(std::uint64_t at) const { return at == reinterpret_cast<std::uint64_t>(shared_); }
  // True if there was something to do.
  bool advance(const surroundings& around);
  // A workgroup has ended; a fault stops the queue.
  void ended(const surroundings& around, task&& t, group::state how);
  void suspend(bool is) { suspended_ = is; }
  // No more workgroups of it are to be run.
  void kill();

 private:
  enum class step { taken, waits, wrong };
  // One kind of packet each, at `index`.
  step take(const surroundings& around, std::uint64_t index);
  step take_kernel(const surroundings& around, const aql::dispatch_packet& p, std::uint64_t at, std::uint64_t index);
  step take_barrier(const surroundings& around, const aql::barrier_packet& p, bool all);
  step take_value(const surroundings& around, const aql::barrier_value_packet& p);
  step take_pm4(const surroundings& around, const aql::pm4_packet& p);
  // 0: the queue's scratch will do; waits: it was asked for.
  step find_scratch(const surroundings& around, const aql::dispatch_packet& p, unsigned lanes, dispatch& d);
  void feed(const surroundings& around, const std::shared_ptr<dispatch>& d);
  void complete(const surroundings& around, dispatch& d);
  bool retire(const surroundings& around);
  void push_done(std::uint64_t completion, bool releases);
  static void acquire(const surroundings& around, std::uint16_t header);
  static bool beyond_l2(const surroundings& around, std::uint32_t scope);

  // Tells the host by the inactive signal; `why` goes to standard error.
  step stop(const surroundings& around, aql::trouble code, const char* why);
  void report(const surroundings& around, aql::trouble code);
  void memory_fault(const surroundings& around, std::uint64_t address, bool write);
  void interrupt(const surroundings& around, const aql::signal& s);

  aql::queue& shared() const { return *shared_; }

  const std::uint32_t number_;
  const queue_request asked_;
  aql::queue* const shared_;
  std::uint64_t seen_;      // the doorbell's last value
  std::uint64_t next_ = 0;  // packet to be taken
  bool awake_ = false;      // rung, and not at the end yet
  bool stopped_ = false, suspended_ = false, asked_for_scratch_ = false;
  std::deque<std::shared_ptr<dispatch>> window_;  // taken, not passed by the read index
};

}  // namespace amdgpu
