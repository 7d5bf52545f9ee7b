// SPDX-License-Identifier: MIT
// The smallest queue, made on a device to see whether it gives kernels queues: step by step, until one fails. All that
// was made is ended by the caller.
#pragma once
#include <sys/mman.h>

#include <cerrno>
#include <cstddef>
#include <functional>
#include <string>

#include "base/error.hpp"
#include "transport/rdma/uverbs/domain.hpp"

namespace xio::rdma::uverbs {

class trial {
 public:
  // The sentence for a driver that lacks a feature; none for a library.
  using lacking = std::function<std::string(const std::string& device, const std::string& feature)>;
  // Has so many bytes of zeros, from a page's start, or has failed.
  trial(std::string device, std::size_t bytes, lacking without)
      : device_(std::move(device)), bytes_(bytes), without_(std::move(without)) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED)
      why_ = fmt::format("RDMA device {}: no memory to try a queue with", device_);
    else
      memory_ = static_cast<unsigned char*>(at);
  }
  ~trial() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  trial& operator=(trial&&) = delete;

  unsigned char* memory() const { return memory_; }
  // Runs `make`, which returns 0 or the kernel's errno, unless a step has failed. what: what it makes. feature: what
  // the driver lacks where it does not know the call or refuses its kind.
  template <class Make>
  void step(const char* what, const char* feature, Make&& make) {
    if (why_.empty()) note(what, feature, make());
  }
  // Empty, or why no queue was made.
  const std::string& why() const { return why_; }

 private:
  void note(const char* what, const char* feature, int err) {
    if (without_ && (err == EPROTONOSUPPORT || err == EOPNOTSUPP))
      why_ = without_(device_, feature);
    else if (err != 0)
      why_ = fmt::format("RDMA device {} makes no {}: {}; {}", device_, what, errno_text(err), cure_of(err));
  }

  const std::string device_;
  const std::size_t bytes_;
  const lacking without_;
  unsigned char* memory_ = nullptr;
  std::string why_;
};

}  // namespace xio::rdma::uverbs
