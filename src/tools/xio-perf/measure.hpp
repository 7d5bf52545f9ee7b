// SPDX-License-Identifier: MIT
// Runs one test at one size and says what it took. All of it is collective: every PE comes with the same arguments.
#pragma once
#include "tools/statistics.hpp"
#include "tools/xio-perf/drive.hpp"

namespace xio::perf {

// One test as it is run on this platform: nothing is left to be chosen but the size.
struct plan {
  const test* what = nullptr;
  scope who = scope::thread;
  atomic_op op = atomic_op::fetch_add;
  xio_reduction reduction = xio_reduction::sum;
  std::uint32_t team = 0;  // members, the first of all PEs; 0: all
  std::uint32_t ctas = 1;
  std::uint32_t threads = 1;  // of each
  std::uint32_t iterations = 0, warm_up = 0, repeat = 1, element = 8;
  bool bidirectional = false, lockstep = false, scattered = false;
  xio_route_t route = XIO_ROUTE_AUTO;
  std::vector<std::uint64_t> sizes;

  std::uint32_t groups(std::uint32_t wave) const;  // that call, on all workgroups
  std::uint32_t members(int n_pes) const { return team != 0 ? team : static_cast<std::uint32_t>(n_pes); }
};

struct machine_shape {
  bool host;  // kernels run on CPU threads
  std::uint32_t wave;
  std::uint32_t workgroups;  // that surely run at the same time
};

// Everything that was asked for, in order. Throws xio::error (XIO_ERR_ARG) for what cannot be.
std::vector<plan> plans_of(const settings& s, const machine_shape& m);
heap_need need_of(const std::vector<plan>& plans, const machine_shape& m, int n_pes);
// That a test of storage is spread over, from offset 0 on.
std::uint64_t stored_bytes(const plan& p, std::uint64_t bytes, const machine_shape& m);

struct result {
  std::uint64_t bytes = 0;
  tools::statistics us;
  std::uint32_t team = 0;  // members; 0: a test of no team
  std::optional<double> gb_per_s;
  std::optional<double> bus_gb_per_s;
  std::optional<double> million_per_s;  // messages
  std::optional<double> doorbells;      // of an op, where an engine has carried any
  std::string route;
};

// The drive is null but for tests of storage. Throws xio::error when anything went wrong, data included.
result measure(session& s, const plan& p, std::uint64_t bytes, const machine_shape& m, drive* d);

}  // namespace xio::perf
