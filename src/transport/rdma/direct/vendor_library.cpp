// SPDX-License-Identifier: MIT
#include "transport/rdma/direct/vendor_library.hpp"

#include <dlfcn.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.hpp"

namespace xio::rdma {

namespace {

// The file that this address is mapped from, or "".
std::string file_of(const void* address) {
  Dl_info at{};
  return address != nullptr && dladdr(address, &at) != 0 && at.dli_fname != nullptr ? at.dli_fname : "";
}

// A copy beside the provider, which another part of the process has loaded, and which has the call; or "".
std::string other_copy(std::span<const char* const> others, const char* call) {
  for (const char* name : others)
    if (void* loaded = dlopen(name, RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD); loaded != nullptr)
      if (const void* found = dlsym(loaded, call); found != nullptr) return file_of(found);
  return "";
}

}  // namespace

std::string find_library_calls(ibv_context* context, std::span<const library_call> calls,
                               std::span<const char* const> others) {
  const char* device = ibv_get_device_name(context->device);
  // Providers set this one to code of their own.
  void* code;
  std::memcpy(&code, &context->ops.poll_cq, sizeof code);
  const std::string provider = file_of(code);
  void* loaded = provider.empty() ? nullptr : dlopen(provider.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
  if (loaded == nullptr)
    fail(XIO_ERR_UNSUPPORTED, "RDMA device {}: the file of its library is not found among those that are loaded",
         device);
  for (const library_call& c : calls) {
    void* found = dlsym(loaded, c.name);
    const std::string from = found != nullptr ? file_of(found) : c.needed ? other_copy(others, c.name) : "";
    // A library that this one is linked with is another copy as well.
    if (!from.empty() && from != provider)
      fail(XIO_ERR_UNSUPPORTED,
           "RDMA device {}: libibverbs has loaded {}, and {} is of another copy, {}; install one version, with one "
           "name linked to the other",
           device, provider, c.name, from);
    if (found == nullptr && c.needed)
      fail(XIO_ERR_UNSUPPORTED,
           "RDMA device {}: {} has no call {}; install the vendor's library of its driver's version", device, provider,
           c.name);
    std::memcpy(c.to, &found, sizeof found);
  }
  return provider;
}

int errno_of(int result) { return result == -1 ? errno_of_null() : std::abs(result); }
int errno_of_null() { return errno != 0 ? errno : EIO; }

ibv_qp_attr attributes_of(const uverbs::modify_qp& m) {
  ibv_qp_attr a{};
  a.qp_state = static_cast<ibv_qp_state>(m.state);
  a.qp_access_flags = m.access;
  a.pkey_index = m.pkey_index;
  a.port_num = m.port;
  a.path_mtu = static_cast<ibv_mtu>(m.path_mtu);
  a.dest_qp_num = m.remote_number;
  a.rq_psn = m.receive_psn;
  a.sq_psn = m.send_psn;
  a.max_dest_rd_atomic = m.responder_depth;
  a.max_rd_atomic = m.initiator_depth;
  a.min_rnr_timer = m.rnr_timer;
  a.timeout = m.timeout;
  a.retry_cnt = m.retries;
  a.rnr_retry = m.rnr_retries;
  const uverbs::qp_destination& d = m.destination;
  a.ah_attr = {};
  std::memcpy(a.ah_attr.grh.dgid.raw, d.gid, sizeof d.gid);
  a.ah_attr.grh.sgid_index = d.source_gid;
  a.ah_attr.grh.hop_limit = d.hop_limit;
  a.ah_attr.grh.traffic_class = d.traffic_class;
  a.ah_attr.dlid = d.lid;
  a.ah_attr.sl = d.sl;
  a.ah_attr.is_global = d.is_global;
  a.ah_attr.port_num = d.port;
  return a;
}
static_assert(int{uverbs::m_state} == int{IBV_QP_STATE} && int{uverbs::m_remote_number} == int{IBV_QP_DEST_QPN} &&
              int{uverbs::m_send_psn} == int{IBV_QP_SQ_PSN} && int{uverbs::to_rts} == int{IBV_QPS_RTS});

}  // namespace xio::rdma
