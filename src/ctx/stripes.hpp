// SPDX-License-Identifier: MIT
// One storage over several controllers: what its names are, what of each controller it uses.
#pragma once
#include <string>
#include <vector>

#include "xio/device/impl/view.hpp"
#include "xio/xio.h"

namespace xio {

// "file:a,nvme:b" -> both. A comma ends a name only where a scheme follows: paths may have commas.
std::vector<std::string> member_names(const std::string& names);

// A member's share of what was asked of the storage; as it is for one member.
xio_storage_attr_t member_attr(const xio_storage_attr_t& attr, std::uint32_t members);

// The storage over members of these views: equal blocks and pages, as many queues of each, whole stripes. Throws what
// does not fit together. `queues` and `slot` are left to the caller.
dev::storage_view stripe(const std::vector<std::string>& names, const std::vector<dev::storage_view>& views,
                         const xio_storage_attr_t& attr);

}  // namespace xio
