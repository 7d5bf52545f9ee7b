// SPDX-License-Identifier: MIT
// Host names to addresses, by a deadline.
#pragma once
#include <string>

namespace xio::bootstrap {

bool is_numeric_host(const std::string& host);

}  // namespace xio::bootstrap
