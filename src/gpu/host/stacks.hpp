// SPDX-License-Identifier: MIT
// Stacks of fibers: mapped in slabs, a guard below each, memory taken only when touched.
#pragma once
#include <vector>

#include "gpu/host/overflow.hpp"

namespace xio::host_exec {

struct stack {
  unsigned char* bottom;  // lowest usable byte
  std::size_t bytes;      // to the top, where the stack begins
};

class stack_slabs {
 public:
  explicit stack_slabs(std::size_t stack_bytes);
  ~stack_slabs();
  stack_slabs& operator=(stack_slabs&&) = delete;
  stack make();  // throws XIO_ERR_NO_MEMORY

 private:
  void map_slab();
  int make_guards(unsigned char* base) const;
  std::size_t stack_bytes_, stride_;
  std::size_t used_ = 0;  // of the last slab, in stacks
  std::vector<guarded_stacks> slabs_;
};

}  // namespace xio::host_exec
