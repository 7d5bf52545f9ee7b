// SPDX-License-Identifier: MIT
// The kinds of memory that a program may ask for, by name.
#pragma once
#include "xio/memory.h"

namespace xio::memory {

bool is_kind(xio_mem_kind_t kind);
bool on_host(xio_mem_kind_t kind);  // false: of the device

// Throws: no kind at all, or one that this platform has not. function is the call, for the sentence.
void check_kind(xio_mem_kind_t kind, const char* function);

}  // namespace xio::memory
