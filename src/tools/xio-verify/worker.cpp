// SPDX-License-Identifier: MIT
#include "tools/xio-verify/worker.hpp"
#include "base/error.hpp"

namespace xio::verify {

int run_worker(const settings& s) {
  row_writer rows(s.rows);
  bool good = false;
  if (s.worker == "machine") {
    good = find_machine(rows, s.root);
  } else if (s.worker == "orders") {
    good = try_orders(rows, s.quick);
  } else if (s.worker == "peer-orders") {
    good = try_orders_of_peers(rows, s.quick);
  } else if (s.worker == "engine") {
    good = try_engine(rows, s.quick);
  } else {
    fail(XIO_ERR_ARG, "no process does '{}'; xio-verify --list names the stages", s.worker);
  }
  return good ? 0 : 1;
}

}  // namespace xio::verify
