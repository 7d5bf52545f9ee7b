// SPDX-License-Identifier: MIT
// The program of a run, looked up before any PE is started, so that a wrong name is one message and not N.
#pragma once
#include <string>

namespace xio::run {

// The file that execvp would execute for the name. Throws std::invalid_argument with a sentence.
std::string find_program(const std::string& name);

}  // namespace xio::run
