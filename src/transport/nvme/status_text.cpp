// SPDX-License-Identifier: MIT
// NVM Express base specification 2.0, 3.3.3.2.1; from 0x80 in the low byte the NVM command set 1.0, 2.1.
#include "transport/nvme/status_text.hpp"

#include <fmt/core.h>

namespace xio::nvme {
namespace {

struct row {
  std::uint32_t code;
  const char* what;
  const char* cure;  // null: nothing better than to report it
};

constexpr const char* k_drive_log = "look at the drive's error log (nvme error-log, nvme smart-log)";
constexpr const char* k_media = "the data there are lost; write the blocks again, and look at the drive's health";

constexpr row k_rows[] = {
    {0x001, "invalid opcode", "the drive has no such command (xio-info lists what it has)"},
    {0x002, "invalid field in command", nullptr},
    {0x003, "command id conflict", nullptr},
    {0x004, "data transfer error", "the drive could not reach the buffer; keep it registered until the op is complete"},
    {0x005, "aborted by loss of power", k_drive_log},
    {0x006, "internal error", k_drive_log},
    {0x007, "aborted on request", k_drive_log},
    {0x008, "aborted because its queue was deleted", "the storage was closed before the op was complete; wait first"},
    {0x00b, "invalid namespace or format", "the namespace is gone or was formatted; open the storage again"},
    {0x013, "invalid offset of a PRP", nullptr},
    {0x01c, "sanitize failed", "sanitize the drive again"},
    {0x01d, "sanitize in progress", "try again when the drive has sanitized itself"},
    {0x020, "namespace is write protected", "open it for reading, or take its write protection away"},
    {0x080, "block address out of range", nullptr},
    {0x081, "capacity exceeded", "the namespace is full; free blocks of it (nvme dsm)"},
    {0x082, "namespace not ready", "try again, or look at the drive's health"},
    {0x083, "reservation conflict", "another host has reserved the namespace (nvme resv-report)"},
    {0x100, "invalid completion queue", nullptr},
    {0x101, "invalid queue id", nullptr},
    {0x102, "invalid queue size", nullptr},
    {0x180, "conflicting attributes", nullptr},
    {0x181, "invalid protection information", "format the namespace without protection information"},
    {0x182, "write to a read-only range", "take its write protection away"},
    {0x280, "write fault", k_drive_log},
    {0x281, "unrecovered read error", k_media},
    {0x282, "guard check error", k_media},
    {0x283, "application tag check error", k_media},
    {0x284, "reference tag check error", k_media},
    {0x285, "compare failure", "the blocks are not what the buffer holds"},
    {0x286, "access denied", "the namespace is locked by TCG or by its owner"},
    {0x287, "deallocated or unwritten block", "write the blocks before they are read"},
};

}  // namespace

std::string status_text(std::uint32_t code) {
  for (const row& r : k_rows)
    if (r.code == code)
      return fmt::format("{} (status {:#x}); {}", r.what, code,
                         r.cure != nullptr ? r.cure : "this should not happen: report it with these numbers");
  return fmt::format("status {:#x}; {}", code, k_drive_log);
}

}  // namespace xio::nvme
