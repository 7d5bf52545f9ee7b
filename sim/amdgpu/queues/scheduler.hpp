// SPDX-License-Identifier: MIT
// The GPUs of a process at work: few threads that poll the doorbells of all queues and run the resident workgroups
// of all kernels in turn, so that a kernel that waits for another one does not keep it from running.
#pragma once
#include "amdgpu/driver/gate.hpp"
#include "amdgpu/memory/l2_caches.hpp"
#include "amdgpu/memory/shader_arrays.hpp"
#include "amdgpu/queues/group.hpp"
#include "amdgpu/queues/sdma_engines.hpp"

namespace amdgpu {

class scheduler final : private task_sink {
 public:
  scheduler(const settings& s, gate& turns, const std::vector<page_table>& tables, events& happenings,
            group_maker make = make_interpreted);
  ~scheduler();

  // 0 or an errno. Threads start with the first queue.
  int add_aql(const queue_request& r, std::uint32_t* id);
  int add_sdma(const queue_request& r, std::uint32_t* id);
  // On return nothing of the queue is looked at any more.
  int remove(std::uint32_t id);
  int suspend(std::uint32_t id, bool is);
  bool knows(std::uint32_t id);
  // A GPU got or lost memory. Called while the gate is closed.
  void mapped(unsigned gpu, const mapping& m, bool is);
  // Ends the threads.
  void stop();

 private:
  void run(task&& t) override;
  void work();
  bool look_at_queues();
  bool run_one(bool* was_asleep);
  void start_threads();
  aql_queue::surroundings around(unsigned gpu);
  void drain_ended();

  const settings& settings_;
  gate& turns_;
  const std::vector<page_table>& tables_;
  events& happenings_;
  const group_maker make_;

  std::mutex front_;  // the queues' turn
  std::map<std::uint32_t, std::unique_ptr<aql_queue>> queues_;
  sdma_engines engines_;
  std::vector<std::unique_ptr<l2_caches>> l2_;      // by GPU; none where memory is plain
  std::vector<std::unique_ptr<shader_arrays>> l1_;  // by GPU, of gfx1100 alone
  std::uint32_t next_id_ = 1;

  struct ended_task {
    task what;
    group::state how;
  };
  std::mutex lock_;  // of what follows
  std::condition_variable wanted_;
  std::deque<task> ready_;
  std::vector<ended_task> ended_;
  std::vector<const dispatch*> running_;
  bool stop_ = false;
  bool watched_ = false;  // one thread is enough to poll still doorbells
  std::vector<std::thread> threads_;
};

}  // namespace amdgpu
