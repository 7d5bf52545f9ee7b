// SPDX-License-Identifier: MIT
#include "proxy/family.hpp"

#include <bit>

#include "base/error.hpp"

namespace xio::proxy {

namespace {

// A completion for every entry of the send queue, and room for word of an error.
constexpr std::uint32_t k_completions_per_entry = 2;

}  // namespace

std::uint32_t completion_depth(const family& f, std::uint32_t depth, std::uint64_t wanted) {
  const std::uint32_t least = depth * k_completions_per_entry;
  if (f.most_cq_depth == 0 && wanted != 0)
    fail(XIO_ERR_CONFIG,
         "a completion queue of {} entries: {} has none, its last completion alone is kept; leave XIO_RDMA_CQ_DEPTH at "
         "0",
         wanted, f.name);
  if (f.most_cq_depth == 0) return 0;
  if (wanted == 0) return least;
  if (!std::has_single_bit(wanted) || wanted < least || wanted > f.most_cq_depth)
    fail(XIO_ERR_CONFIG,
         "a completion queue of {} entries: for a send queue of {} it must be a power of two from {} to {} ({}); set "
         "XIO_RDMA_CQ_DEPTH",
         wanted, depth, least, f.most_cq_depth, f.name);
  return static_cast<std::uint32_t>(wanted);
}

std::uint32_t inline_limit(const family& f, option::AUTO_UINT wanted) {
  if (!wanted) return f.inline_bytes;
  if (*wanted > f.inline_bytes)
    fail(XIO_ERR_CONFIG,
         "puts of {} bytes inline: an entry of {} holds {} at most; set XIO_RDMA_INLINE to that or less", *wanted,
         f.name, f.inline_bytes);
  return static_cast<std::uint32_t>(*wanted);
}

}  // namespace xio::proxy
