// SPDX-License-Identifier: MIT
#include "uverbs/kernel/call.hpp"

#include <rdma/ib_user_ioctl_cmds.h>

#include <algorithm>
#include <cerrno>

namespace uverbs {

int call::check(std::initializer_list<std::uint16_t> needed, std::initializer_list<std::uint16_t> optional) const {
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

}  // namespace uverbs
