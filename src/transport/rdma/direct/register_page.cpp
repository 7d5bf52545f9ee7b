// SPDX-License-Identifier: MIT
#include "transport/rdma/direct/register_page.hpp"

#include <cerrno>

#include "base/error.hpp"

namespace xio::rdma {

register_page::register_page(const std::string& device, std::shared_ptr<void> page, std::size_t bytes,
                             const direct_hooks& hooks)
    : hooks_(&hooks), page_(std::move(page)) {
  if (page_ == nullptr)
    fail(XIO_ERR_IO, "a doorbell page of RDMA device {} cannot be mapped: {}; see the kernel's log", device,
         errno_text(errno));
  kernels_ = hooks.map_registers ? hooks.map_registers(page_.get(), bytes, {}) : page_.get();
  if (kernels_ == nullptr) fail(XIO_ERR_UNSUPPORTED, "the GPU cannot map a doorbell page of RDMA device {}", device);
}

register_page::~register_page() {
  // A page that kernels keep stays for the process's life.
  if (hooks_->unmap_registers && !hooks_->unmap_registers(page_.get())) new std::shared_ptr<void>(std::move(page_));
}

}  // namespace xio::rdma
