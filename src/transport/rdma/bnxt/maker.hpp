// SPDX-License-Identifier: MIT
// The two makers of bnxt's queues.
#pragma once
#include <string>

#include "transport/rdma/direct/queue_maker.hpp"

namespace xio::rdma::bnxt {

// Drivers and libraries take rings in pages of this size alone (ib_verbs.c, bnxt_re_setup_sginfo).
constexpr std::size_t k_page = 4096;

class maker : public queue_maker {
 public:
  // The MSN table has depth << table_log2 entries.
  virtual std::uint32_t table_log2() const = 0;
};

// Both throw a sentence that says what is missing.
std::unique_ptr<maker> make_by_kernel(const std::string& device, const std::string& file);
std::unique_ptr<maker> make_by_library(ibv_context* context, ibv_pd* domain, std::string* path = nullptr);

// Of system calls that are not there.
std::string too_old(const std::string& device, const std::string& what);

}  // namespace xio::rdma::bnxt
