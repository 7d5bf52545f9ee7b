// SPDX-License-Identifier: MIT
// Memory that other processes map by a descriptor: a file without a name, whose size is final.
#pragma once
#include <cstddef>
#include <string>

#include "base/unique_fd.hpp"

namespace xio::gpu {

// Zeroed, and sealed: nobody who opens it, through /proc or otherwise, can cut it or make it longer, so what maps all
// of it never finds it shorter. name: as /proc/PID/maps shows it. what: "shared memory"; cure: "ask for less". Throws
// XIO_ERR_NO_MEMORY with the limit that stands against it, before the kernel ends the process for it.
unique_fd make_memory_file(const std::string& name, std::size_t bytes, const char* what, const char* cure);

}  // namespace xio::gpu
