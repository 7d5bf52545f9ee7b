// SPDX-License-Identifier: MIT
#include "transport/rdma/uverbs/trial.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "base/error.hpp"
#include "transport/rdma/uverbs/domain.hpp"

namespace xio::rdma::uverbs {

trial::trial(std::string device, std::size_t bytes, lacking without)
    : device_(std::move(device)), bytes_(bytes), without_(std::move(without)) {
  void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED)
    why_ = fmt::format("RDMA device {}: no memory to try a queue with", device_);
  else
    memory_ = static_cast<unsigned char*>(at);
}

trial::~trial() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

void trial::note(const char* what, const char* feature, int err) {
  if (without_ && (err == EPROTONOSUPPORT || err == EOPNOTSUPP))
    why_ = without_(device_, feature);
  else if (err != 0)
    why_ = fmt::format("RDMA device {} makes no {}: {}; {}", device_, what, errno_text(err), cure_of(err));
}

}  // namespace xio::rdma::uverbs
