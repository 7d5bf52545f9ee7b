// SPDX-License-Identifier: MIT
// What the driver knows of this process, from its first opening of /dev/kfd to its end.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "amdgpu/driver/events.hpp"
#include "amdgpu/driver/gate.hpp"
#include "amdgpu/driver/memory_objects.hpp"
#include "amdgpu/driver/page_table.hpp"
#include "amdgpu/driver/settings.hpp"
#include "amdgpu/queues/scheduler.hpp"

namespace amdgpu {

// Doorbells of one GPU: a page that the process maps, and that the queues look at.
struct doorbell_page {
  unique_fd file;
  std::uint64_t* words = nullptr;
  std::uint64_t handle = 0;  // object by which the process maps it
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

  // 0 or an errno.
  int create_queue(std::uint32_t type, unsigned gpu, queue_request r, std::uint32_t* id, std::uint64_t* doorbell_at);
  int destroy_queue(std::uint32_t id);
  int doorbells_of(unsigned gpu);

 private:
  int make_doorbells(unsigned gpu);
  std::mutex lock_;
  std::vector<doorbell_page> doorbells_;
  struct bell {
    std::uint32_t queue;
    unsigned gpu, slot;
  };
  std::vector<bell> bells_;
};

}  // namespace amdgpu
