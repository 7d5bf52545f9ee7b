// SPDX-License-Identifier: MIT
// What a drive means by the status of a command, and what to do about it.
#pragma once
#include <cstdint>
#include <string>

namespace xio::nvme {

// code: SCT << 8 | SC. "unrecovered read error (status 0x281); ..."
std::string status_text(std::uint32_t code);

}  // namespace xio::nvme
