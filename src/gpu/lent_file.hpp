// SPDX-License-Identifier: MIT
// An open file lent to other processes of this user on this machine. A dma-buf has no path to open it by, so its
// descriptor travels through a socket of the abstract namespace.
#pragma once
#include <array>
#include <cstdint>
#include <thread>

#include "base/unique_fd.hpp"

namespace xio::gpu {

// Travels in a heap's handle. The name is random, and is also what a borrower has to say.
using loan_name = std::array<std::uint64_t, 2>;

class lent_file {
 public:
  // Owns fd. A thread hands it out to processes of this user, until the end. Throws XIO_ERR_IO.
  explicit lent_file(unique_fd fd);
  ~lent_file();
  lent_file& operator=(lent_file&&) = delete;
  const loan_name& name() const { return name_; }

 private:
  void serve();
  void hand_out(int to);

  unique_fd fd_, listener_, stop_;
  loan_name name_{};
  const pid_t pid_ = getpid();
  std::thread thread_;
};

// The file of that name, or a failure: XIO_ERR_UNSUPPORTED where it cannot be reached within timeout_ms.
unique_fd borrow_file(const loan_name& name, int timeout_ms);

}  // namespace xio::gpu
