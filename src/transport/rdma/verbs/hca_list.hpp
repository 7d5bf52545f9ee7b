// SPDX-License-Identifier: MIT
// XIO_HCA_LIST: "mlx5_0:1,mlx5_1" uses those, "^rxe0" all but that.
#pragma once
#include <cstdint>
#include <string>

#include "transport/rdma/verbs/inventory.hpp"

namespace xio::rdma {

struct hca_list {
  struct entry {
    std::string name;
    std::uint32_t port;  // 0: every port
  };
  bool excludes = false;
  std::vector<entry> entries;

  bool names(const std::string& device, std::uint32_t port) const;
  bool names(const std::string& device) const;  // any port of it
};

// Throws XIO_ERR_CONFIG for what is no such list.
hca_list parse_hca_list(const std::string& text);
// Throws XIO_ERR_CONFIG for a device or port that does not exist, saying what does.
void check_hca_list(const hca_list& list, const std::vector<device_facts>& devices);
// "mlx5_0 (ports 1 to 2), rxe0 (port 1)"
std::string text_of(const std::vector<device_facts>& devices);

}  // namespace xio::rdma
