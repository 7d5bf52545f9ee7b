// SPDX-License-Identifier: MIT
// What programs owe to their standard streams.
#pragma once

namespace xio::tools {

// A standard stream that is closed would become the next file that is opened, and what is printed would go into it:
// fills its place with what can be neither read nor written. First in main().
void open_standard_streams();

// The status that main() returns instead of `status`: a tool whose output could not be written says so and has failed
// (1, where the status was 0).
int ended(const char* tool, int status);

}  // namespace xio::tools
