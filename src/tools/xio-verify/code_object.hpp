// SPDX-License-Identifier: MIT
// What xio-verify --code-object says of a file with machine code for AMD GPUs: a code object, a program or a library
// with such, or text of a compiler (-S).
#pragma once
#include <string>

namespace xio::verify {

// Prints it. The exit status is 1 where lanes were lost; throws XIO_ERR_ARG for a file that has no such code.
int say_which_lanes_are_lost(const std::string& file);

}  // namespace xio::verify
