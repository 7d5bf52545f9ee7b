// SPDX-License-Identifier: MIT
#include "transport/rdma/verbs/verbs.hpp"

#if HAVE_CONFIG_H
#include "config.h"
#endif

#if HAVE_VERBS

#include "proxy/verbs_fabric.hpp"
#include "transport/rdma/verbs/ports.hpp"

namespace xio::rdma {

std::vector<std::unique_ptr<proxy::fabric>> open_verbs(const rdma_options& o, const payload_agent&, int rank,
                                                       int local_rank, immediate_handler handler,
                                                       const verbs_surroundings& where) {
  std::vector<std::unique_ptr<proxy::fabric>> fabrics;
  for (proxy::verbs_port& port : open_ports(o, rank, local_rank, where.gpu_bus_id))
    fabrics.push_back(std::make_unique<proxy::verbs_fabric>(std::move(port), path_of(o), handler, where.export_memory));
  return fabrics;
}

std::string why_no_verbs(const rdma_options& o) { return why_no_ports(o); }

}  // namespace xio::rdma

#else

#include "base/error.hpp"

namespace xio::rdma {

std::string why_no_verbs(const rdma_options&) {
  return "this XIO was built without libibverbs, so it reaches no RDMA device; install rdma-core's headers and build "
         "again";
}

std::vector<std::unique_ptr<proxy::fabric>> open_verbs(const rdma_options& o, const payload_agent&, int, int,
                                                       immediate_handler, const verbs_surroundings&) {
  fail(XIO_ERR_UNSUPPORTED, "{}", why_no_verbs(o));
}

}  // namespace xio::rdma

#endif
