// SPDX-License-Identifier: MIT
// libfabric, loaded when it is asked for. Its constructors take signal handlers and its providers hook memory calls, so
// no program gets it for the mere reason that it is linked with libxio.
#pragma once
#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstdint>
#include <memory>
#include <string>

#include "base/log.hpp"

namespace xio::proxy::ofi {

// Nearly all of libfabric's calls are inline and go through tables of its objects; these do not.
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

}  // namespace xio::proxy::ofi
