// SPDX-License-Identifier: MIT
// System calls that two threads make side by side: the one that has jobs, and one that has nothing else to do. Each job
// is in a slot, and whoever takes it out makes its call.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <vector>

#include "model/nvme/file_engine.hpp"

namespace xio::model::nvme {

class shared_calls {
 public:
  struct result {
    file_job* job;
    long value;  // of call() with these flags
    int flags;
  };

  explicit shared_calls(int fd) : fd_(fd) {}

  // The owner's. On return every job has been called, or the helper has begun with it.
  void make(const std::vector<file_job*>& jobs, int flags, std::vector<result>& out);
  std::size_t with_helper() const { return lent_.size(); }  // jobs that collect() will give
  void collect(std::vector<result>& out);

  // Any other thread's, whenever it likes. True if there was a job.
  bool help();

 private:
  static constexpr std::size_t k_slots = 64;

  // A line of the cache each: two threads work on neighbours.
  struct alignas(64) slot {
    std::atomic<file_job*> open{nullptr};  // nobody has it yet
    std::atomic<bool> ended{false};        // by the helper: value is there
    bool lent = false;                     // the owner's mark
    int flags = 0;
    long value = 0;
  };
  struct loan {
    slot* from;
    file_job* job;
  };

  void make_some(file_job* const* jobs, std::size_t count, int flags, std::vector<result>& out);

  int fd_;
  std::atomic<std::size_t> offered_{0};
  std::array<slot, k_slots> slots_;
  std::vector<loan> lent_;
};

}  // namespace xio::model::nvme
