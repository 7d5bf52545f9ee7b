// SPDX-License-Identifier: MIT
// The backend of each engine in this process, as noted by the code that opened it: for tools, which report where their
// figures are from.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace xio {

// engine: "rdma", "sdma", "storage file:x". backend: "mlx5 over shm (model)". The newest note of an engine counts, and
// goes to the log as well. Thread safe.
void note_backend(const std::string& engine, const std::string& backend);

// In the order of the first notes.
std::vector<std::pair<std::string, std::string>> noted_backends();

}  // namespace xio
