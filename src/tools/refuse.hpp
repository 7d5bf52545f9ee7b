// SPDX-License-Identifier: MIT
// How a wrong command line is refused: one sentence, exit status 2, nothing done.
#pragma once
#include <string>

namespace xio::tools {

constexpr int k_exit_usage = 2;

// "xio-info: SENTENCE; see xio-info --help" on standard error; returns k_exit_usage.
int refuse(const std::string& command, const std::string& sentence);

}  // namespace xio::tools
