// SPDX-License-Identifier: MIT
// The backend of each engine that libxio has opened in this process, for reports of where figures are from.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace xio::tools {

// engine: "rdma", "sdma", "storage file:x". backend: "mlx5 over shm (model)". In the order in which they were opened.
std::vector<std::pair<std::string, std::string>> opened_backends();

// Whether software stands in for a device.
bool is_model(const std::string& backend);

}  // namespace xio::tools
