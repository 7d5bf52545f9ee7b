// SPDX-License-Identifier: MIT
// System calls that two threads make side by side: the one that has jobs, and one that has nothing else to do. Jobs are
// in slots, one or a group that one call moves, and the thread that takes them out makes the call.
#pragma once
#include <array>

#include "model/nvme/mapped_file.hpp"

namespace xio::model::nvme {

class shared_calls {
 public:
  struct result {
    file_job* job;
    long value;  // of call() with these flags
    int flags;
  };

  explicit shared_calls(int fd) : fd_(fd) {}

  // The owner's. On return every job has been called, or the helper has begun with it. pages: null, or what may move
  // those that fit.
  void make(const std::vector<file_job*>& jobs, int flags, mapped_file* pages, std::vector<result>& out);
  std::size_t with_helper() const { return lent_jobs_; }  // that collect() will give
  void collect(std::vector<result>& out);

  // Any other thread's, whenever it likes. True if there was a job.
  bool help();

 private:
  static constexpr std::size_t k_slots = 64;
  static constexpr std::size_t k_group = 32;  // half of a turn that is full: each thread has one call to make

  // Lines of the cache of their own: two threads work on neighbours.
  struct alignas(64) slot {
    std::atomic<bool> open{false};   // nobody has them yet
    std::atomic<bool> ended{false};  // by the helper: the values are there
    bool lent = false;               // the owner's mark
    int flags = 0;
    mapped_file* pages = nullptr;
    std::size_t count = 0;
    std::array<file_job*, k_group> jobs{};
    std::array<long, k_group> values{};
  };

  std::size_t offer(const std::vector<file_job*>& jobs, std::size_t at, int flags, mapped_file* pages);
  void take_back(std::vector<result>& out);
  void carry_out(slot& s) const;
  static void give(const slot& s, std::vector<result>& out);

  int fd_;
  std::atomic<std::size_t> offered_{0};  // slots, from the first
  std::array<slot, k_slots> slots_;
  std::vector<slot*> lent_;
  std::size_t lent_jobs_ = 0;
};

}  // namespace xio::model::nvme
