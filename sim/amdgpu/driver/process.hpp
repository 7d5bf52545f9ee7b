// SPDX-License-Identifier: MIT
// What the driver knows of this process, from its first opening of /dev/kfd to its end.
#pragma once
#include "amdgpu/driver/memory_objects.hpp"
#include "amdgpu/queues/scheduler.hpp"

namespace amdgpu {

// libhsakmt maps 1024 doorbells of 8 bytes (src/queues.c), and the kernel has no other length.
constexpr std::uint64_t k_doorbell_bytes = 8192;

// Doorbells of one GPU: a page that the process maps, and that the queues look at.
struct doorbell_page {
  unique_fd file;
  std::uint64_t* words = nullptr;
  std::uint64_t* lanes = nullptr;  // where lanes' stores go, if they may be lost on the way
  std::uint64_t handle = 0;        // object by which the process maps it
  std::vector<bool> used;
};

class process {
 public:
  // The one of this process, made on first use; null if it cannot be made, which was said on standard error.
  static process* current();
  // The same, null where it was not made yet.
  static process* made();

  explicit process(const settings& s);

  const settings chosen;
  gate turns;
  std::vector<page_table> tables;  // by GPU
  events happenings;
  scheduler gpus;
  memory_objects memory;

  // By that file of renderD*, or an errno: one is for the process's life.
  int acquire_vm(unsigned gpu, std::uint64_t file = 1);
  bool has_vm(unsigned gpu) const;

  struct queue_kind {
    std::uint32_t type;    // kfd_uapi.hpp
    std::uint32_t engine;  // of sdma_by_engine
  };
  // 0 or an errno.
  int create_queue(const queue_kind& kind, unsigned gpu, queue_request r, std::uint32_t* id,
                   std::uint64_t* doorbell_at);
  int destroy_queue(std::uint32_t id);
  int doorbells_of(unsigned gpu);
  std::uint64_t lane_doorbells_of(unsigned gpu);  // 0 where lanes store to those that the host has
  // Whether a queue of a copy engine has its ring or pointers there.
  bool is_of_queue(std::uint64_t base, unsigned gpu) const;

 private:
  struct place {
    unsigned engine, queue;  // of the engine
  };
  int make_doorbells(unsigned gpu);
  bool doorbells_may_be_lost() const;
  int place_of(const queue_kind& kind, unsigned gpu, place& out) const;
  unsigned doorbell_of(const place& at) const;
  mutable std::mutex lock_;
  std::vector<std::uint64_t> vms_;  // the file of each GPU's; 0: none
  std::vector<doorbell_page> doorbells_;
  struct bell {
    std::uint32_t queue;
    unsigned gpu, slot;
    int engine, number;        // -1 of compute
    std::uint64_t buffers[3];  // ring and pages of the pointers of a copy engine's
  };
  std::vector<bell> bells_;
};

}  // namespace amdgpu
