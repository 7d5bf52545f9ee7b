// SPDX-License-Identifier: MIT
// A domain of one provider of libfabric, opened: what it offers, its peers' addresses, and memory that is registered
// with it.
#pragma once
#include <cstdint>
#include <vector>

#include "proxy/ofi_library.hpp"
#include "proxy/op.hpp"

namespace xio::proxy::ofi {

// The kinds of messages that an op becomes, as order tells them apart.
enum class kind : std::uint8_t { write, read, atomic };
constexpr std::size_t k_kinds = 3;

// follows[a][b]: a `b` posted behind an `a` to the same peer happens after it.
using order_table = std::array<std::array<bool, k_kinds>, k_kinds>;
order_table order_of(std::uint64_t msg_order, const std::string& provider);

// The properties that all endpoints of a domain have.
struct traits {
  std::string provider;  // "cxi", "tcp;ofi_rxm"
  std::string domain;    // "cxi0", "eth0"
  std::string bus_id;    // "" where it is no PCI device
  bool virtual_addresses, keys_by_provider, bound_to_endpoint, local_keys;
  bool narrow_keys;  // 32 bits
  bool gpu_memory;   // may be registered, as was asked for
  order_table follows;
  std::uint64_t most_ordered_write;  // longer ones are followed by nothing
  std::uint64_t max_message;
  std::size_t under_way;  // messages of one endpoint
};

struct wish {
  std::string library;
  std::string provider;
  // The owner of the GPU memory that the NIC is to reach, where it can; FI_HMEM_SYSTEM: there is none.
  fi_hmem_iface gpu = FI_HMEM_SYSTEM;
};

// Memory that is registered: host memory, or that of a GPU.
struct memory_range {
  void* base;
  std::uint64_t bytes;
  fi_hmem_iface of = FI_HMEM_SYSTEM;
  int device = 0;  // as CUDA counts
};

// The domains that the wish is about, as the provider lists them. Throws, with a cure.
std::vector<info_list> list_domains(const wish& w);
traits traits_of(const fi_info& info);

class provider {
 public:
  // pes: peers at most.
  provider(const library& l, info_list info, std::size_t pes);

  const traits& what() const { return traits_; }
  // Trials take away what does not hold.
  void distrust_order() { traits_.follows = {}; }
  // "cxi0 of cxi by libfabric 2.3"
  const std::string& name() const { return name_; }
  const library& lib() const { return lib_; }
  fi_info& info() const { return *info_; }
  fid_domain* domain() const { return domain_.get(); }
  fid_av* peers() const { return peers_.get(); }

  // Bound to `to` where the provider wants that.
  owned<fid_mr> register_memory(const memory_range& range, std::uint64_t access, fid_ep* to) const;
  fi_addr_t add_peer(const void* address) const;
  // Throws XIO_ERR_IO: "NAME cannot WHAT: why".
  [[noreturn]] void fail_to(const char* what, long err) const;

 private:
  std::uint64_t new_key() const;

  const library& lib_;
  info_list info_;
  traits traits_;
  std::string name_;
  owned<fid_fabric> fabric_;
  owned<fid_domain> domain_;
  owned<fid_av> peers_;
};

}  // namespace xio::proxy::ofi
