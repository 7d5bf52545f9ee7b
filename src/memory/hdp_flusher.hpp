// SPDX-License-Identifier: MIT
// What a world has for its HDP: the decision, and the words and the thread that the way needs.
#pragma once
#include "gpu/gpu.hpp"
#include "memory/hdp.hpp"
#include "memory/hdp_thread.hpp"

namespace xio::memory {

class hdp_flusher {
 public:
  // flush_register and line: of the GPU; null where there is no HDP: then ordinary memory stands in for them.
  // line: k_readback_bytes that nobody else uses, in GPU memory that the CPU sees.
  hdp_flusher(hdp_decision decision, std::uint32_t* flush_register, unsigned char* line);

  const hdp_decision& decision() const { return decision_; }
  dev::hdp_view view() const;
  const hdp_thread* thread() const { return thread_.get(); }  // null: the way needs none

 private:
  // Each on a line of its own: kernels write the first, the thread the second.
  struct words {
    alignas(128) std::uint64_t asked;
    alignas(128) std::uint64_t done;
    alignas(128) std::uint32_t flush_register;
    alignas(128) unsigned char line[k_readback_bytes];
  };

  void start(std::uint32_t* flush_register, unsigned char* line);

  hdp_decision decision_;
  gpu::buffer memory_;
  std::uint32_t* flush_register_;
  std::unique_ptr<hdp_thread> thread_;
};

}  // namespace xio::memory
