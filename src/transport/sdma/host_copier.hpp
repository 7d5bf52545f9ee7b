// SPDX-License-Identifier: MIT
// Copies that host threads give to a copy engine: a queue whose producer is the host.
#pragma once
#include <chrono>
#include <mutex>

#include "transport/sdma/sdma.hpp"

namespace xio::sdma {

class host_copier {
 public:
  // timeout of every wait; 0: none.
  host_copier(engine& e, std::chrono::milliseconds timeout);

  // Returns the ticket of the last piece. Copies end in the order of the calls. Waits for room only. Any thread may
  // call it.
  std::uint64_t start(void* dst, const void* src, std::size_t bytes);
  // Throws XIO_ERR_TIMEOUT, or XIO_ERR_TRANSPORT when the engine stopped.
  void wait(std::uint64_t ticket);

 private:
  void post(std::uint64_t dst, std::uint64_t src, std::uint32_t bytes);
  void wait_below(std::uint64_t upto);
  // Throws where the engine stopped before all below `wanted` were.
  std::uint64_t completed(std::uint64_t wanted);

  const std::chrono::milliseconds timeout_;
  std::unique_ptr<queue> queue_;
  dev::ring_view ring_;
  std::mutex lock_;
  std::uint64_t issued_ = 0, completed_ = 0;
};

}  // namespace xio::sdma
