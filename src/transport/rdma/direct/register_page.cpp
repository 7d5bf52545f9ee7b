// SPDX-License-Identifier: MIT
#include "transport/rdma/direct/register_page.hpp"

#include <sys/mman.h>

#include <cerrno>

#include "base/error.hpp"

namespace xio::rdma {

register_page::register_page(const uverbs::domain& d, std::uint64_t offset, std::size_t bytes,
                             const direct_hooks& hooks)
    : hooks_(&hooks), bytes_(bytes), at_(d.map(offset, bytes, PROT_WRITE)) {
  if (at_ == nullptr)
    fail(XIO_ERR_IO, "a doorbell page of RDMA device {} cannot be mapped: {}; see the kernel's log", d.device(),
         errno_text(errno));
  kernels_ = hooks.map_registers ? hooks.map_registers(at_, bytes) : at_;
  if (kernels_ != nullptr) return;
  munmap(at_, bytes);
  fail(XIO_ERR_UNSUPPORTED, "the GPU cannot map a doorbell page of RDMA device {}", d.device());
}

register_page::~register_page() {
  if (!hooks_->unmap_registers || hooks_->unmap_registers(at_)) munmap(at_, bytes_);
}

}  // namespace xio::rdma
