// SPDX-License-Identifier: MIT
// A page of a device's registers, mapped for this process and for kernels.
#pragma once
#include <cstddef>
#include <string>

#include "transport/rdma/direct/nic.hpp"

namespace xio::rdma {

class register_page {
 public:
  // page: mapped; null with errno is refused. Throws, naming the device. `hooks` outlives it.
  register_page(const std::string& device, std::shared_ptr<void> page, std::size_t bytes, const direct_hooks& hooks);
  ~register_page();
  register_page& operator=(register_page&&) = delete;
  // Of 8 bytes, `at` bytes from the page's begin: as kernels see it, and as this process does.
  std::uint64_t* doorbell(std::size_t at) const { return word(kernels_, at); }
  std::uint64_t* host_doorbell(std::size_t at) const { return word(page_.get(), at); }

 private:
  static std::uint64_t* word(void* page, std::size_t at) {
    return reinterpret_cast<std::uint64_t*>(static_cast<unsigned char*>(page) + at);
  }

  const direct_hooks* hooks_;
  std::shared_ptr<void> page_;
  void* kernels_ = nullptr;
};

}  // namespace xio::rdma
