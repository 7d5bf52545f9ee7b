// SPDX-License-Identifier: MIT
// Where libxio's modules lie.
#pragma once
#include <string>
#include <vector>

#include "base/options.hpp"

namespace xio::bootstrap {

// In the order in which they are looked at: XIO_MODULES; xio/ beside the file that libxio's code is in, which a moved
// installation has too; the same seen from a program that libxio is linked into; the build's own folder; and where
// configure was told to install them. XIO_MODULES is not heard where a program runs with rights that its user has not.
std::vector<std::string> module_folders(const bootstrap_options& o);

}  // namespace xio::bootstrap
