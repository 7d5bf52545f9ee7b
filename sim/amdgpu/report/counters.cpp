// SPDX-License-Identifier: MIT
#include "amdgpu/report/counters.hpp"

namespace amdgpu {

const char* name_of(count which) {
  static constexpr const char* names[] = {"salu", "valu",      "smem",       "lds",    "flat",    "scratch", "atomic",
                                          "wait", "writeback", "invalidate", "branch", "barrier", "other"};
  static_assert(sizeof(names) / sizeof(*names) == static_cast<unsigned>(count::kinds));
  return which < count::kinds ? names[static_cast<unsigned>(which)] : "";
}

}  // namespace amdgpu
