// SPDX-License-Identifier: MIT
// Lets a test change the simulated device of its own process while it runs.
#pragma once
#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>

namespace uverbs {

// Words of XIO_TEST_UVERBS_FAULTS (device/settings.hpp), which hold from now on in place of all others: "well" is none.
// "event:N" is an event of the device instead, by its number in enum ib_event_type.
inline void order(const std::string& what) {
  using function = int(const char*);
  auto* const obey = reinterpret_cast<function*>(dlsym(RTLD_DEFAULT, "xio_test_uverbs_order"));
  if (obey != nullptr && obey(what.c_str()) == 0) return;
  std::cerr << "no simulated RDMA device takes the order " << what << "; run the test by tests/uverbs/run\n";
  std::abort();
}

// How many doorbell pages of that type (enum mlx5_ib_uapi_uar_alloc_type) the kernel was asked for, refused ones too.
inline unsigned pages_asked(std::uint32_t type) {
  using function = unsigned(std::uint32_t);
  auto* const count = reinterpret_cast<function*>(dlsym(RTLD_DEFAULT, "xio_test_uverbs_pages"));
  return count == nullptr ? 0 : count(type);
}

}  // namespace uverbs
