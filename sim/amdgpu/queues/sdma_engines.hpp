// SPDX-License-Identifier: MIT
// The copy engines of all GPUs: the strict engine of src/model/sdma, one for each GPU, on the rings and doorbells that
// the driver gave out.
#pragma once
#include "amdgpu/driver/settings.hpp"
#include "amdgpu/queues/aql_queue.hpp"
#include "model/sdma/engine.hpp"

namespace amdgpu {

class sdma_engines {
 public:
  sdma_engines(const settings& s, const std::vector<page_table>& tables, events& happenings);
  ~sdma_engines();

  void add(std::uint32_t id, const queue_request& r);
  bool remove(std::uint32_t id);
  bool knows(std::uint32_t id) const { return queues_.count(id) != 0; }
  void mapped(unsigned gpu, const mapping& m, bool is);
  // Within a turn.
  bool poll();

 private:
  struct queue;
  void look_for_faults();

  events& happenings_;
  std::vector<std::unique_ptr<xio::model::sdma::engine>> engines_;  // by GPU
  std::map<std::uint32_t, std::unique_ptr<queue>> queues_;
};

}  // namespace amdgpu
