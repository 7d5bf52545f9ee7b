// SPDX-License-Identifier: MIT
// What xio_ctx_error returns: of all that a ctx's engines and calls have kept, the failure that a program has to know.
#pragma once
#include "ctx/call_text.hpp"
#include "ctx/context.hpp"
#include "ctx/storage_book.hpp"

namespace xio {

xio_error_info_t kept_error(const context& c, const storage_book& storages, const call_place& here);

}  // namespace xio
