// SPDX-License-Identifier: MIT
// May this process use device files, and if not, which group may?
#pragma once
#include "topology/preflight.hpp"

namespace xio::topology {

// "/dev/dri/renderD128" ..: what a folder below root has whose name begins so, in order, without root.
std::vector<std::string> files_like(const std::string& root, const std::string& folder, const std::string& begin);

// Reading and writing all of the files; which are some of a kind that was found to be needed.
piece device_access(const std::string& root, const std::string& name, const std::vector<std::string>& files);

}  // namespace xio::topology
