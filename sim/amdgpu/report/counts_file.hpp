// SPDX-License-Identifier: MIT
// What kernels executed, for programs to read: a line of JSON for each kernel that ended.
#pragma once
#include <string>

#include "amdgpu/report/counters.hpp"

namespace amdgpu {

// The line, with its end: {"kernel":"copy","gpu":0,"workgroups":1,"waves":4,"instructions":120,"salu":..}.
std::string counts_line(const std::string& kernel, unsigned gpu, std::uint64_t workgroups, const counters& counted);

// How often each instruction ran, a line each: KERNEL, SITE and TIMES with tabs between them. A site is the address
// behind `start`, where the code object begins, as llvm-objdump prints it.
std::string times_lines(const std::string& kernel, std::uint64_t start, const counters& counted);

// Adds lines at the end of the file in one write, so several processes may share it. A file that cannot be written
// is one sentence on standard error, once.
void append_counts(const std::string& path, const std::string& line);

}  // namespace amdgpu
