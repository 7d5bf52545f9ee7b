// SPDX-License-Identifier: MIT
// One system call on the device's file, with its attributes checked as the kernel's ib_uverbs does (Linux
// drivers/infiniband/core/uverbs_ioctl.c): what a method needs must be there with its size, and an attribute that it
// does not know is refused where it is mandatory.
#pragma once
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <initializer_list>

namespace uverbs {

class call {
 public:
  explicit call(ib_uverbs_ioctl_hdr* h) : header_(h) {}

  std::uint16_t object() const { return header_->object_id; }
  std::uint16_t method() const { return header_->method_id; }
  ib_uverbs_attr* find(std::uint16_t id) const {
    for (std::uint16_t i = 0; i < header_->num_attrs; ++i)
      if (header_->attrs[i].attr_id == id) return &header_->attrs[i];
    return nullptr;
  }
  // 0, or the errno: EINVAL where one of `needed` is missing, EPROTONOSUPPORT for an unknown mandatory one.
  int check(std::initializer_list<std::uint16_t> needed, std::initializer_list<std::uint16_t> optional = {}) const {
    const auto is_in = [](std::initializer_list<std::uint16_t> list, std::uint16_t id) {
      return std::ranges::find(list, id) != list.end();
    };
    for (std::uint16_t i = 0; i < header_->num_attrs; ++i) {
      const ib_uverbs_attr& a = header_->attrs[i];
      if ((a.flags & ~(UVERBS_ATTR_F_MANDATORY | UVERBS_ATTR_F_VALID_OUTPUT)) != 0) return EINVAL;
      for (std::uint16_t j = 0; j < i; ++j)
        if (header_->attrs[j].attr_id == a.attr_id) return EINVAL;
      const bool known = is_in(needed, a.attr_id) || is_in(optional, a.attr_id) || a.attr_id == UVERBS_ATTR_UHW_IN ||
                         a.attr_id == UVERBS_ATTR_UHW_OUT;
      if (!known && (a.flags & UVERBS_ATTR_F_MANDATORY) != 0) return EPROTONOSUPPORT;
    }
    for (const std::uint16_t id : needed)
      if (find(id) == nullptr) return EINVAL;
    return 0;
  }

  // Input: up to 8 bytes stand in the attribute itself.
  const unsigned char* input(std::uint16_t id) const {
    const ib_uverbs_attr* a = find(id);
    return a->len <= 8 ? reinterpret_cast<const unsigned char*>(&a->data)
                       : reinterpret_cast<const unsigned char*>(a->data);
  }
  template <class T>
  bool read(std::uint16_t id, T* to) const {
    const ib_uverbs_attr* a = find(id);
    if (a == nullptr || a->len < sizeof(T)) return false;
    std::memcpy(to, input(id), sizeof(T));
    return true;
  }
  std::uint64_t value(std::uint16_t id) const {
    const ib_uverbs_attr* a = find(id);
    return a == nullptr ? 0 : a->data;
  }
  unsigned char* output(std::uint16_t id) const { return reinterpret_cast<unsigned char*>(find(id)->data); }
  std::size_t room(std::uint16_t id) const {
    const ib_uverbs_attr* a = find(id);
    return a == nullptr ? 0 : a->len;
  }
  // As much of it as there is room for; nothing where the attribute was not given.
  void write(std::uint16_t id, const void* from, std::size_t bytes) const {
    ib_uverbs_attr* a = find(id);
    if (a == nullptr) return;
    std::memcpy(reinterpret_cast<void*>(a->data), from, bytes < a->len ? bytes : a->len);
    a->flags |= UVERBS_ATTR_F_VALID_OUTPUT;
  }
  void set_handle(std::uint16_t id, std::uint64_t handle) const { find(id)->data = handle; }

 private:
  ib_uverbs_ioctl_hdr* header_;
};

}  // namespace uverbs
