// SPDX-License-Identifier: MIT
// The causes are those of completions in the InfiniBand specification (volume 1, 11.6.2); each family has its own
// numbers for them (xio/wire/).
#include "transport/rdma/vendor_text.hpp"

#include <fmt/core.h>

#include "proxy/decoding.hpp"
#include "xio/device/impl/bnxt.hpp"
#include "xio/device/impl/ionic.hpp"
#include "xio/device/impl/mlx5.hpp"
#include "xio/wire/ernic.hpp"
#include "xio/wire/proxy.hpp"

namespace xio::rdma {

namespace {

enum class cause {
  local_length,
  local_qp_operation,
  local_protection,
  flushed,
  bad_response,
  local_access,
  memory_management,
  remote_invalid_request,
  remote_access,
  remote_operation,
  retry_exceeded,
  rnr_retry_exceeded,
  fatal,
  strange,  // the NIC wrote what no NIC writes
  unknown,
};

constexpr const char* k_report = "this should not happen: report it with these numbers";

const char* text_of(cause c) {
  switch (c) {
    case cause::local_length: return "local length error";
    case cause::local_qp_operation: return "local operation error";
    case cause::local_protection:
      return "local protection error: this NIC may not reach the local buffer; keep memory registered and allocated "
             "until a quiet";
    case cause::flushed:
      return "flushed: the queue pair had failed before; look for the first failure, here and on the peer";
    case cause::bad_response: return "bad response error";
    case cause::local_access: return "local access error";
    case cause::memory_management: return "memory management error";
    case cause::remote_invalid_request: return "remote invalid request error: the peer's NIC refuses such an op";
    case cause::remote_access:
      return "remote access error: the peer's NIC refuses the address; look whether the peer has freed that memory or "
             "left its world";
    case cause::remote_operation:
      return "remote operation error: the peer's NIC could not do it; look at the peer's log";
    case cause::retry_exceeded:
      return "transport retry counter exceeded: the peer's NIC does not reply; look whether the peer runs and both "
             "ports are up";
    case cause::rnr_retry_exceeded:
      return "receiver not ready: the peer takes its immediates too slowly; take them by xio_imm_wait, or make the ctx "
             "with room for more";
    case cause::fatal: return "fatal error: the NIC or its driver gave up; look at the kernel's log";
    case cause::strange: return "the NIC wrote what no NIC of this family writes";
    case cause::unknown: break;
  }
  return "a code that this family does not have";
}

bool is_ours(cause c) {
  return c == cause::local_length || c == cause::local_qp_operation || c == cause::bad_response ||
         c == cause::local_access || c == cause::memory_management || c == cause::remote_invalid_request ||
         c == cause::strange || c == cause::unknown;
}

struct row {
  proxy::outcome how;
  cause what;
};
constexpr row k_common[] = {
    {proxy::outcome::local_length, cause::local_length},
    {proxy::outcome::local_qp_operation, cause::local_qp_operation},
    {proxy::outcome::local_protection, cause::local_protection},
    {proxy::outcome::flushed, cause::flushed},
    {proxy::outcome::bad_response, cause::bad_response},
    {proxy::outcome::remote_invalid_request, cause::remote_invalid_request},
    {proxy::outcome::remote_access, cause::remote_access},
    {proxy::outcome::remote_operation, cause::remote_operation},
    {proxy::outcome::retry_exceeded, cause::retry_exceeded},
    {proxy::outcome::rnr_retry_exceeded, cause::rnr_retry_exceeded},
};

// Status: the enumeration of a family's completions. Codes of all families are tried first, then those of some only.
template <class Status>
cause find(std::uint32_t code) {
  for (const row& r : k_common)
    if (proxy::status_of<Status>(r.how) == code) return r.what;
  if constexpr (requires { Status::local_access; })
    if (code == Status::local_access) return cause::local_access;
  if constexpr (requires { Status::memory_management; })
    if (code == Status::memory_management) return cause::memory_management;
  if constexpr (requires { Status::fatal; })
    if (code == Status::fatal) return cause::fatal;
  return cause::unknown;
}

// Above the low byte mlx5, ernic and the proxy have the vendor's own code. Codes of ours have nothing in the low byte
// of the last two, where a status that failed has something.
cause cause_of(dev::ring_kind kind, std::uint32_t vendor) {
  const std::uint32_t low = vendor & 0xff;
  switch (kind) {
    case dev::ring_kind::mlx5:
      return vendor >= dev::mlx5_codec::k_strange_opcode ? cause::strange : find<wire::mlx5::syndrome>(low);
    case dev::ring_kind::bnxt:
      if ((vendor & dev::bnxt_codec::k_terminal) != 0) return cause::fatal;
      return vendor >= dev::bnxt_codec::k_strange_type ? cause::strange : find<wire::bnxt::status>(vendor);
    case dev::ring_kind::ionic:
      return vendor >= dev::ionic_codec::k_strange_type ? cause::strange : find<wire::ionic::status>(vendor);
    case dev::ring_kind::ernic: return low == wire::ernic::ok ? cause::strange : find<wire::ernic::status>(low);
    case dev::ring_kind::proxy: return low == wire::proxy::ok ? cause::strange : find<wire::proxy::status>(low);
    default: return cause::unknown;
  }
}

}  // namespace

const char* family_name(dev::ring_kind kind) {
  switch (kind) {
    case dev::ring_kind::mlx5: return "mlx5";
    case dev::ring_kind::bnxt: return "bnxt";
    case dev::ring_kind::ionic: return "ionic";
    case dev::ring_kind::ernic: return "ernic";
    case dev::ring_kind::proxy: return "proxy";
    default: return "";
  }
}

std::string vendor_text(dev::ring_kind kind, std::uint32_t vendor) {
  const cause c = cause_of(kind, vendor);
  return fmt::format("{} (code {:#x}){}{}", text_of(c), vendor, is_ours(c) ? "; " : "", is_ours(c) ? k_report : "");
}

bool means_silence(dev::ring_kind kind, std::uint32_t vendor) {
  return cause_of(kind, vendor) == cause::retry_exceeded;
}

}  // namespace xio::rdma
