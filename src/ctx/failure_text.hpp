// SPDX-License-Identifier: MIT
// What went wrong in a kernel, as a sentence for xio_error_info_t.
#pragma once
#include <string>

#include "xio/device/impl/view.hpp"
#include "xio/xio.h"

namespace xio {

// Of a ring's first failure; `info` has all but its sentence. to: " to PE 3", or nothing.
std::string failure_text(const dev::ring_view& ring, const xio_error_info_t& info, bool stopped, const std::string& to);

// Why device code refused a call, and the cure; goes behind the call's name.
std::string refusal_text(xio_status_t status, std::uint32_t n_pes);

// As much of it as there is room for.
void put_sentence(xio_error_info_t& info, const std::string& sentence);

}  // namespace xio
