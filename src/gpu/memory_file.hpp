// SPDX-License-Identifier: MIT
// Memory that other processes map by a descriptor: a file without a name, whose size is final.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/unique_fd.hpp"

namespace xio::gpu {

// Zeroed, and sealed: nobody who opens it, through /proc or otherwise, can cut it or make it longer, so what maps all
// of it never finds it shorter. name: as /proc/PID/maps shows it. what: "shared memory"; cure: "ask for less". Throws
// XIO_ERR_NO_MEMORY with the limit that stands against it, before the kernel ends the process for it.
unique_fd make_memory_file(const std::string& name, std::size_t bytes, const char* what, const char* cure);

// The memory file of this process that [base, base + bytes) is mapped from, whole and shared, by a descriptor of its
// own; nothing where the memory is of another kind, or the process has closed the file.
struct file_place {
  unique_fd file;
  std::uint64_t offset = 0;  // of base
};
std::optional<file_place> find_memory_file(const void* base, std::size_t bytes);

// The kernel's udmabuf over pages of such a file; offset and bytes are whole pages. `at`: the memory's address, for
// sentences. Throws the reason and the cure.
// Of which the kernel makes one dma-buf at most: whole pages.
std::uint64_t largest_udmabuf();
unique_fd make_udmabuf(int file, std::uint64_t offset, std::uint64_t bytes, const void* at);

}  // namespace xio::gpu
