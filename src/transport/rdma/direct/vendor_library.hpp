// SPDX-License-Identifier: MIT
// A NIC vendor's own library of direct verbs, which is never linked: its calls are looked up in the copy that
// libibverbs has loaded for the device, because they take ibv_context for a structure of that copy.
#pragma once
#include <infiniband/verbs.h>

#include <span>
#include <string>

#include "transport/rdma/uverbs/abi.hpp"

namespace xio::rdma {

struct library_call {
  const char* name;
  void* to;  // a pointer to the function; null where a call that is not needed is not there
  bool needed = true;
};

// others: file names that another copy may have. Returns the path of the copy. Throws, naming the first call that is
// missing, and the other copy where one is loaded.
std::string find_library_calls(ibv_context* context, std::span<const library_call> calls,
                               std::span<const char* const> others);

// Libraries return 0, a positive or a negative errno, or -1 with errno. Objects are null with errno, at times without.
int errno_of(int result);
int errno_of_null();

// The same step as verbs have it; the bits of its mask are theirs.
ibv_qp_attr attributes_of(const uverbs::modify_qp& m);

}  // namespace xio::rdma
