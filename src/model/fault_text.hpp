// SPDX-License-Identifier: MIT
// XIO_MODEL_FAULTS: what the software devices do wrong on purpose. One grammar for all of them; docs/faults.md has it.
#pragma once
#include "model/nic/faults.hpp"
#include "model/nvme/faults.hpp"
#include "model/sdma/engine.hpp"

namespace xio::model {

struct fault_rules {
  std::uint64_t seed = 1;
  std::vector<rdma::fault_rule> nic;
  std::vector<nvme::fault> drive;
  bool shuffle = false;     // nvme_shuffle
  sdma::move_faults moves;  // sdma_skip, sdma_delay
};

// Throws XIO_ERR_CONFIG naming the place in `text`.
fault_rules parse_faults(const std::string& text);

}  // namespace xio::model
