// SPDX-License-Identifier: MIT
// How collectives are done; the calls are in device/collective.hpp.
#pragma once
#include "xio/device/impl/team_move.hpp"
#include "xio/device/impl/team_reduce.hpp"
#include "xio/device/impl/team_varied.hpp"

namespace xio::dev::teams {

template <xio_reduction Op, class T, class Group>
XIO_DEVICE xio_status_t reduce(const Group& g, const xio_ctx_t& ctx, const xio_team_t& t, T* dst, const T* src,
                               u64 count, bool scatter) {
  return reduce<Op, T>(g, ctx, t,
                       reduce_job{reinterpret_cast<unsigned char*>(dst), reinterpret_cast<const unsigned char*>(src),
                                  count * sizeof(T), t.n_pes, scatter});
}

}  // namespace xio::dev::teams
