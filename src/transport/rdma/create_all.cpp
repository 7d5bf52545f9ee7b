// SPDX-License-Identifier: MIT
#include <exception>

#include "base/error.hpp"
#include "transport/rdma/rdma.hpp"

namespace xio::rdma {

std::vector<std::unique_ptr<queue_set>> create_all(endpoint& e, const std::vector<queue_request>& requests) {
  std::vector<std::unique_ptr<queue_set>> sets;
  std::exception_ptr failure;
  xio_status_t why = XIO_OK;
  for (const queue_request& request : requests) {
    try {
      if (failure)
        e.skip_queues(request, why);
      else
        sets.push_back(e.create_queues(request));
    } catch (...) {
      if (failure) continue;  // the first failure is the cause; this one only says that peers did not learn of it
      failure = std::current_exception();
      why = status_of_current_exception();
    }
  }
  if (failure) std::rethrow_exception(failure);
  return sets;
}

}  // namespace xio::rdma
