// SPDX-License-Identifier: MIT
// Providers of libfabric as a carrier: chooses domains and opens a fabric on each.
#pragma once
#include <functional>
#include <string>

#include "base/options.hpp"
#include "base/payload.hpp"
#include "proxy/fabric.hpp"

namespace xio::rdma {

struct libfabric_place {
  int rank, ranks, local_rank;
  // See proxy/immediate_desk.hpp.
  std::function<bool(std::uint32_t number, std::uint32_t immediate, std::uint64_t bytes)> on_immediate;
  std::function<std::uint64_t(std::uint32_t number)> room;
  bool apart = false;  // some PEs are on other machines
};

struct opened_domains {
  std::vector<std::unique_ptr<proxy::fabric>> fabrics;
  std::uint32_t atomics;  // of dev::nic_atomics, what all of them can
};

// One fabric per domain that this PE uses: one of the provider's, or those that XIO_HCA_LIST names. Throws where there
// is none, or where it does not do what it announces.
opened_domains open_libfabric(const rdma_options& o, const payload_agent& payload, const libfabric_place& where);

// A domain as xio-info shows it: its NIC, and what a trial has shown or why there was none.
struct domain_facts {
  std::string name, bus_id, says;
  bool works;
};
// library: what was loaded, or why not.
std::vector<domain_facts> try_libfabric(const rdma_options& o, const payload_agent& payload, std::string* library);

// "" if this machine has a Slingshot NIC that libfabric's provider cxi drives, or the sentence why not. Loads libfabric
// where such a NIC is.
std::string why_no_slingshot(const rdma_options& o);

// XIO_FABRIC_PROVIDER, and cxi where it is empty.
std::string provider_of(const rdma_options& o);

}  // namespace xio::rdma
