// SPDX-License-Identifier: MIT
// A call of a kernel that failed, as a sentence for xio_error_info_t.
#pragma once
#include "ctx/argument_text.hpp"

namespace xio {

// Where the calls were made: what turns addresses and PEs into words.
struct call_place {
  std::uint64_t heap;  // this PE's symmetric heap
  std::uint64_t heap_bytes;
  std::uint32_t n_pes;
  const storage_place* storage = nullptr;  // that the call named; null: it is not open, or the call names none
};

// The name of a call_kind, and a value as call_record::compare says.
std::string call_name(std::uint32_t kind);
std::string value_text(std::uint64_t value, std::uint32_t compare);

// Names the call, its PE, address and bytes, or the words that it waited for; then why it failed, and the cure.
std::string call_text(const dev::call_record& r, const call_place& here);

}  // namespace xio
