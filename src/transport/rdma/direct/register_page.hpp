// SPDX-License-Identifier: MIT
// A page of a device's registers, mapped for this process and for kernels.
#pragma once
#include <cstddef>
#include <cstdint>

#include "transport/rdma/direct/nic.hpp"
#include "transport/rdma/uverbs/domain.hpp"

namespace xio::rdma {

class register_page {
 public:
  // offset: of the page in the device's file. Throws, naming the device. `hooks` outlives it.
  register_page(const uverbs::domain& d, std::uint64_t offset, std::size_t bytes, const direct_hooks& hooks);
  ~register_page();
  register_page(const register_page&) = delete;
  register_page& operator=(const register_page&) = delete;
  // Of 8 bytes, `at` bytes from the page's begin: as kernels see it, and as this process does.
  std::uint64_t* doorbell(std::size_t at) const { return word(kernels_, at); }
  std::uint64_t* host_doorbell(std::size_t at) const { return word(at_, at); }

 private:
  static std::uint64_t* word(void* page, std::size_t at) {
    return reinterpret_cast<std::uint64_t*>(static_cast<unsigned char*>(page) + at);
  }

  const direct_hooks* hooks_;
  const std::size_t bytes_;
  void* at_;
  void* kernels_ = nullptr;
};

}  // namespace xio::rdma
