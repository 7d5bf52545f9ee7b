// SPDX-License-Identifier: MIT
// The memory mode: which parts of a transport lie in GPU memory and which in host memory. Each transport says what it
// can, and what it cannot is refused with the reason: nothing is moved silently.
#pragma once
#include "base/options.hpp"
#include "gpu/gpu.hpp"

namespace xio::memory {

// Bits of the mode.
enum class part : unsigned {
  submission = 1,  // rings of descriptors
  completion = 2,  // CQ entries, fence words
  doorbell = 4,    // doorbell words and records
  data = 8         // the symmetric heap
};

// A transport's needs for a part.
struct ability {
  gpu::place own;       // where it lies when nobody asks
  const char* why_not;  // why it can be nowhere else; null: it can
};

class mode {
 public:
  mode() = default;                                       // auto
  explicit mode(option::AUTO_UINT bits) : bits_(bits) {}  // as XIO_MEMORY_MODE has it: auto, or 0 .. 15

  // Where `who` puts a part. Throws XIO_ERR_UNSUPPORTED when it is asked for what it cannot.
  gpu::place place(part p, const char* who, const ability& can) const;

 private:
  option::AUTO_UINT bits_;
};

// Where the parts of a ring lie.
struct ring_places {
  gpu::place submission = gpu::place::shared;
  gpu::place completion = gpu::place::shared;
  gpu::place doorbell = gpu::place::shared;
};
ring_places place_rings(option::AUTO_UINT mode, const char* who, const ability& submission, const ability& completion,
                        const ability& doorbell);

// Of a software device, whose thread reads and writes rings as host memory.
ability of_software_device();

}  // namespace xio::memory
