// SPDX-License-Identifier: MIT
// A GPU thread that runs out of its stack touches a guard page, and the process ends by SIGSEGV. A handler says so
// first, in one sentence, and then leaves the signal to the handler that was there before. Not under sanitizers, which
// have handlers of their own.
#pragma once
#include <cstddef>
#include <memory>

namespace xio::host_exec {

// Stacks one above the other, with a guard below each.
struct guarded_stacks {
  unsigned char* base;
  std::size_t bytes;   // of all
  std::size_t stride;  // from guard to guard
  std::size_t guard;   // bytes of one
};

// While they are watched the handler knows them.
void watch(const guarded_stacks& stacks);
void forget(const guarded_stacks& stacks);

// Of the OS thread that makes it: where a handler runs when the thread's stack is full. Takes nothing from a thread
// that has one. The first also installs the handler.
class signal_stack {
 public:
  signal_stack();
  ~signal_stack();
  signal_stack& operator=(signal_stack&&) = delete;

 private:
  std::unique_ptr<unsigned char[]> memory_;
};

}  // namespace xio::host_exec
