// SPDX-License-Identifier: MIT
#include "ctx/failure_text.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>

#include "transport/nvme/status_text.hpp"
#include "transport/rdma/vendor_text.hpp"
#include "transport/sdma/vendor_text.hpp"
#include "xio/wire/nvme.hpp"

namespace xio {
namespace {

std::string name_of(const dev::ring_view& ring, const xio_error_info_t& info) {
  const std::string family = rdma::family_name(ring.kind);
  return fmt::format("{} queue {}{}", info.engine, ring.id, family.empty() ? "" : " (" + family + ")");
}

// Why an engine ended an op, and the cure.
std::string cause_of(const dev::ring_view& ring, const xio_error_info_t& info, bool stopped) {
  if (ring.kind == dev::ring_kind::sdma) return sdma::vendor_text(info.vendor);
  if (ring.kind != dev::ring_kind::nvme) return rdma::vendor_text(ring.kind, info.vendor);
  if (!stopped) return nvme::status_text(info.vendor);
  return fmt::format("the drive completed command {}, which is not under way; reset it, and open the storage again",
                     wire::nvme::cqe_cid(info.vendor));
}

}  // namespace

std::string failure_text(const dev::ring_view& ring, const xio_error_info_t& info, bool stopped,
                         const std::string& to) {
  const std::string name = name_of(ring, info) + to;
  if (info.status == XIO_ERR_TIMEOUT)
    return fmt::format(
        "{}: op {} was not complete within XIO_TIMEOUT_MS; look whether its device and peer are alive, or raise it",
        name, info.ticket);
  if (info.status == XIO_ERR_INTERNAL)
    return fmt::format("{}: its completion word was overwritten (it holds {:#x}); look for stores outside of buffers",
                       name, info.vendor);
  if (info.status == XIO_ERR_STATE)
    return fmt::format("{}: it was stopped at op {}, and takes no work; recover the ctx, or open the storage again",
                       name, info.ticket);
  if (info.status == XIO_ERR_PEER)
    return fmt::format(
        "{}: op {} was not complete when the PE was excluded; leave that PE out, by a ctx of xio_ctx_refresh", name,
        info.ticket);
  return fmt::format("{}: op {} failed: {}", name, info.ticket, cause_of(ring, info, stopped));
}

std::string refusal_text(xio_status_t status, std::uint32_t n_pes) {
  switch (status) {
    case XIO_ERR_ARG: return "an argument is null, misaligned or out of range; check what the call is given";
    case XIO_ERR_PE: return fmt::format("there is no such PE; PEs are 0 to {} (xio_n_pes() - 1)", n_pes - 1);
    case XIO_ERR_NOT_SYMMETRIC: return "this is not in the symmetric heap, or leaves it; take it from xio_malloc";
    case XIO_ERR_NOT_REGISTERED:
      return "its engine cannot reach the local buffer; take it from xio_malloc, or register it by xio_mem_register";
    case XIO_ERR_NO_MEMORY: return "the ctx's pool has no more; create the ctx with a larger one";
    case XIO_ERR_NO_ROUTE: return "this ctx has no route for it to that PE; create the ctx with another route";
    case XIO_ERR_STATE: return "the storage or ctx is closed; keep it open until its kernels have ended";
    case XIO_ERR_PEER: return "that PE, or one that a barrier needs, was excluded by xio_exclude; leave it out";
    case XIO_ERR_UNSUPPORTED: return "this machine, ctx or drive cannot do it";
    case XIO_ERR_TIMEOUT:
      return "it was not complete within XIO_TIMEOUT_MS; look whether its device and peer are alive, or raise it";
    default: return fmt::format("it ended with {}", xio_status_name(status));
  }
}

void put_sentence(xio_error_info_t& info, const std::string& sentence) {
  const std::size_t n = std::min(sentence.size(), sizeof info.sentence - 1);
  std::memcpy(info.sentence, sentence.data(), n);
  std::memset(info.sentence + n, 0, sizeof info.sentence - n);
}

}  // namespace xio
