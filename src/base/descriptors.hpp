// SPDX-License-Identifier: MIT
// File descriptors that run out.
#pragma once
#include <string>
#include <string_view>

#include "base/unique_fd.hpp"

namespace xio {

// Whether err says that no file can be opened any more; and why that is, with the cure.
bool no_descriptor(int err);
std::string text_of_no_descriptor(int err);

// Raises this process's soft limit of open files, for `more` of them and for what comes after. False: the hard limit
// does not let it. `why` goes on "raised ..., as" in the log.
bool raise_descriptor_limit(std::string_view why, int more = 1);

// A non-blocking stream socket, for which the limit is raised if need be; none with errno in `err`.
unique_fd stream_socket(int family, int& err);

}  // namespace xio
