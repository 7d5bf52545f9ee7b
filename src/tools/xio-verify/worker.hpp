// SPDX-License-Identifier: MIT
// The stages that run in processes of their own, since GPUs, drivers and engines that nobody has tried may hang or end
// a process: xio-verify --pe STAGE, below xiorun where a stage has several PEs.
#pragma once
#include "tools/xio-verify/rows.hpp"
#include "tools/xio-verify/settings.hpp"

namespace xio::verify {

// Does one stage, and returns the exit status: 0, or 1 if something was not as it must be; rows say what. Throws what
// the library refuses.
int run_worker(const settings& s);

// The stages' own parts; each returns whether all was as it must be.
bool find_machine(row_writer& rows, const std::string& root);
bool try_orders(row_writer& rows, bool quick);
bool try_orders_of_peers(row_writer& rows, bool quick);
bool try_engine(row_writer& rows, bool quick);

}  // namespace xio::verify
