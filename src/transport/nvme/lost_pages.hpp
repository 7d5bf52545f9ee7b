// SPDX-License-Identifier: MIT
// Mappings of a device that the kernel takes away: when the drive leaves its driver, a touch of them is SIGBUS. A
// kernel of the host platform, or a thread that rings doorbells, would end the process, while it is to find its rings
// failed.
#pragma once
#include <cstddef>
#include <cstdint>

namespace xio::nvme {

// While this lives, a touch of a page of [base, base + bytes) that was taken away finds a page of ones in its place, of
// this process alone: a store is lost, and a completion of ones names no command, which is an error in every lap. Whole
// pages. The first also installs the handler, which leaves every other SIGBUS to the one that was there.
class lost_pages {
 public:
  lost_pages(void* base, std::size_t bytes);
  ~lost_pages();
  lost_pages& operator=(lost_pages&&) = delete;

 private:
  std::uintptr_t base_;
};

}  // namespace xio::nvme
