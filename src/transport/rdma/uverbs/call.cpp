// SPDX-License-Identifier: MIT
#include "transport/rdma/uverbs/call.hpp"

#include <sys/ioctl.h>

#include <cerrno>
#include <cstring>

namespace xio::rdma::uverbs {

call& call::add(std::uint16_t id, std::uint16_t bytes, std::uint64_t data) {
  attributes_.push_back({id, bytes, k_mandatory, 0, data});
  return *this;
}

// Up to 8 bytes stand in the attribute itself.
call& call::in(std::uint16_t id, const void* from, std::size_t bytes) {
  std::uint64_t data = reinterpret_cast<std::uint64_t>(from);
  if (bytes <= sizeof data) {
    data = 0;
    std::memcpy(&data, from, bytes);
  }
  return add(id, static_cast<std::uint16_t>(bytes), data);
}

int call::run(int fd, std::uint32_t driver) {
  const std::size_t bytes = attributes_.size() * sizeof(attribute);
  std::vector<unsigned char> message(sizeof(ioctl_header) + bytes);
  ioctl_header h{};
  h.length = static_cast<std::uint16_t>(message.size());
  h.object = object_;
  h.method = method_;
  h.count = static_cast<std::uint16_t>(attributes_.size());
  h.driver = driver;
  std::memcpy(message.data(), &h, sizeof h);
  std::memcpy(message.data() + sizeof h, attributes_.data(), bytes);
  if (ioctl(fd, k_ioctl, message.data()) != 0) return errno;
  std::memcpy(attributes_.data(), message.data() + sizeof h, bytes);
  return 0;
}

std::uint32_t call::made(std::uint16_t id) const {
  for (const attribute& a : attributes_)
    if (a.id == id) return static_cast<std::uint32_t>(a.data);
  return 0;
}

}  // namespace xio::rdma::uverbs
