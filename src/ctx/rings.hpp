// SPDX-License-Identifier: MIT
// What the host reads from rings while kernels use them: statistics and the first failure.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "xio/device/impl/view.hpp"
#include "xio/xio.h"

namespace xio {

// The way that a ring serves; none for storage.
dev::route route_of(dev::ring_kind kind);

// "rdma", "sdma" or "nvme".
const char* engine_name(dev::ring_kind kind);
// Kernels may be changing it: each word is a value it once had, not all of the same moment.
dev::ring_state state_of(const dev::ring_view& ring);

// Adds the counters of these rings.
void add_stats(const std::vector<dev::ring_view>& rings, xio_engine_stats_t& out);

// Fills `info` with the last failure among the rings, and `clock` with the device's clock then; false if there is none.
// peers: the PE that each ring leads to, or nothing where they lead to none.
bool find_failure(const std::vector<dev::ring_view>& rings, const std::vector<int>& peers, xio_error_info_t& info,
                  std::uint64_t& clock);
// The same of those that take no more work: a ring that completes out of order goes on after failed ops.
bool find_stopped(const std::vector<dev::ring_view>& rings, xio_error_info_t& info, std::uint64_t& clock);

// The evidence of the ring's failure that the PE at its other end is silent, or "".
std::string silence_on(const dev::ring_view& ring);
// Ends a ring to a PE that was excluded; true if ops on it were not complete, or it had failed before.
bool exclude_ring(const dev::ring_view& ring);
// Of a ring that lost none then: true if ops were posted to it meanwhile.
bool has_lost_since(const dev::ring_view& ring);

// They take no more work, and a wait for one of their ops returns that status. The first failure of a ring stays: it
// says more.
void fail_rings(const std::vector<dev::ring_view>& rings, xio_status_t status);

// Lets rings that refuse work because a wait on them timed out take work again. None of their ops may be under way.
void forget_timeouts(const std::vector<dev::ring_view>& rings);

// Of rings of storages: waits until every command is complete that was posted before the call; false if that is not so
// within `patience`. Kernels need not drain them meanwhile.
bool commands_end(const std::vector<dev::ring_view>& rings, std::chrono::milliseconds patience);

}  // namespace xio
