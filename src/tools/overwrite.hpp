// SPDX-License-Identifier: MIT
// One rule for all tools that write to storage: what a test did not make is written over only where the user said so.
#pragma once
#include <cstddef>
#include <string>

namespace xio::tools {

// Whether a block is what a test leaves: zeroes, xio-tester's pattern of any seed, or xio-perf's of any PE.
bool is_test_data(const unsigned char* data, std::size_t bytes);

// Returns what writing to a regular file would destroy, as a sentence without its end, or an empty text: the file is
// not there, empty, or holds what tests leave. It is read up to the first block of another kind; holes are passed over.
std::string lost_by_writing(const std::string& path);

}  // namespace xio::tools
