// SPDX-License-Identifier: MIT
// A call of a team that was refused, or that a member has not come to, as a sentence for xio_error_info_t.
#pragma once
#include <string>

#include "xio/device/impl/view.hpp"

namespace xio {

// The call that a tag names (device/impl/team_tag.hpp): "xio_reduce of 40 bytes, the sum of float".
std::string team_call_name(std::uint32_t tag);

// "team 2", by the number in an id; those that only some PEs have made count by themselves.
std::string team_name(std::uint64_t id);

// Of records as device/impl/team_refusal.hpp describes them.
std::string refused_text(const dev::call_record& r);
std::string missing_member_text(const dev::call_record& r);

}  // namespace xio
