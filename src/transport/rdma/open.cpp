// SPDX-License-Identifier: MIT
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "base/error.hpp"
#include "transport/rdma/rdma.hpp"
#ifdef XIO_ENABLE_MODEL
#include "transport/rdma/model_endpoint.hpp"
#endif

namespace xio::rdma {

std::unique_ptr<endpoint> open([[maybe_unused]] const setup& s) {
#ifdef XIO_ENABLE_MODEL
  if (s.opts->backend != "hw") return std::make_unique<model_endpoint>(s);
  fail(XIO_ERR_UNSUPPORTED,
       "RDMA hardware was asked for by XIO_BACKEND=hw, but this build has no code for real NICs; set XIO_BACKEND=auto "
       "or model "
       "to use the software NIC");
#else
  fail(XIO_ERR_UNSUPPORTED,
       "RDMA was asked for, but this build has no code for real NICs and was made without the software NIC; configure "
       "without "
       "--disable-model and set XIO_BACKEND=auto or model, or set XIO_ROUTE=direct");
#endif
}

}  // namespace xio::rdma
