// SPDX-License-Identifier: MIT
// One system call on an RDMA device's file, with its attributes (uverbs/abi.hpp).
#pragma once
#include <cstddef>
#include <vector>

#include "transport/rdma/uverbs/abi.hpp"

namespace xio::rdma::uverbs {

class call {
 public:
  call(std::uint16_t object, std::uint16_t method) : object_(object), method_(method) {}

  // `from` stays the caller's until run().
  call& in(std::uint16_t id, const void* from, std::size_t bytes);
  template <class T>
  call& in(std::uint16_t id, const T& value) {
    return in(id, &value, sizeof value);
  }
  // A number that the kernel takes as one of an enumeration.
  call& choose(std::uint16_t id, std::uint64_t value) { return add(id, 8, value); }
  call& out(std::uint16_t id, void* to, std::size_t bytes) {
    return add(id, static_cast<std::uint16_t>(bytes), reinterpret_cast<std::uint64_t>(to));
  }
  template <class T>
  call& out(std::uint16_t id, T* to) {
    return out(id, to, sizeof *to);
  }
  call& use(std::uint16_t id, std::uint32_t handle) { return add(id, 0, handle); }
  call& make(std::uint16_t id) { return add(id, 0, 0); }  // its handle: made(id)
  call& file(std::uint16_t id, int fd) { return add(id, 0, static_cast<std::uint64_t>(std::int64_t{fd})); }

  // 0, or the errno.
  int run(int fd, std::uint32_t driver);
  std::uint32_t made(std::uint16_t id) const;

 private:
  call& add(std::uint16_t id, std::uint16_t bytes, std::uint64_t data);

  const std::uint16_t object_, method_;
  std::vector<attribute> attributes_;
};

}  // namespace xio::rdma::uverbs
