// SPDX-License-Identifier: MIT
// What another process said, made fit for a log, a sentence or an enum: the peer may be broken or hostile.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "xio/status.h"

namespace xio {

// The text with a '?' for each control character (C0, DEL and C1) and for each byte that is no part of UTF-8, so that
// it can neither move a terminal's cursor nor begin a line of its own.
std::string printable(std::string_view text);

// The error that the number is; XIO_ERR_PEER for a number that is none.
xio_status_t peer_status(std::int32_t number);

}  // namespace xio
