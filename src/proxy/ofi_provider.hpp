// SPDX-License-Identifier: MIT
// libfabric, and a domain of one of its providers, opened: what it offers, its peers' addresses, and memory that is
// registered with it.
#pragma once
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <memory>
#include <string>
#include <vector>

#include "base/log.hpp"
#include "proxy/op.hpp"

namespace xio::proxy::ofi {

// libfabric, loaded when it is asked for. Its constructors take signal handlers and its providers hook memory calls, so
// no program gets it for the mere reason that it is linked with libxio. Nearly all of its calls are inline and go
// through tables of its objects; these do not.
struct library {
  decltype(&::fi_getinfo) getinfo;
  decltype(&::fi_freeinfo) freeinfo;
  decltype(&::fi_dupinfo) dupinfo;
  decltype(&::fi_fabric) fabric;
  decltype(&::fi_strerror) strerror;
  std::uint32_t version;
  std::string path;

  // "libfabric 1.17 (/usr/lib/x86_64-linux-gnu/libfabric.so.1)"
  std::string name() const;
  // Of a call's result, negative or not.
  std::string text_of(long err) const;
};

// Takes the copy that the process has loaded already (MPIs load it), else `file`, "" being libfabric.so.1. It is never
// unloaded, because others may have it by then. Throws XIO_ERR_UNSUPPORTED with a sentence.
const library& load_library(const std::string& file);

// Throws XIO_ERR_CONFIG where variables of libfabric's own contradict what XIO asks of it.
void check_variables(const std::string& provider);

// Sets variables for the provider that keep its hooks out of the process and its NIC's way to GPU memory safe, where
// the user has not set them and nobody has loaded libfabric. gpu: the owner of that memory, FI_HMEM_SYSTEM for none.
void prepare_variables(const std::string& provider, fi_hmem_iface gpu);

// The setting under which the provider, without a word, takes the start of an allocation for any place inside it that
// is registered (libfabric's issue 12773); "" if there is none.
std::string unsafe_inside(const std::string& provider, fi_hmem_iface gpu);

struct freed_info {
  const library* from;
  void operator()(fi_info* p) const { from->freeinfo(p); }
};
using info_list = std::unique_ptr<fi_info, freed_info>;

template <class T>
struct closed {
  void operator()(T* p) const {
    if (const int err = fi_close(&p->fid); err != 0)
      log::warn("libfabric does not close an object of its own: {}", err);
  }
};
template <class T>
using owned = std::unique_ptr<T, closed<T>>;

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
