// SPDX-License-Identifier: MIT
// Drives of Linux' own nvme driver, and what the kernel module xio (kernel/xio) says about lending one's queues.
#pragma once
#include <cstdint>
#include <string>

namespace xio::nvme {

struct kmod_places {
  std::string sysfs = "/sys";
  std::string module = "/dev/xio";
};

struct kmod_drive {
  std::string bdf;  // 0000:01:00.0
  std::uint32_t nsid = 0;
};

// path: /dev/nvmeXnY. Throws one sentence that begins with what `name` is.
kmod_drive find_kmod_drive(const std::string& name, const std::string& path, const kmod_places& where = {});

// Why the module gives no queue of that drive: a clause for a sentence. Asks it, where it is loaded.
std::string why_no_queue(const kmod_drive& drive, const kmod_places& where = {});

}  // namespace xio::nvme
