// SPDX-License-Identifier: MIT
#include "bootstrap/bootstrap.hpp"

#include <cstdlib>

#include "base/log.hpp"
#include "bootstrap/launcher.hpp"

namespace xio::bootstrap {

namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// xiorun is asked first: when it runs below mpirun its PEs inherit mpirun's variables, and it is the nearer one.
std::unique_ptr<channel> connect_auto(const options& o) {
  if (started_by_xiorun()) return connect_tcp(o);
  if (started_by_mpirun() || mpi_is_running()) return connect_mpi(o);
  if (!o.tcp_root.empty()) return connect_tcp(o);
  return connect_local(o);
}

}  // namespace

bool started_by_mpirun() { return is_set("OMPI_COMM_WORLD_SIZE") || is_set("PMIX_RANK") || is_set("PMI_RANK"); }

bool started_by_xiorun() { return is_set("XIO_RUN_PE"); }

void channel::barrier() {
  const std::byte here{1};
  allgather(std::span<const std::byte>(&here, 1));
}

std::unique_ptr<channel> connect(const options& o) {
  std::unique_ptr<channel> c;
  if (o.bootstrap == "auto") c = connect_auto(o);
  if (o.bootstrap == "local") c = connect_local(o);
  if (o.bootstrap == "tcp") c = connect_tcp(o);
  if (o.bootstrap == "mpi") c = connect_mpi(o);
  if (o.bootstrap == "ucx") c = connect_ucx(o);
  if (c == nullptr)
    fail(XIO_ERR_CONFIG, "XIO_BOOTSTRAP='{}' is not known; use one of auto|mpi|tcp|ucx|local", o.bootstrap);
  log::debug("bootstrap {}: rank {} of {}", c->name(), c->rank(), c->size());
  return c;
}

}  // namespace xio::bootstrap
