// SPDX-License-Identifier: MIT
// Which argument of a refused call is wrong, found from its record: kernels keep the arguments and no reason.
#pragma once
#include <string>

#include "xio/device/impl/view.hpp"

namespace xio {

// A storage that a call named.
struct storage_place {
  std::string name;
  std::uint64_t bytes;
  std::uint32_t block_bytes;
  bool read_only;
};

bool is_transfer(const dev::call_record& r);

// "512 bytes at offset 100 of file:data": what a transfer named. on: null if the storage is not open.
std::string transfer_text(const dev::call_record& r, const storage_place* on);

// Of a call that was refused with XIO_ERR_ARG, and of a transfer to a storage that is not open; "" where the status
// itself says more.
std::string wrong_argument(const dev::call_record& r, const storage_place* on);

}  // namespace xio
